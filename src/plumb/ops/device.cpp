#include "plumb/ops/device.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <fmt/format.h>

#include <cstdlib>
#include <optional>

#include "plumb/base/error.h"
#include "plumb/base/parse_number.h"

namespace plumb::ops {
namespace {

at::Device of_the_process(at::kCPU);

bool built_with_cuda() { return c10::impl::hasDeviceGuardImpl(at::kCUDA); }

int64_t gpus() { return built_with_cuda() ? c10::impl::getDeviceGuardImpl(at::kCUDA)->deviceCount() : 0; }

/// The GPU that "cuda" means.
int64_t own_gpu() {
  for (const char* variable : {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"}) {
    if (const char* rank = std::getenv(variable))
      return std::max<int64_t>(parse_number<int64_t>(rank).value_or(0), 0) % gpus();
  }
  return 0;
}

}  // namespace

at::Device device_named(const std::string& name) {
  if (name == "cpu") return {at::kCPU};
  constexpr std::string_view kNumbered = "cuda:";
  const bool numbered = name.starts_with(kNumbered);
  constexpr int64_t kNone = -1;
  const int64_t index =
      numbered ? parse_number<int64_t>(std::string_view(name).substr(kNumbered.size())).value_or(kNone) : kNone;
  if (numbered ? index < 0 : name != "cuda") {
    throw Error(fmt::format("unknown device '{}'", name), "known: cpu, cuda, cuda:N with N from 0");
  }
  if (!built_with_cuda()) {
    throw Error(fmt::format("there is no device '{}': LibTorch was built without CUDA", name),
                "build Plumb with a LibTorch that has CUDA, as docs/machines.md describes, or use the device cpu");
  }
  if (gpus() == 0) {
    throw Error(fmt::format("there is no device '{}': LibTorch finds no GPU", name),
                "see what `nvidia-smi` lists, and whether CUDA_VISIBLE_DEVICES hides it");
  }
  if (index >= gpus()) {
    throw Error(fmt::format("there is no device '{}': this machine has {} GPU{}", name, gpus(), gpus() == 1 ? "" : "s"),
                fmt::format("the last one is cuda:{}", gpus() - 1));
  }
  return {at::kCUDA, static_cast<c10::DeviceIndex>(index == kNone ? own_gpu() : index)};
}

std::vector<at::Device> available_devices() {
  std::vector<at::Device> devices{at::Device(at::kCPU)};
  for (int64_t i = 0; i < gpus(); ++i) devices.emplace_back(at::kCUDA, static_cast<c10::DeviceIndex>(i));
  return devices;
}

void synchronize(const at::Device& device) {
  if (!device.is_cpu()) (void)at::zeros({}, device).item<float>();
}

at::Device default_device() { return of_the_process; }

DefaultDevice::DefaultDevice(at::Device device) : before_(of_the_process) { of_the_process = device; }
DefaultDevice::~DefaultDevice() { of_the_process = before_; }

void detail::throw_mixed_devices(const char* operation, const at::Device& one, const at::Device& other) {
  throw Error(fmt::format("{}: one tensor is on {}, another on {}", operation, one.str(), other.str()),
              "move them to one device");
}

}  // namespace plumb::ops
