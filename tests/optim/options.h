// Options of optimizers and schedule factors, as a configuration gives them.
#pragma once

#include <string>

#include "plumb/optim/optimizer.h"
#include "plumb/optim/schedule.h"

namespace plumb::test {

struct TrainSection {
  VariantOptions options;
};
inline void describe(Fields& field, TrainSection& section) {
  describe_options(field, optimizers(), "", section.options);
  describe_schedule_options(field, "", section.options);
}

/// The options in a TOML text: "[train.adam]\nbeta1 = 0.8".
inline VariantOptions options(const std::string& toml) {
  TrainSection section;
  Config::from_string(toml, "test").read("train", section);
  return section.options;
}

}  // namespace plumb::test
