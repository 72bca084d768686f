#include "plumb/trouble/trouble.h"

#include <fmt/format.h>

#include "plumb/base/error.h"
#include "plumb/trouble/record_fields.h"

namespace plumb {
namespace {

constexpr EnumNames<TroubleCause, 4> kCauses = {{{TroubleCause::none, "none"},
                                                 {TroubleCause::nonfinite, "nonfinite"},
                                                 {TroubleCause::limit, "limit"},
                                                 {TroubleCause::spike, "spike"}}};
constexpr EnumNames<TroubleAction, 4> kActions = {{{TroubleAction::update, "none"},
                                                   {TroubleAction::skip, "skip"},
                                                   {TroubleAction::rollback, "rollback"},
                                                   {TroubleAction::diverge, "stop"}}};

}  // namespace

void describe(Fields& field, TroubleConfig& config) {
  constexpr double kLongestWindow = 1e4, kMost = 1e6;
  field("on_nonfinite", config.on_nonfinite,
        "a loss or gradient that is not finite: `stop` ends the run as diverged; `skip` leaves parameters and "
        "optimizer unchanged and continues with the next batch; `rollback` returns to the last checkpoint",
        one_of({"stop", "skip", "rollback"}));
  field("on_spike", config.on_spike,
        "`report` records it and trains on; `skip` and `rollback` as above. The spike of an update is known after it "
        "has been made, so `skip` only reports it",
        one_of({"report", "skip", "rollback"}));
  field("window", config.window, "preceding steps that a step is compared with; 0: no spikes are looked for",
        within(0, kLongestWindow).in("steps"));
  field("threshold", config.threshold, "how far above the median a spike is, on the logarithmic scale",
        within(1, kMost).in("MADs"));
  field("skip_limit", config.skip_limit, "more than this many skipped steps in a row count as divergence",
        within(1, kMost));
  field("rollback_limit", config.rollback_limit, "more than this many rollbacks count as divergence", within(1, kMost));
  field("rollback_rate", config.rollback_rate, "multiplies the learning rate from each rollback on", within(0, 1));
  field("pass_over", config.pass_over,
        "a rollback also passes over the batches from its checkpoint to the trouble, the one in trouble included: they "
        "count as steps without an update");
}

void validate(const TroubleConfig& config) {
  require_valid("train.trouble", config);
  if (config.rolls_back() && config.rollback_rate == 1 && !config.pass_over) {
    throw Error(
        "train.trouble: after a rollback with rollback_rate = 1.0 and without pass_over, the same trouble would follow",
        "lower rollback_rate, or set pass_over = true");
  }
  if (config.on_spike != "report" && config.window == 0) {
    throw Error(fmt::format("train.trouble.on_spike = \"{}\" needs a window", config.on_spike),
                "set train.trouble.window, such as 128");
  }
}

void describe(Fields& field, Findings::Forward& forward) {
  field("where", forward.where);
  field("largest_before", forward.largest_before);
}

void describe(Fields& field, Findings::Again& again) {
  field("loss", again.loss);
  field("gradient_norm", again.gradient_norm);
}

void describe(Fields& field, Findings& findings) {
  field("parameter", findings.parameter);
  field.section("forward", findings.forward);
  field("examples", findings.examples);
  field("batch", findings.batch);
  field("backward", findings.backward);
  field("gradient", findings.gradient);
  field.section("again", findings.again);
}

void describe(Fields& field, TroubleRecord& record) {
  count(field, "step", record.step);
  field.section(
      "trouble",
      [&record](Fields& inner) {
        named(inner, "kind", record.cause, kCauses);
        named(inner, "action", record.action, kActions);
        inner("text", record.text);
        inner("loss", record.loss);
        inner("gradient_norm", record.gradient_norm);
        inner.sections("spikes", record.spikes);
        inner.section("findings", record.findings);
        inner("to", record.to);
        inner("rate_factor", record.rate_factor);
      },
      true);
}

std::string to_string(const TroubleRecord& record) { return fmt::format("step {}: {}", record.step, record.text); }

}  // namespace plumb
