// Numerical trouble of a training run: what is done about it, [train.trouble], and how it is recorded.
#pragma once

#include <cstdint>
#include <string>

#include "plumb/base/config.h"
#include "plumb/base/json.h"

namespace plumb {

/// [train.trouble]
struct TroubleConfig {
  std::string on_nonfinite = "stop";  // a loss or gradient that is not finite: stop, skip or rollback
  std::string on_spike = "report";    // report, skip or rollback
  int64_t window = 128;               // steps whose values a step's are compared with; 0: no spikes
  double threshold = 10;              // MADs above the median from which on a value is a spike
  int64_t skip_limit = 10;            // steps in a row that may be skipped before the run has diverged
  int64_t rollback_limit = 3;         // rollbacks before the run has diverged
  double rollback_rate = 0.5;         // multiplies the learning rate after each rollback
  bool pass_over = false;             // whether a rollback passes over the batches since the checkpoint

  bool operator==(const TroubleConfig&) const = default;

  [[nodiscard]] bool rolls_back() const { return on_nonfinite == "rollback" || on_spike == "rollback"; }
};
void describe(Fields& field, TroubleConfig& config);

/// Throws Error on unknown policies and on values out of range.
void validate(const TroubleConfig& config);

/// What happened at a step, and what was done: see docs/formats/run.md.
struct TroubleRecord {
  int64_t step = 0;
  Json values = Json::object();
};

/// A line of metrics.jsonl: {"step": …, "trouble": {…}}.
Json to_json(const TroubleRecord& record);
TroubleRecord trouble_record_from_json(const Json& json);

/// One line for people.
std::string to_string(const TroubleRecord& record);

/// A number for JSON, which has none that are not finite: those are the strings "NaN", "Infinity" and "-Infinity".
Json exact_number(double value);
double exact_number_of(const Json& json);

}  // namespace plumb
