#include "plumb/trouble/trouble_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plumb/base/error.h"
#include "plumb/trouble/record_fields.h"

namespace plumb {
namespace {

using Action = StepJudgment::Action;
using Cause = StepJudgment::Cause;

/// Of the logarithms of updates: with the default threshold of 10, a spike is twice the median. There are many of them,
/// and with Adam they hardly vary from step to step, but drift as the gradients do.
constexpr double kLeastUpdateSpread = 0.07;

/// Of the logarithms of gradient norms and of the updates of tables: a spike is four and a half times the median. In
/// healthy runs, some batches of unusual sentences have two to three times the norm of the others, or read more rows.
constexpr double kLeastBatchSpread = 0.15;

/// "the loss is 2.1 times its median (14 MADs)".
std::string told(const Spike& spike) {
  return fmt::format("the {} is {:.3g} times its median ({:.3g} MADs)", spike.series, spike.ratio(), spike.deviations);
}

bool rose_before(const Spike& a, const Spike& b) {
  return a.since != b.since ? a.since < b.since : a.deviations > b.deviations;
}

std::string nonfinite_text(const StepNumbers& numbers) {
  if (!std::isfinite(numbers.loss)) return fmt::format("the loss is {}", numbers.loss);
  return fmt::format("the gradient's norm is {} (loss {:.4g})", numbers.gradient_norm, numbers.loss);
}

Action action_of(const std::string& policy) {
  if (policy == "skip") return Action::skip;
  if (policy == "rollback") return Action::rollback;
  return policy == "report" ? Action::update : Action::diverge;
}

}  // namespace

TroubleJudge::TroubleJudge(const TroubleConfig& config, const std::vector<UpdateSeries>& series, double loss_limit,
                           int64_t limit_from)
    : config_(config),
      loss_limit_(loss_limit),
      limit_from_(limit_from),
      loss_("loss", {.window = config.window, .threshold = config.threshold}),
      gradient_norm_("gradient norm", {config.window, config.threshold, kLeastBatchSpread}) {
  validate(config);
  if (!watches_spikes()) return;
  for (const auto& [name, table] : series) {
    const double spread = table ? kLeastBatchSpread : kLeastUpdateSpread;
    updates_.emplace_back("update of " + name, SpikeOptions{config.window, config.threshold, spread});
  }
}

void TroubleJudge::see_updates(int64_t step, double learning_rate, const std::vector<double>& norms) {
  if (!(learning_rate > 0)) return;
  if (norms.size() != updates_.size()) throw Error("the updates belong to another model");
  for (size_t i = 0; i < norms.size(); ++i) {
    if (norms[i] == 0) continue;  // frozen: its first update must not be a spike
    const double value = norms[i] / learning_rate;
    if (const auto spike = updates_[i].judge(step, value)) update_spikes_.push_back(*spike);
    updates_[i].add(value);
  }
}

Action TroubleJudge::allowed(Action wanted, std::string& text) const {
  if (wanted == Action::skip && skipped_in_row_ >= config_.skip_limit) {
    text += fmt::format("; {} steps in a row were skipped", skipped_in_row_);
    return Action::diverge;
  }
  if (wanted == Action::rollback && rollbacks_ >= config_.rollback_limit) {
    text += fmt::format("; {} rollbacks did not help", rollbacks_);
    return Action::diverge;
  }
  return wanted;
}

StepJudgment TroubleJudge::judge(const StepNumbers& numbers) {
  StepJudgment found;
  if (!std::isfinite(numbers.loss) || !std::isfinite(numbers.gradient_norm)) {
    found.cause = Cause::nonfinite;
    found.text = nonfinite_text(numbers);
    found.action = allowed(action_of(config_.on_nonfinite), found.text);
    found.spikes.swap(update_spikes_);
    return found;
  }
  const std::optional<Spike> loss = loss_.judge(numbers.step, numbers.loss);
  const std::optional<Spike> norm = gradient_norm_.judge(numbers.step, numbers.gradient_norm);
  loss_.add(numbers.loss);
  gradient_norm_.add(numbers.gradient_norm);
  std::vector<Spike> spikes;
  spikes.swap(update_spikes_);
  if (norm) spikes.push_back(*norm);
  if (loss) spikes.push_back(*loss);
  if (loss_limit_ > 0 && numbers.step > limit_from_ && numbers.loss > loss_limit_) {
    found.cause = Cause::limit;
    found.text = fmt::format("the loss {:.4g} is above {:.4g}", numbers.loss, loss_limit_);
    found.action = allowed(config_.rolls_back() ? Action::rollback : Action::diverge, found.text);
    found.spikes = std::move(spikes);
    return found;
  }
  if (spikes.empty()) return found;
  Action wanted = action_of(config_.on_spike);
  // An update that was made cannot be skipped.
  if (wanted == Action::skip && !loss && !norm) wanted = Action::update;
  if (wanted == Action::update)  // continuing spikes were reported before
    std::erase_if(spikes, [](const Spike& spike) { return spike.since != spike.step; });
  if (spikes.empty()) return found;
  std::stable_sort(spikes.begin(), spikes.end(), rose_before);
  found.cause = Cause::spike;
  found.text = told(spikes.front());
  if (spikes.front().step != numbers.step) found.text += fmt::format(" in step {}", spikes.front().step);
  if (const size_t others = spikes.size() - 1; others > 0)
    found.text += fmt::format("; {} other number{} rose as well", others, others == 1 ? "" : "s");
  found.action = allowed(wanted, found.text);
  found.spikes = std::move(spikes);
  return found;
}

void TroubleJudge::record(const StepJudgment& judgment, const StepNumbers& numbers,
                          const std::optional<InspectedStep>& inspected) {
  skipped_in_row_ = judgment.action == Action::skip ? skipped_in_row_ + 1 : 0;
  if (judgment.action == Action::skip) ++skipped_;
  if (judgment.cause == Cause::none) return;
  TroubleRecord record{numbers.step, judgment.cause,        judgment.action, judgment.text,
                       numbers.loss, numbers.gradient_norm, judgment.spikes};
  if (inspected) {
    record.findings = inspected->findings;
    record.text += ". " + inspected->text;
  }
  if (judgment.action == Action::skip) record.text += ". The step is skipped";
  if (judgment.action == Action::rollback) {
    ++rollbacks_;
    rate_factor_ *= config_.rollback_rate;
    if (config_.pass_over) pass_over_until_ = numbers.step;
    record.to = anchor_;
    record.rate_factor = rate_factor_;
    record.text += fmt::format(". Back to step {} with {} times the learning rate{}", anchor_, rate_factor_,
                               config_.pass_over ? ", passing over the batches since" : "");
  }
  records_.push_back(std::move(record));
}

void TroubleJudge::continue_from(const TroubleJudge& now) {
  records_ = now.records_;
  std::erase_if(records_, [this](const TroubleRecord& record) {
    return record.step > anchor_ && record.action != Action::rollback;
  });
  skipped_ = now.skipped_;
  skipped_in_row_ = 0;
  rollbacks_ = now.rollbacks_;
  rate_factor_ = now.rate_factor_;
  pass_over_until_ = now.pass_over_until_;
}

void describe(Fields& field, TroubleJudge& judge) {
  count(field, "skipped", judge.skipped_);
  count(field, "skipped_in_row", judge.skipped_in_row_);
  count(field, "rollbacks", judge.rollbacks_);
  field("rate_factor", judge.rate_factor_);
  count(field, "pass_over_until", judge.pass_over_until_);
  count(field, "anchor", judge.anchor_);
  field.section("loss", judge.loss_);
  field.section("gradient_norm", judge.gradient_norm_);
  const auto updates = [&judge](Fields& inner) {
    for (SpikeSeries& each : judge.updates_) inner.section(each.name(), each);
  };
  field.section("updates", updates, true);
  field.sections("update_spikes", judge.update_spikes_);
  field.sections("records", judge.records_);
}

}  // namespace plumb
