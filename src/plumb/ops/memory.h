// The memory of tensors: what one step frees the next one takes, without the system's help and without holes.
#pragma once

#include <cstdint>
#include <memory>

#include "plumb/ops/torch.h"

namespace plumb::ops {

/// Lets LibTorch take the memory of large tensors from one region of addresses, in which freed neighbors become one
/// block again and the smallest block that suffices is taken. malloc gives such blocks back to the system and faults
/// them in again page by page, or, told to keep them, loses room between them to small allocations that outlive them.
/// Called once, before the first tensor is made; does nothing where the region cannot be had, nor under the address
/// sanitizer.
void keep_tensor_memory();

/// Bytes that tensors and other allocations hold now; 0 where nobody counts them.
int64_t memory_in_use();

/// What is held of a device's memory beyond what was held when this was made. On the CPU all allocations count, as in
/// memory_in_use; elsewhere those of this thread and of the backward passes that it starts.
class HeldMemory {
 public:
  explicit HeldMemory(const at::Device& device);
  ~HeldMemory();
  HeldMemory(const HeldMemory&) = delete;
  HeldMemory& operator=(const HeldMemory&) = delete;

  [[nodiscard]] int64_t bytes() const;

 private:
  struct Count;
  int64_t before_ = 0;            // of the CPU
  std::unique_ptr<Count> count_;  // of another device
};

}  // namespace plumb::ops
