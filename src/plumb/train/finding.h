// What a measurement says of a run that may fail, or has.
#pragma once

#include <string>

#include "plumb/base/config.h"

namespace plumb {

/// What an alarm (train/alarm.h) has seen at one place.
struct Finding {
  std::string alarm{};  // the name in the registry
  bool raised = false;  // whether the value lies beyond the threshold
  std::string where{};  // "decoder.layers.3.feed_forward"; empty: the whole run
  double value = 0;     // this and the threshold may stand in the text alone if the run has diverged
  double threshold = 0;
  std::string text{};    // one sentence with the numbers
  std::string advice{};  // what to change, if raised; of a diverged run, empty unless this explains the divergence
};
void describe(Fields& field, Finding& finding);

}  // namespace plumb
