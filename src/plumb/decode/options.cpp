#include <fmt/format.h>

#include <cmath>

#include "plumb/base/error.h"
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
  const auto require = [](bool holds, const char* name, auto value, const char* rule) {
    if (!holds) throw Error(fmt::format("cannot decode with {} = {}: it must be {}", name, value, rule));
  };
  const auto not_negative = [](double value) { return std::isfinite(value) && value >= 0; };
  require(options.beam >= 1, "beam", options.beam, "at least 1");
  require(not_negative(options.length_penalty), "length_penalty", options.length_penalty, "0 or more");
  require(not_negative(options.length_factor), "length_factor", options.length_factor, "0 or more");
  require(options.length_extra >= 0, "length_extra", options.length_extra, "0 or more");
  require(options.longest_source >= 1, "longest_source", options.longest_source, "at least 1");
  require(options.batch_tokens >= 1, "batch_tokens", options.batch_tokens, "at least 1");
  (void)ops::precision_of(options.precision);
}

}  // namespace plumb
