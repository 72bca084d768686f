#include "plumb/check/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "plumb/base/text.h"
#include "plumb/base/timing.h"
#include "plumb/check/gradient.h"
#include "plumb/check/prior.h"
#include "plumb/optim/schedule.h"
#include "plumb/plan/local_memory.h"
#include "plumb/trouble/record_fields.h"

namespace plumb::check {
namespace {

constexpr EnumNames<Verdict, 5> kNames = {{{Verdict::trains, "trains"},
                                           {Verdict::other_rate, "other_rate"},
                                           {Verdict::needs_warm_up, "needs_warm_up"},
                                           {Verdict::cannot, "cannot"},
                                           {Verdict::unknown, "unknown"}}};

constexpr int64_t kExamples = 32;        // that the measurements before training look at, or those of one step
constexpr double kMeasurements = 20;     // what they cost, in gradients of these examples
constexpr int64_t kTrial = 80;           // steps of a trial at its rate, at most
constexpr int64_t kShortest = 60;        // steps that a trial needs to show anything
constexpr int64_t kLongestWarmUp = 100;  // steps of a trial's warm-up, at most
constexpr int64_t kLeastWarmUp = 20;     // and at least, if as many are planned
constexpr double kNarrow = 1;            // octaves: an interval as narrow as this is not narrowed further
constexpr double kGain = 0.2;            // nats: trials are not compared before the best has gained as much
constexpr double kHopeless = 64;         // the factor by which rates were lowered in vain when nothing trains
constexpr double kSure = 0.8;            // probability of a verdict

/// The check of one subject, in parts that share the budget.
class Check {
 public:
  Check(const Subject& subject, const CheckOptions& options)
      : subject_(subject),
        options_(options),
        plan_(planned_schedule(subject)),
        trials_(subject, [this] { return stopped() || watch_.seconds() > options_.budget.seconds; }) {
    trial_ = std::min(kTrial, plan_.steps);
    shortest_ = std::min(kShortest, plan_.steps);
    result_.planned_rate = plan_.peak;
    result_.planned_warm_up = plan_.warm_up;
    result_.planned_steps = plan_.steps;
    result_.frequencies = trials_.yardstick().frequencies;
    next_seed_ = static_cast<int64_t>(options.seed);
  }

  CheckResult run() {
    look();
    search(without_, 0, 0.5);
    if (plan_.warm_up > 0) {
      begin_warm_up();
      if (result_.tried_warm_up > 0) search(with_, result_.tried_warm_up, 1);
    } else {
      try_warm_up();
      search(without_, 0, 1);
    }
    conclude();
    result_.cost.seconds = watch_.seconds();
    result_.planned_seconds = seconds_per_step_ * static_cast<double>(plan_.steps);
    result_.peak_memory = plan::peak_resident_memory();
    return std::move(result_);
  }

 private:
  [[nodiscard]] bool stopped() const { return options_.stop && options_.stop(); }

  /// Gradients that may still be spent.
  [[nodiscard]] int64_t left() const {
    int64_t most = options_.budget.gradients - result_.cost.gradients;
    if (std::isfinite(options_.budget.seconds)) {
      const double seconds = options_.budget.seconds - watch_.seconds();
      const double each = seconds_per_step_ > 0 ? seconds_per_step_ : first_gradient_seconds_;
      if (each > 0) most = std::min(most, static_cast<int64_t>(std::min(seconds / each, 1e15)));
    }
    return stopped() ? 0 : std::max<int64_t>(most, 0);
  }

  void say_progress(const std::string& what) const {
    if (!options_.progress) return;
    const double by_gradients =
        static_cast<double>(result_.cost.gradients) / static_cast<double>(options_.budget.gradients);
    options_.progress(what, std::min(1.0, std::max(by_gradients, watch_.seconds() / options_.budget.seconds)));
  }

