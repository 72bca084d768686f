#include "plumb/train/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string_view>

#include "plumb/base/config.h"
#include "plumb/base/error.h"
#include "plumb/base/text.h"
#include "plumb/model/kind.h"

namespace plumb {
namespace {

/// Limits memory: 8 bytes per planned step.
constexpr int64_t kMostPlannedSteps = 100'000'000;

}  // namespace

int64_t Timeline::run_steps() {
  if (most_steps_.unit() == Duration::Unit::runs || most_steps_.is_zero())
    throw Error(fmt::format("train.steps = {} says nothing about the length of a run", most_steps_.text()),
                "give a number of steps, tokens such as \"10Mt\", or epochs such as \"2e\"");
  const int64_t steps = first_step(most_steps_);
  if (most_epochs_ == 0) return steps;
  while (planned_steps() < steps && planned_epochs() < most_epochs_) plan_epoch();
  return planned_epochs() < most_epochs_ ? steps : std::min(steps, epoch_ends_[static_cast<size_t>(most_epochs_)]);
}

int64_t Timeline::first_step(const Duration& duration) {
  const int64_t amount = duration.amount();
  if (duration.unit() == Duration::Unit::steps) return amount;
  if (duration.unit() == Duration::Unit::runs) {
    const int64_t whole = amount / Duration::kParts, parts = amount % Duration::kParts, steps = run_steps();
    return whole * steps + (parts * steps + Duration::kParts - 1) / Duration::kParts;
  }
  if (duration.unit() == Duration::Unit::tokens) {
    while (tokens_.back() < amount) plan_epoch();
    return std::lower_bound(tokens_.begin(), tokens_.end(), amount) - tokens_.begin();
  }
  const int64_t epochs = amount / Duration::kParts, parts = amount % Duration::kParts;
  while (planned_epochs() < epochs + (parts > 0 ? 1 : 0)) plan_epoch();
  const int64_t begin = epoch_ends_[static_cast<size_t>(epochs)];
  if (parts == 0) return begin;
  const int64_t steps = epoch_ends_[static_cast<size_t>(epochs) + 1] - begin;
  return begin + (parts * steps + Duration::kParts - 1) / Duration::kParts;
}

bool Timeline::due(const Duration& period, int64_t step) {
  if (period.amount() <= 0 || step <= 0) return false;
  return seen(period.unit(), step) / period.amount() > seen(period.unit(), step - 1) / period.amount();
}

std::vector<int64_t> Timeline::due_steps(const Duration& period, int64_t last) {
  std::vector<int64_t> steps;
  if (period.amount() <= 0) return steps;
  const int64_t stride = period.unit() == Duration::Unit::steps ? period.amount() : 1;
  for (int64_t step = stride; step <= last; step += stride) {
    if (due(period, step)) steps.push_back(step);
  }
  return steps;
}

std::optional<int64_t> Timeline::first_due(const Duration& period, int64_t steps, int64_t epochs) {
  for (int64_t step = 1; step <= steps; ++step) {
    if (epochs > 0 && seen(Duration::Unit::epochs, step) > epochs * Duration::kParts) break;
    if (due(period, step)) return step;
  }
  return std::nullopt;
}

int64_t Timeline::seen(Duration::Unit unit, int64_t step) {
  if (unit == Duration::Unit::steps) return step;
  if (unit == Duration::Unit::runs) {
    const int64_t steps = run_steps(), whole = step / steps;
    return whole * Duration::kParts + step % steps * Duration::kParts / steps;
  }
  while (planned_steps() < step) plan_epoch();
  if (unit == Duration::Unit::tokens) return tokens_[static_cast<size_t>(step)];
  // The last epoch end that is not after the step.
  const auto after = std::upper_bound(epoch_ends_.begin(), epoch_ends_.end(), step);
  const auto end = after - 1;
  const int64_t whole = (end - epoch_ends_.begin()) * Duration::kParts;
  return *end == step ? whole : whole + (step - *end) * Duration::kParts / (*after - *end);
}

void Timeline::plan_epoch() {
  const std::vector<int64_t> tokens = tokens_of_(planned_epochs());
  if (std::accumulate(tokens.begin(), tokens.end(), int64_t{0}) == 0)
    throw Error("the training split is empty", "prepare the data again");
  for (const int64_t more : tokens) tokens_.push_back(tokens_.back() + more);
  epoch_ends_.push_back(std::ssize(tokens_) - 1);
  if (planned_steps() > kMostPlannedSteps) {
    throw Error(fmt::format("a duration in tokens or epochs takes more than {} steps of this run",
                            with_thousands(kMostPlannedSteps)),
                "shorten the durations of [train] and [watch]");
  }
}

std::vector<int64_t> tokens_of_steps(const ExampleCosts& costs, const BatchPlan& plan, int64_t accumulate,
                                     const std::string& kind) {
  std::vector<int64_t> tokens(static_cast<size_t>((plan.size() + accumulate - 1) / accumulate), 0);
  int64_t number = 0;  // of the batch
  for (int64_t window = 0; window < plan.windows(); ++window) {
    const auto batches = plan.window(window);
    for (const std::vector<int64_t>& batch : *batches) {
      int64_t& sum = tokens[static_cast<size_t>(number++ / accumulate)];
      for (const int64_t example : batch) {
        const ExampleCost cost = costs[example];
        sum += model_kind(kind).only_encodes() ? cost.source : cost.target;
      }
    }
  }
  return tokens;
}

Timeline make_timeline(const ExampleCosts& costs, const TrainConfig& config, const PlanSettings& settings,
                       const std::string& kind) {
  validate(config);
  const auto tokens_of_epoch = [costs, settings, kind, accumulate = config.accumulate](int64_t epoch) {
    return tokens_of_steps(costs, BatchPlan(costs, settings, epoch), accumulate, kind);
  };
  return Timeline(tokens_of_epoch, config.steps, config.epochs);
}

namespace {

/// Collects the durations among the options of optimizers and schedule factors.
class Durations final : public EachField<Durations> {
 public:
  struct Found {
    std::string key;  // "train.step_decay.at"
    Duration* value;
  };

