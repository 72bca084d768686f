// What a step that is not finite was found to have when it was repeated with checks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plumb/base/config.h"

namespace plumb {

/// Names are empty if nothing was found.
struct Findings {
  /// The first activation that is not finite.
  struct Forward {
    std::string where;          // "encoder.input"
    double largest_before = 0;  // the largest magnitude of those before it
  };
  /// The numbers of the repetition, if they differ.
  struct Again {
    double loss = 0;
    double gradient_norm = 0;
  };

  std::string parameter;  // the first parameter that was not finite before the step
  std::optional<Forward> forward;
  std::vector<int64_t> examples;  // those with rows of that activation that are not finite
  std::vector<int64_t> batch;     // all examples
  std::string backward;           // the first gradient of a stream in the backward pass that is not finite
  std::string gradient;           // the parameter with the first such gradient, in the order of the backward pass
  std::optional<Again> again;     // points to the hardware or a library that is not deterministic
};
void describe(Fields& field, Findings::Forward& forward);
void describe(Fields& field, Findings::Again& again);
void describe(Fields& field, Findings& findings);

}  // namespace plumb
