#include "plumb/check/result.h"

#include <fmt/format.h>

#include "plumb/trouble/record_fields.h"

namespace plumb::check {
namespace {

constexpr EnumNames<CheckAnswer, 5> kAnswerNames = {{{CheckAnswer::trains, "trains"},
                                                     {CheckAnswer::other_rate, "other_rate"},
                                                     {CheckAnswer::needs_warm_up, "needs_warm_up"},
                                                     {CheckAnswer::cannot, "cannot"},
                                                     {CheckAnswer::unknown, "unknown"}}};

}  // namespace

std::string to_string(CheckAnswer answer) { return name_of(answer, kAnswerNames); }

int exit_status(const CheckResult& result) {
  constexpr int kOtherwise = 3, kUnknown = 4;
  if (result.verdict == CheckAnswer::trains) return 0;
  return result.verdict == CheckAnswer::unknown ? kUnknown : kOtherwise;
}

std::string to_string(const Recommendation& recommendation) {
  std::string text = fmt::format("train.learning_rate = {:.2g}", recommendation.learning_rate);
  if (recommendation.warm_up) text += fmt::format(", train.warm_up = {}", *recommendation.warm_up);
  if (!recommendation.schedule.empty()) text += fmt::format(", train.schedule = \"{}\"", recommendation.schedule);
  return text;
}

void describe(Fields& field, Recommendation& recommendation) {
  field("learning_rate", recommendation.learning_rate);
  field("warm_up", recommendation.warm_up);
  field("schedule", recommendation.schedule);
  field("tried", recommendation.tried);
  field("loss_above_best", recommendation.loss_above_best);
  field("most_loss_above_best", recommendation.most_loss_above_best);
  field.section("gain", recommendation.gain);
  field.section("gain_of_warm_up", recommendation.gain_of_warm_up);
}

void describe(Fields& field, Change& change) {
  field("setting", change.setting);
  field.section("trial", change.trial);
  field("gain", change.gain);
}

void describe(Fields& field, Cost& cost) {
  field("gradients", cost.gradients);
  field("seconds", cost.seconds);
}

bool recommends_as_configured(const CheckResult& result) {
  if (!result.recommended || result.recommended->learning_rate != result.configured_rate) return false;
  return result.recommended->warm_up.value_or(result.planned_warm_up) == result.planned_warm_up;
}

void describe(Fields& field, CheckResult& result) {
  named(field, "verdict", result.verdict, kAnswerNames);
  field("checked", result.checked);
  field("answer", result.answer);
  field("planned_rate", result.planned_rate);
  field("configured_rate", result.configured_rate);
  field("planned_warm_up", result.planned_warm_up);
  field("planned_steps", result.planned_steps);
  field("tried_warm_up", result.tried_warm_up);
  field.section("largest_stable_rate", result.largest_stable_rate);
  field.section("largest_stable_rate_without_warm_up", result.largest_stable_rate_without_warm_up);
  field.section("recommended", result.recommended);
  field("critical_rate", result.critical_rate);
  field("shortest_warm_up", result.shortest_warm_up);
  field("frequencies", result.frequencies);
  field.section("cost", result.cost);
  field("planned_seconds", result.planned_seconds);
  field("peak_memory", result.peak_memory);
  field.sections("reasons", result.findings);
  field.sections("trials", result.trials);
  field.sections("changes", result.changes);
}

}  // namespace plumb::check
