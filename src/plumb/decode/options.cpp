#include <fmt/format.h>

#include <cmath>

#include "plumb/base/error.h"
#include "plumb/base/text.h"
#include "plumb/decode/beam_search.h"
#include "plumb/ops/precision.h"

namespace plumb {

void describe(Fields& field, DecodeOptions& options) {
  field("beam", options.beam);
  field("length_penalty", options.length_penalty);
  field("length_factor", options.length_factor);
  field("length_extra", options.length_extra);
  field("longest_source", options.longest_source);
  field("batch_tokens", options.batch_tokens);
  field("precision", options.precision);
}

void validate(const DecodeOptions& options) {
  const auto require = [](bool holds, const char* name, auto value, const std::string& rule) {
    if (!holds) throw Error(fmt::format("cannot decode with {} = {}: it must be {}", name, value, rule));
  };
  const auto not_negative = [](double value) { return std::isfinite(value) && value >= 0; };
  const auto count = [&](const char* name, int64_t value, int64_t smallest, int64_t largest) {
    require(value >= smallest, name, value, fmt::format("at least {}", smallest));
    require(value <= largest, name, value, fmt::format("at most {}", with_thousands(largest)));
  };
  count("beam", options.beam, 1, kLargestBeam);
  require(not_negative(options.length_penalty), "length_penalty", options.length_penalty, "0 or more");
  require(not_negative(options.length_factor), "length_factor", options.length_factor, "0 or more");
  constexpr int64_t kMostTokens = 1'000'000'000;  // so that no sum of lengths overflows
  count("length_extra", options.length_extra, 0, kMostTokens);
  count("longest_source", options.longest_source, 1, kMostTokens);
  count("batch_tokens", options.batch_tokens, 1, kMostTokens);
  (void)ops::precision_of(options.precision);
}

}  // namespace plumb
