// What an alarm has measured.
#pragma once

#include <string>

#include "plumb/base/config.h"

namespace plumb::check {

/// What was seen at one place.
struct Reason {
  std::string alarm;    // the name in the registry
  bool raised = false;  // whether the value lies beyond the threshold
  std::string place;    // "decoder.layers.3.feed_forward"; empty: the whole run
  double value = 0;
  double threshold = 0;
  std::string text;    // one sentence with the numbers
  std::string advice;  // what to change, if raised
};
void describe(Fields& field, Reason& reason);

}  // namespace plumb::check
