// Numerical trouble in a training run: the response to it, [train.trouble], and its records.
#pragma once

#include <cstdint>
#include <string>

#include "plumb/base/config.h"
#include "plumb/base/json.h"

namespace plumb {

/// [train.trouble]
struct TroubleConfig {
  std::string on_nonfinite = "stop";  // on a nonfinite loss or gradient: stop, skip or rollback
  std::string on_spike = "report";    // report, skip or rollback
  int64_t window = 128;               // preceding steps that a step is compared with; 0: no spike detection
  double threshold = 10;              // a value more than this many MADs above the median is a spike
  int64_t skip_limit = 10;            // consecutive steps that may be skipped; then the run has diverged
  int64_t rollback_limit = 3;         // rollbacks that may be made; then the run has diverged
  double rollback_rate = 0.5;         // multiplies the learning rate after each rollback
  bool pass_over = false;             // whether to pass over the batches since the checkpoint after a rollback

  bool operator==(const TroubleConfig&) const = default;

  [[nodiscard]] bool rolls_back() const { return on_nonfinite == "rollback" || on_spike == "rollback"; }
};
void describe(Fields& field, TroubleConfig& config);

/// Throws Error on unknown policies, values out of range, and combinations that cannot work.
void validate(const TroubleConfig& config);

/// What happened at a step and what was done about it; see docs/formats/run.md.
struct TroubleRecord {
  int64_t step = 0;
  Json values = Json::object();
};

/// A line of metrics.jsonl, {"step": …, "trouble": {…}}, and the reverse, which throws Error on a malformed record.
Json to_json(const TroubleRecord& record);
TroubleRecord trouble_record_from_json(const Json& json);

/// One line for the user.
std::string to_string(const TroubleRecord& record);

/// A number for JSON, with the strings "NaN", "Infinity" and "-Infinity" for nonfinite ones, and the reverse, which
/// throws Error on other strings.
Json exact_number(double value);
double exact_number_of(const Json& json);

}  // namespace plumb