  explicit Durations(VariantOptions& options) {
    for (auto& [name, own] : options) {
      section_ = "train." + name + ".";
      own.visit(*this);
    }
  }
  [[nodiscard]] const std::vector<Found>& found() const { return found_; }

  void take(std::string_view key, Duration& value) { found_.push_back({section_ + std::string(key), &value}); }
  void take(std::string_view key, std::vector<Duration>& value) {
    for (Duration& each : value) take(key, each);
  }
  template <typename T>
  void take(std::string_view, T&) {}
  void section(std::string_view, const std::function<void(Fields&)>& visit, bool) override { visit(*this); }
  void sections(std::string_view, size_t count, const std::function<void(size_t)>&,
                const std::function<void(size_t, Fields&)>& visit) override {
    for (size_t i = 0; i < count; ++i) visit(i, *this);
  }

 private:
  std::string section_;
  std::vector<Found> found_;
};

}  // namespace

TrainConfig resolved(TrainConfig config, Timeline& timeline) {
  const Durations among_options(config.options);
  for (const auto& [key, value] : among_options.found()) *value = timeline.first_step(*value);
  for (Duration* each : {&config.warm_up, &config.decay_start}) *each = timeline.first_step(*each);
  config.steps = config.epochs > 0 ? timeline.run_steps() : timeline.first_step(config.steps);
  for (ParameterGroup& group : config.groups) {
    group.warm_up = timeline.first_step(group.warm_up);
    for (Duration* each : {&group.frozen_until, &group.frozen_again_from, &group.frozen_again_until}) {
      if (each->unit() != Duration::Unit::steps) *each = timeline.first_step(*each) + 1;  // the first step after it
    }
  }
  return config;
}

std::string durations_summary(const TrainConfig& config, const Duration& watch_every, Timeline& timeline) {
  const TrainConfig in_steps = resolved(config, timeline);
  std::vector<std::string> parts;
  const auto add = [&](const std::string& key, const Duration& value, const std::string& meaning) {
    parts.push_back(fmt::format("{} = {} ({})", key, value.text(), meaning));
  };
  const auto length = [&](const std::string& key, const Duration& value, const Duration& steps) {
    if (value.unit() != Duration::Unit::steps)
      add(key, value, with_thousands(steps.in_steps()) + (steps == 1 ? " step" : " steps"));
  };
  const auto period = [&](const char* key, const Duration& value) {
    if (value.unit() == Duration::Unit::steps) return;
    const auto first = timeline.first_due(value, in_steps.steps.in_steps(), config.epochs);
    add(key, value, first ? "first at step " + with_thousands(*first) : "not within the run");
  };
  length("train.warm_up", config.warm_up, in_steps.warm_up);
  length("train.decay_start", config.decay_start, in_steps.decay_start);
  length("train.steps", config.steps, in_steps.steps);
  VariantOptions given_options = config.options, options_in_steps = in_steps.options;
  const Durations given_durations(given_options), durations_in_steps(options_in_steps);
  for (size_t i = 0; i < given_durations.found().size(); ++i) {
    const auto& [key, value] = given_durations.found()[i];
    length(key, *value, *durations_in_steps.found()[i].value);
  }
  for (size_t i = 0; i < config.groups.size(); ++i) {
    const ParameterGroup &given = config.groups[i], &found = in_steps.groups[i];
    length("train.groups.warm_up", given.warm_up, found.warm_up);
    length("frozen_until", given.frozen_until, found.frozen_until.in_steps() - 1);
    length("frozen_again_from", given.frozen_again_from, found.frozen_again_from.in_steps() - 1);
    length("frozen_again_until", given.frozen_again_until, found.frozen_again_until.in_steps() - 1);
  }
  period("train.log_every", config.log_every);
  period("train.validate_every", config.validate_every);
  period("train.score_every", config.score_every);
  period("train.checkpoint_every", config.checkpoint_every);
  period("train.keep_every", config.keep_every);
  period("watch.every", watch_every);
  return parts.empty() ? "" : "durations: " + join(parts);
}

}  // namespace plumb
