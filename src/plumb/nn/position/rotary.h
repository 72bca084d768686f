// The options of rotary positions: the section [model.rotary].
#pragma once

#include <cstdint>
#include <string>

#include "plumb/base/config.h"

namespace plumb {

/// See rotary.cpp for the formulas and `describe` for the meaning of the options.
struct RotaryOptions {
  double theta = 10000;
  bool interleaved = true;
  std::string scaling = "none";
  double factor = 1;
  double low_frequency_factor = 1;
  double high_frequency_factor = 4;
  int64_t original_length = 8192;
  int64_t features = 0;
};

void describe(Fields& field, RotaryOptions& options);

}  // namespace plumb
