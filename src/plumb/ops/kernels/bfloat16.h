// bfloat16: the upper half of a float32.
#pragma once

#include <cstdint>

namespace plumb::kernels {

struct Bfloat16 {
  uint16_t bits;
};

}  // namespace plumb::kernels