  /// The alarms, and the belief before any trial.
  void look() {
    say_progress("measurements before training");
    Model& model = trials_.model();
    set_first_weights(subject_, model, options_.seed);
    const auto train = subject_.task->dataset("train");
    const TrainConfig& config = subject_.config.train;
    const int64_t of_step = config.batch_tokens * config.accumulate;
    int64_t examples = 0, tokens = 0;
    while (examples < std::min(kExamples, train->size()) && (examples == 0 || tokens < of_step))
      tokens += train->cost(examples++).larger();
    const std::vector<Batch> batches = evaluation_batches(*train, config.batch_tokens, examples);
    const Stopwatch watch;
    double loss = 0;
    std::vector<Tensor> gradient =
        gradient_of(*subject_.task, subject_.config.train.label_smoothing, model, batches, loss);
    const double share = static_cast<double>(tokens) / static_cast<double>(of_step);  // of a step
    first_gradient_seconds_ = watch.seconds() / share;
    Yardstick yardstick = trials_.yardstick();
    yardstick.first = loss;
    const Evidence evidence{.config = subject_.config.train,
                            .task = *subject_.task,
                            .model = model,
                            .train = *train,
                            .batches = batches,
                            .gradient = std::move(gradient),
                            .yardstick = yardstick,
                            .peak_rate = plan_.peak,
                            .warm_up = plan_.warm_up,
                            .steps = plan_.steps,
                            .random = begins_at_random(subject_)};
    result_.reasons = all_reasons(evidence, options_.stop);
    const Prior prior = first_belief(evidence);
    without_ = Belief(prior.belief);
    result_.critical_rate = prior.critical_rate;
    result_.cost.gradients += std::llround(std::ceil(kMeasurements * share));
  }

  Trial attempt(double rate, int64_t warm_up) {
    say_progress(fmt::format("trial at {:.2g}{}", rate, warm_up > 0 ? fmt::format(", warm-up {}", warm_up) : ""));
    const int64_t steps = std::min<int64_t>(left(), trial_ + warm_up);
    Trial trial = trials_.run({rate, warm_up, next_seed_++}, steps);
    result_.cost.gradients += trial.gradients;
    trial_seconds_ += trial.seconds;
    trial_steps_ += trial.gradients;
    if (trial_steps_ > 0) seconds_per_step_ = trial_seconds_ / static_cast<double>(trial_steps_);
    result_.trials.push_back(trial);
    return trial;
  }

  /// What is believed before any trial and now.
  struct Belief {
    explicit Belief(RateBelief before) : prior(before), now(std::move(before)) {}
    RateBelief prior, now;
  };

  /// The loss at the last step that both trials have measured.
  static std::pair<double, double> last_losses(const Trial& first, const Trial& second) {
    const size_t at = std::min(first.losses.size(), second.losses.size()) - 1;
    return {first.losses[at], second.losses[at]};
  }

  /// Whether a trial is too bad to count as stable: it has failed, or it lies above the best rate and has gained, below
  /// the frequencies, less than half of what that has.
  [[nodiscard]] bool failed(const Trial& trial, const Trial* best) const {
    if (trial.outcome == Outcome::fails) return true;
    if (best == nullptr || trial.learning_rate <= best->learning_rate || !begins_at_random(subject_)) return false;
    const auto [own, other] = last_losses(trial, *best);
    const double gain = result_.frequencies - other;
    return gain > kGain && result_.frequencies - own < gain / 2;
  }

  /// The belief after all trials with this warm-up.
  void update(Belief& belief, int64_t warm_up) const {
    const auto of_search = [&](const Trial& trial) {
      return trial.warm_up == warm_up && trial.outcome != Outcome::unknown;
    };
    const Trial* best = nullptr;
    for (const Trial& trial : result_.trials) {
      if (!of_search(trial) || trial.outcome == Outcome::fails) continue;
      if (best == nullptr) {
        best = &trial;
      } else if (const auto [own, other] = last_losses(trial, *best); own < other) {
        best = &trial;
      }
    }
    belief.now = belief.prior;
    for (const Trial& trial : result_.trials) {
      // What fails with a warm-up would fail without.
      const bool implied = trial.warm_up > warm_up && trial.outcome == Outcome::fails;
      if (implied || of_search(trial)) belief.now.see(trial.learning_rate, implied || failed(trial, best));
    }
  }

