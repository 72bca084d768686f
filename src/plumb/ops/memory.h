// Memory for tensors: each step reuses what the previous one freed, without system calls and without fragmentation.
#pragma once

#include <cstdint>
#include <memory>

#include "plumb/ops/torch.h"

namespace plumb::ops {

/// Makes LibTorch allocate large tensors from one address range, in which adjacent free blocks are merged and the
/// smallest sufficient block is used. malloc would return such blocks to the system and fault them in again page by
/// page or, if told to keep them, become fragmented by small allocations that outlive them. Call once, before the first
/// tensor is created; has no effect if the range is not available, or under the address sanitizer.
void keep_tensor_memory();

/// Returns freed tensor memory to the system, for use after work that needed more than all that follows.
void return_tensor_memory();

/// Bytes currently held by tensors and other allocations; 0 if unknown.
int64_t memory_in_use();

/// Bytes that this process can allocate beyond what it holds before the machine, or the container that it runs in, is
/// out of memory; the largest number if unknown.
int64_t available_memory();

/// The growth of a device's memory in use since construction. On the CPU, counts all allocations, like memory_in_use();
/// on other devices, those of this thread and of the backward passes that it starts.
class HeldMemory {
 public:
  explicit HeldMemory(const at::Device& device);
  ~HeldMemory();
  HeldMemory(const HeldMemory&) = delete;
  HeldMemory& operator=(const HeldMemory&) = delete;

  [[nodiscard]] int64_t bytes() const;

 private:
  struct Count;
  int64_t before_ = 0;            // on the CPU
  std::unique_ptr<Count> count_;  // on other devices
};

}  // namespace plumb::ops
