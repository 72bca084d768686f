// Memory for tensors: each step reuses what the previous one freed, without system calls and without fragmentation.
#pragma once

#include <cstdint>
#include <memory>

#include "plumb/ops/torch.h"

namespace plumb::ops {

/// Makes LibTorch allocate large tensors from one address range, in which adjacent free blocks are merged and the
/// smallest sufficient block is used. malloc would return such blocks to the system and fault them in again page by
/// page or, if told to keep them, lose space between them to small allocations that outlive them. Call once, before the
/// first tensor is created; has no effect if the range is not available, or under the address sanitizer.
void keep_tensor_memory();

/// Bytes currently held by tensors and other allocations; 0 if they are not counted.
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
