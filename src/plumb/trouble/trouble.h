// Numerical trouble in a training run: the response to it, [train.trouble], and its records.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plumb/base/config.h"
#include "plumb/trouble/findings.h"
#include "plumb/trouble/spikes.h"

namespace plumb {

/// [train.trouble]
struct TroubleConfig {
  std::string on_nonfinite = "stop";
  std::string on_spike = "report";
  int64_t window = 128;
  double threshold = 10;
  int64_t skip_limit = 10;
  int64_t rollback_limit = 3;
  double rollback_rate = 0.5;
  bool pass_over = false;

  bool operator==(const TroubleConfig&) const = default;

  [[nodiscard]] bool rolls_back() const { return on_nonfinite == "rollback" || on_spike == "rollback"; }
};
void describe(Fields& field, TroubleConfig& config);

/// Throws Error on values out of range, and on combinations that cannot work.
void validate(const TroubleConfig& config);

enum class TroubleCause { none, nonfinite, limit, spike };
enum class TroubleAction { update, skip, rollback, diverge };

/// What happened at a step and what was done about it: a line of metrics.jsonl, {"step": …, "trouble": {…}}; see
/// docs/formats/run.md.
struct TroubleRecord {
  int64_t step = 0;
  TroubleCause cause = TroubleCause::none;
  TroubleAction action = TroubleAction::update;
  std::string text;  // all of it in words
  double loss = 0;
  double gradient_norm = 0;
  std::vector<Spike> spikes{};
  std::optional<Findings> findings{};   // if the step was repeated with checks
  std::optional<int64_t> to{};          // a rollback: the step of the checkpoint
  std::optional<double> rate_factor{};  // and the factor of the learning rate from there on
};
void describe(Fields& field, TroubleRecord& record);

/// One line for the user.
std::string to_string(const TroubleRecord& record);

}  // namespace plumb
