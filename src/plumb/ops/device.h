// Devices: which one computes, and whether the tensors of an operation lie on the same one.
#pragma once

#include <string>
#include <vector>

#include "plumb/ops/torch.h"

namespace plumb::ops {

/// The device of a name: "cpu", "cuda:N", or "cuda", the first GPU; where a launcher numbers the processes of a machine
/// (LOCAL_RANK, OMPI_COMM_WORLD_LOCAL_RANK, SLURM_LOCALID), each has its own. Throws Error if the name is invalid or
/// this machine has no such device.
at::Device device_named(const std::string& name);

/// The devices that can be named here, the CPU first.
std::vector<at::Device> available_devices();

/// Waits until the device has finished its queued work, for timing; does nothing on the CPU.
void synchronize(const at::Device& device);

/// The device of tensors that do not derive from another tensor: a model's parameters, and the vectors that a
/// measurement starts from. The CPU, unless a DefaultDevice says otherwise.
at::Device default_device();

/// Makes `device` the default of the process during its lifetime. Create it before any thread that asks for the
/// default.
class DefaultDevice {
 public:
  explicit DefaultDevice(at::Device device);
  ~DefaultDevice();
  DefaultDevice(const DefaultDevice&) = delete;
  DefaultDevice& operator=(const DefaultDevice&) = delete;

 private:
  at::Device before_;
};

namespace detail {
[[noreturn]] void throw_mixed_devices(const char* operation, const at::Device& one, const at::Device& other);
}

/// Throws Error, naming the operation and both devices, if a tensor lies on another device than the first. Undefined
/// ones are on none.
template <typename... Others>
void require_one_device(const char* operation, const Tensor& first, const Others&... others) {
  const auto check = [&](const Tensor& other) {
    if (other.defined() && other.device() != first.device())
      detail::throw_mixed_devices(operation, first.device(), other.device());
  };
  (check(others), ...);
}

}  // namespace plumb::ops
