// The ids of the tokens that stand for no text.
#pragma once

#include <cstdint>

namespace plumb {

struct Specials {
  int32_t pad = 0;      // stands for nothing
  int32_t bos = 1;      // begins a sequence
  int32_t eos = 2;      // ends a sentence, or a line of running text
  int32_t unknown = 3;  // stands for what has no token

  bool operator==(const Specials&) const = default;
};

}  // namespace plumb