  /// Trials at the planned rate, unless it has been tried, and then where the belief is split, until it is narrow or
  /// its share of what is left is spent.
  void search(std::optional<Belief>& belief, int64_t warm_up, double share) {
    const auto reserve = static_cast<int64_t>((1 - share) * static_cast<double>(left()));
    while (left() - reserve >= shortest_ + warm_up) {
      const bool first = plan_.peak > 0 && !(warm_up > 0 && trains_at_plan(belief->now)) &&
                         std::none_of(result_.trials.begin(), result_.trials.end(), [&](const Trial& trial) {
                           return trial.warm_up == warm_up && trial.learning_rate == plan_.peak;
                         });
      if (!first && belief->now.estimate().octaves() < kNarrow) return;
      const double rate = first ? plan_.peak : belief->now.estimate().estimate;
      if (attempt(rate, warm_up).outcome == Outcome::unknown) return;
      update(*belief, warm_up);
      if (warm_up > 0) update(*without_, 0);
      ++seen_;
    }
  }

  /// The belief with a warm-up before any trial with it: a little above that without, as a warm-up does not lower the
  /// largest stable rate.
  void begin_warm_up() {
    const int64_t most = std::min(plan_.warm_up, kLongestWarmUp);
    const int64_t steps = std::min(left() - shortest_, most);
    result_.tried_warm_up = steps >= std::min(most, kLeastWarmUp) ? steps : 0;
    const RateEstimate without = without_->now.estimate();
    constexpr double kLift = 1.5, kOctaves = 1, kDeviationsOfInterval = 2.56;
    with_ =
        Belief(RateBelief(kLift * without.estimate, std::hypot(kOctaves, without.octaves() / kDeviationsOfInterval)));
  }

  /// Without a planned warm-up: whether one would let the planned rate train, if it rather does not.
  void try_warm_up() {
    if (plan_.warm_up > 0 || subject_.first_step > 0 || without_->now.quantile(0.5) >= plan_.peak) return;
    for (const int64_t warm_up : {kLongestWarmUp, kLongestWarmUp / 2}) {
      if (left() < warm_up + shortest_) return;
      const Outcome outcome = attempt(plan_.peak, warm_up).outcome;
      if (outcome != Outcome::trains && outcome != Outcome::slow) return;
      result_.shortest_warm_up = warm_up;
    }
  }

  [[nodiscard]] bool trains_at_plan(const RateBelief& belief) const {
    return plan_.peak > 0 && belief.quantile(1 - kSure) > plan_.peak;
  }
  [[nodiscard]] bool fails_at_plan(const RateBelief& belief) const { return belief.quantile(kSure) < plan_.peak; }

  [[nodiscard]] bool any_stable() const {
    return std::any_of(result_.trials.begin(), result_.trials.end(), [](const Trial& trial) {
      return trial.outcome == Outcome::trains || trial.outcome == Outcome::slow;
    });
  }

  /// Whether every trial has failed, down to rates so low that no lower one would help.
  [[nodiscard]] bool all_failed() const {
    const bool all = std::all_of(result_.trials.begin(), result_.trials.end(), [](const Trial& trial) {
      return trial.outcome == Outcome::fails || trial.outcome == Outcome::unknown;
    });
    return all && seen_ > 0 && plan_.peak > 0 && smallest_rate() <= plan_.peak / kHopeless;
  }

