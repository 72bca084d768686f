// Numbers that operations find, still on the device that computes them.
#pragma once

#include <utility>
#include <vector>

#include "plumb/ops/torch.h"

namespace plumb::ops {

/// A number that a device may still be computing: reading it waits for the device.
class Number {
 public:
  Number(double value = 0) : value_(value) {}  // NOLINT(google-explicit-constructor): it is a number
  /// A tensor of one element.
  explicit Number(const Tensor& found) : found_(found.detach()) {}

  operator double() const {  // NOLINT(google-explicit-constructor)
    return found_.defined() ? found_.item<double>() : value_;
  }

 private:
  friend std::vector<double> read(const std::vector<Number>& numbers);

  double value_ = 0;
  Tensor found_;  // undefined: it is value_
};

/// The values of all of them, waiting for a device once.
std::vector<double> read(const std::vector<Number>& numbers);

}  // namespace plumb::ops
