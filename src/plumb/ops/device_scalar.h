// Scalar results of operations, which may still be on a device.
#pragma once

#include <vector>

#include "plumb/ops/torch.h"

namespace plumb::ops {

/// A number that a device may still be computing; converting it to double waits for the device.
class DeviceScalar {
 public:
  DeviceScalar(double value = 0) : value_(value) {}  // NOLINT(google-explicit-constructor): it is a number
  /// A tensor of one element.
  explicit DeviceScalar(const Tensor& tensor) : tensor_(tensor.detach()) {}

  operator double() const {  // NOLINT(google-explicit-constructor)
    return tensor_.defined() ? tensor_.item<double>() : value_;
  }

 private:
  friend std::vector<double> read(const std::vector<DeviceScalar>& numbers);

  double value_ = 0;
  Tensor tensor_;  // if undefined, the number is value_
};

/// The values of all numbers, waiting for the device only once.
std::vector<double> read(const std::vector<DeviceScalar>& numbers);

}  // namespace plumb::ops