  void conclude() {
    const bool warms = plan_.warm_up > 0;
    const RateBelief& belief = warms ? with_->now : without_->now;
    const bool shortened = result_.tried_warm_up < plan_.warm_up;
    if (seen_ == 0) {
      decide(Verdict::unknown, fmt::format("cannot tell within this budget: give at least {} gradients",
                                           result_.cost.gradients + trial_ + result_.tried_warm_up));
      return;
    }
    result_.largest_stable_rate = belief.estimate();
    result_.largest_stable_rate_without_warm_up = without_->now.estimate();
    const double stable = belief.estimate().estimate;
    recommend(std::min(stable / 2, std::max(plan_.peak, stable / 4)) / plan_.factor, {});
    const std::string about = fmt::format("the largest stable rate is about {:.2g}", stable);
    if (all_failed()) {
      decide(Verdict::cannot,
             fmt::format("does not train: no trial learned anything, at rates down to {:.2g}", smallest_rate()));
      result_.recommended.reset();
    } else if (!any_stable() && fails_at_plan(belief) && !shortened) {
      decide(Verdict::other_rate, fmt::format("does not train at {:.2g}: no trial learned anything, at rates down to "
                                              "{:.2g}; lower ones were not tried",
                                              plan_.peak, smallest_rate()));
      result_.recommended.reset();
    } else if (!any_stable()) {
      decide(Verdict::unknown,
             fmt::format("cannot tell within this budget: no trial learned anything, at rates down to {:.2g}",
                         smallest_rate()));
      result_.recommended.reset();
    } else if (trains_at_plan(belief)) {
      decide(Verdict::trains,
             fmt::format("trains as configured: {}, {:.2g} times the configured one", about, stable / plan_.peak));
      if (warms && trains_at_plan(without_->now)) result_.shortest_warm_up = 0;
      if (warms && !result_.shortest_warm_up && result_.tried_warm_up > 0)
        result_.shortest_warm_up = result_.tried_warm_up;
      recommend(subject_.config.train.learning_rate, {});
    } else if (!warms && result_.shortest_warm_up) {
      const int64_t steps = *result_.shortest_warm_up;
      decide(Verdict::needs_warm_up,
             fmt::format("trains only with warm-up: {} steps were enough at {:.2g}; without, {}", steps, plan_.peak,
                         about));
      recommend(subject_.config.train.learning_rate, 2 * steps);
    } else if (fails_at_plan(belief) && !shortened) {
      decide(Verdict::other_rate, fmt::format("does not train at {:.2g}: {}", plan_.peak, about));
    } else if (fails_at_plan(belief)) {
      decide(
          Verdict::unknown,
          fmt::format("cannot tell within this budget: {}, {}, below {:.2g}, but the planned warm-up of {} steps may "
                      "be enough",
                      result_.tried_warm_up > 0 ? fmt::format("after one of {} steps", result_.tried_warm_up)
                                                : "without warm-up",
                      about, plan_.peak, with_thousands(plan_.warm_up)));
    } else {
      decide(Verdict::unknown,
             fmt::format("cannot tell within this budget: the largest stable rate lies between {:.2g} and {:.2g}, and "
                         "the configured one is {:.2g}",
                         belief.estimate().low, belief.estimate().high, plan_.peak));
    }
  }

  void decide(Verdict verdict, std::string answer) {
    result_.verdict = verdict;
    result_.answer = std::move(answer);
  }

  /// `warm_up`: in place of the planned one. A run that goes on keeps its settings.
  void recommend(double rate, std::optional<int64_t> warm_up) {
    if (subject_.first_step > 0) return;
    result_.recommended = Recommendation{.learning_rate = rate, .warm_up = warm_up, .schedule = {}};
    const std::string& schedule = subject_.config.train.schedule;
    const bool linear = has_schedule_factor(schedule, "linear_warmup");
    if (!warm_up && linear) result_.recommended->warm_up = plan_.warm_up;
    if (warm_up && !linear) result_.recommended->schedule = schedule + " * linear_warmup";
  }

  [[nodiscard]] double smallest_rate() const {
    double smallest = std::numeric_limits<double>::infinity();
    for (const Trial& trial : result_.trials) {
      if (trial.outcome != Outcome::unknown) smallest = std::min(smallest, trial.learning_rate);
    }
    return smallest;
  }

  const Subject& subject_;
  const CheckOptions& options_;
  const Stopwatch watch_;
  PlannedSchedule plan_;
  Trials trials_;
  CheckResult result_;
  std::optional<Belief> with_, without_;  // with the tried warm-up, and without
  int64_t next_seed_ = 1;
  int64_t trial_ = 0, shortest_ = 0;  // steps: kTrial and kShortest, or all of a shorter run
  int64_t seen_ = 0;                  // trials that said something
  double first_gradient_seconds_ = 0;
  double trial_seconds_ = 0;
  int64_t trial_steps_ = 0;
  double seconds_per_step_ = 0;
};

}  // namespace

std::string to_string(Verdict verdict) { return name_of(verdict, kNames); }

int exit_status(const CheckResult& result) {
  constexpr int kOtherwise = 3, kUnknown = 4;
  if (result.verdict == Verdict::trains) return 0;
  return result.verdict == Verdict::unknown ? kUnknown : kOtherwise;
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
}

void describe(Fields& field, Cost& cost) {
  field("gradients", cost.gradients);
  field("seconds", cost.seconds);
}

void describe(Fields& field, CheckResult& result) {
  named(field, "verdict", result.verdict, kNames);
  field("answer", result.answer);
  field("planned_rate", result.planned_rate);
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
  field.sections("reasons", result.reasons);
  field.sections("trials", result.trials);
}

CheckResult run_check(const Subject& subject, const CheckOptions& options) { return Check(subject, options).run(); }

}  // namespace plumb::check
