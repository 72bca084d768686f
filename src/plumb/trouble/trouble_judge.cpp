#include "plumb/trouble/trouble_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plumb/base/error.h"

namespace plumb {
namespace {

using Action = StepJudgment::Action;
using Cause = StepJudgment::Cause;

const char* name_of(Action action) {
  switch (action) {
    case Action::skip:
      return "skip";
    case Action::rollback:
      return "rollback";
    case Action::diverge:
      return "stop";
    default:
      return "none";
  }
}

const char* name_of(Cause cause) {
  switch (cause) {
    case Cause::nonfinite:
      return "nonfinite";
    case Cause::limit:
      return "limit";
    case Cause::spike:
      return "spike";
    default:
      return "none";
  }
}

/// "the loss is 2.1 times its median (14 MADs above it)".
std::string told(const Spike& spike) {
  return fmt::format("the {} is {:.3g} times its median ({:.3g} MADs above it)", spike.series, spike.ratio(),
                     spike.deviations);
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

TroubleJudge::TroubleJudge(const TroubleConfig& config, const std::vector<std::string>& series, double loss_limit,
                           int64_t limit_from)
    : config_(config),
      loss_limit_(loss_limit),
      limit_from_(limit_from),
      loss_("loss", {config.window, config.threshold}),
      gradient_norm_("gradient norm", {config.window, config.threshold}) {
  validate(config);
  if (!watches_spikes()) return;
  for (const std::string& name : series)
    updates_.emplace_back("update of " + name, SpikeOptions{config.window, config.threshold});
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

void TroubleJudge::record(const StepJudgment& judgment, const StepNumbers& numbers, const Json& findings) {
  skipped_in_row_ = judgment.action == Action::skip ? skipped_in_row_ + 1 : 0;
  if (judgment.action == Action::skip) ++skipped_;
  if (judgment.cause == Cause::none) return;
  TroubleRecord record{numbers.step, Json::object()};
  record.values["kind"] = name_of(judgment.cause);
  record.values["action"] = name_of(judgment.action);
  record.values["loss"] = exact_number(numbers.loss);
  record.values["gradient_norm"] = exact_number(numbers.gradient_norm);
  for (const Spike& spike : judgment.spikes) record.values["spikes"].push_back(to_json(spike));
  if (judgment.action == Action::rollback) {
    ++rollbacks_;
    rate_factor_ *= config_.rollback_rate;
    if (config_.pass_over) pass_over_until_ = numbers.step;
    record.values["to"] = anchor_;
    record.values["rate_factor"] = rate_factor_;
  }
  for (const auto& [key, value] : findings.items()) record.values[key] = value;
  std::string text = judgment.text;
  if (findings.contains("text")) text += ". " + findings["text"].get<std::string>();
  if (judgment.action == Action::skip) text += ". The step is skipped";
  if (judgment.action == Action::rollback) {
    text += fmt::format(". Back to step {} with {} times the learning rate{}", anchor_, rate_factor_,
                        config_.pass_over ? ", passing over the batches since" : "");
  }
  record.values["text"] = text;
  records_.push_back(std::move(record));
}

void TroubleJudge::return_to(const Json& state) {
  const TroubleJudge now = *this;
  load_state(state);
  records_ = now.records_;
  std::erase_if(records_, [this](const TroubleRecord& record) {
    return record.step > anchor_ && record.values.value("action", std::string()) != name_of(Action::rollback);
  });
  skipped_ = now.skipped_;
  skipped_in_row_ = 0;
  rollbacks_ = now.rollbacks_;
  rate_factor_ = now.rate_factor_;
  pass_over_until_ = now.pass_over_until_;
}

Json TroubleJudge::state() const {
  Json json = {{"skipped", skipped_},         {"skipped_in_row", skipped_in_row_},      {"rollbacks", rollbacks_},
               {"rate_factor", rate_factor_}, {"pass_over_until", pass_over_until_},    {"anchor", anchor_},
               {"loss", loss_.state()},       {"gradient_norm", gradient_norm_.state()}};
  for (const SpikeSeries& each : updates_) json["updates"][each.name()] = each.state();
  for (const Spike& spike : update_spikes_) json["update_spikes"].push_back(to_json(spike));
  for (const TroubleRecord& record : records_) json["records"].push_back(to_json(record));
  return json;
}

void TroubleJudge::load_state(const Json& json) {
  if (json.is_null()) return;
  skipped_ = count_of(json.at("skipped"));
  skipped_in_row_ = count_of(json.at("skipped_in_row"));
  rollbacks_ = count_of(json.at("rollbacks"));
  rate_factor_ = json.at("rate_factor");
  pass_over_until_ = count_of(json.at("pass_over_until"));
  anchor_ = count_of(json.at("anchor"));
  loss_.load_state(json.at("loss"));
  gradient_norm_.load_state(json.at("gradient_norm"));
  const Json updates = json.value("updates", Json::object());
  for (SpikeSeries& each : updates_) {
    if (updates.contains(each.name())) each.load_state(updates[each.name()]);
  }
  update_spikes_.clear();
  for (const Json& spike : json.value("update_spikes", Json::array())) update_spikes_.push_back(spike_from_json(spike));
  records_.clear();
  for (const Json& record : json.value("records", Json::array())) records_.push_back(trouble_record_from_json(record));
}

}  // namespace plumb
