// Device selection, and checks that the tensors of an operation are on the same device.
#pragma once

#include <string>
#include <vector>

#include "plumb/ops/torch.h"

namespace plumb::ops {

/// The device called "cpu", "cuda:N" or "cuda": the first GPU or, if a launcher numbers the processes of a machine
/// (LOCAL_RANK, OMPI_COMM_WORLD_LOCAL_RANK, SLURM_LOCALID), GPU number local rank modulo the number of GPUs. Throws
/// Error if the name is invalid or this machine has no such device.
at::Device device_named(const std::string& name);

/// All devices of this machine, the CPU first.
std::vector<at::Device> available_devices();

/// Waits until the device has finished its queued work, for timing; does nothing on the CPU.
void synchronize(const at::Device& device);

/// The device of new tensors that are not derived from others, such as a model's parameters and the starting vectors of
/// a measurement. The CPU, unless a DefaultDevice says otherwise.
at::Device default_device();

/// Makes `device` the process's default during the lifetime of this object. Not synchronized: create it before starting
/// threads that read the default.
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

/// Throws Error, naming the operation and both devices, if a tensor is on a different device than the first. Undefined
/// tensors are skipped, except the first, which must be defined.
template <typename... Others>
void require_one_device(const char* operation, const Tensor& first, const Others&... others) {
  const auto check = [&](const Tensor& other) {
    if (other.defined() && other.device() != first.device())
      detail::throw_mixed_devices(operation, first.device(), other.device());
  };
  (check(others), ...);
}

}  // namespace plumb::ops
