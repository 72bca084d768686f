// A simulated device: its memory is the host's, and every operation runs on the CPU, but only if all of its tensors are
// on the device, as on a GPU. Code that assumes the CPU fails here as it would there, and results can be compared with
// the CPU's. It counts transfers.
#pragma once

#include <atomic>
#include <cstdint>

#include "plumb/ops/torch.h"

namespace plumb::test {

inline constexpr c10::DeviceType kSimulated = c10::DeviceType::PrivateUse1;
inline at::Device simulated_device() { return {kSimulated, 0}; }

/// Transfers between the host and the device.
struct Traffic {
  std::atomic<int64_t> reads = 0;    // from the device: the host waits for it
  std::atomic<int64_t> uploads = 0;  // to the device
};
Traffic& traffic();

}  // namespace plumb::test
