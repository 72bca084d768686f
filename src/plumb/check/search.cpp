#include "plumb/check/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "plumb/base/text.h"
#include "plumb/base/timing.h"
#include "plumb/check/compared_trials.h"
#include "plumb/check/conclusion.h"

namespace plumb::check {
namespace {

constexpr int64_t kLeastWarmUp = 20;   // steps of a trial's warm-up, at least, if as many are planned
constexpr int64_t kUsualWarmUp = 100;  // and at most in a trial of 80 steps; in longer ones, more in proportion
constexpr double kNarrow = 1;          // octaves: an interval as narrow as this is only narrowed further for a verdict
constexpr double kNarrowest = 0.4;     // octaves: the planned rate lies so near to the edge that trials disagree

/// Steps of a trial at its rate. Three or four trials find the edge, and the longer they are, the more they tell of the
/// run, up to 300: replayed on the runs of docs/check.md, more budget helps so, and not as more trials of 80 steps.
int64_t steps_of_trial(int64_t budget, int64_t run) {
  constexpr int64_t kThreeUpTo = 160, kLongest = 300;
  const int64_t steps = std::max({kBriefTrial, std::min(budget / 3, kThreeUpTo), std::min(budget / 4, kLongest)});
  return std::min({steps, std::max(kBriefTrial, run / 4), run});
}

/// The search of one run's rates. The trials without warm-up and those with it share the budget.
class Search {
 public:
  Search(const SearchPlan& plan, RateBelief before, const SearchHooks& hooks, CheckResult& result)
      : given_(plan), plan_(plan.schedule), hooks_(hooks), result_(result), without_(Belief(std::move(before))) {
    trial_ = steps_of_trial(left(), plan_.steps);
    shortest_ = trial_ * 3 / 4;
    longest_warm_up_ = std::max(kUsualWarmUp, trial_ * 5 / 4);
    result_.planned_rate = plan_.peak;
    result_.configured_rate = given_.configured_rate;
    result_.planned_warm_up = plan_.warm_up;
    result_.planned_steps = plan_.steps;
    next_seed_ = static_cast<int64_t>(plan.seed);
  }

  void run() {
    search(without_, 0, 0.5);
    if (plan_.warm_up > 0) {
      // Trials without a warm-up are shorter, and tell more as long as they answer the question about the planned rate.
      if (trains_at_plan(without_->now, given_)) search(without_, 0, 1, true);
      begin_warm_up();
      if (result_.tried_warm_up > 0) search(with_, result_.tried_warm_up, 1);
      const auto warmed = [](const Trial& trial) { return trial.warm_up > 0; };
      if (std::none_of(result_.trials.begin(), result_.trials.end(), warmed)) result_.tried_warm_up = 0;
    } else {
      try_warm_up();
      search(without_, 0, 1);
    }
    conclude();
    result_.cost.seconds = seconds();
    result_.planned_seconds = seconds_per_step_ * static_cast<double>(plan_.steps);
  }

 private:
  [[nodiscard]] double seconds() const { return given_.seconds + watch_.seconds(); }
  [[nodiscard]] bool stopped() const { return hooks_.stop && hooks_.stop(); }

  /// Gradients that may still be spent.
  [[nodiscard]] int64_t left() const {
    int64_t most = given_.budget.gradients - result_.cost.gradients;
    if (std::isfinite(given_.budget.seconds)) {
      const double unspent = given_.budget.seconds - seconds();
      const double each = seconds_per_step_ > 0 ? seconds_per_step_ : given_.seconds_per_gradient;
      if (each > 0) most = std::min(most, static_cast<int64_t>(std::min(unspent / each, 1e15)));
    }
    return stopped() ? 0 : std::max<int64_t>(most, 0);
  }

  void say_progress(const std::string& what) const {
    if (!hooks_.progress) return;
    const double by_gradients =
        static_cast<double>(result_.cost.gradients) / static_cast<double>(given_.budget.gradients);
    hooks_.progress(what, std::min(1.0, std::max(by_gradients, seconds() / given_.budget.seconds)));
  }

  /// A trial that keeps these gradients for others.
  Trial attempt(double rate, int64_t warm_up, int64_t reserve = 0) {
    const double all = trial_steps_ > 0 ? 0 : given_.seconds_per_gradient * static_cast<double>(left());
    say_progress(fmt::format("trial at {:.2g}{}{}", rate, warm_up > 0 ? fmt::format(", warm-up {}", warm_up) : "",
                             all > 0 ? fmt::format("; all trials take about {}", duration(all)) : ""));
    const int64_t steps = std::min<int64_t>(left() - reserve, trial_ + warm_up);
    Trial trial = hooks_.attempt({rate, warm_up, next_seed_++}, steps);
    result_.cost.gradients += trial.steps_taken;
    trial_seconds_ += trial.seconds;
    trial_steps_ += trial.steps_taken;
    if (trial_steps_ > 0) seconds_per_step_ = trial_seconds_ / static_cast<double>(trial_steps_);
    result_.trials.push_back(trial);
    excuse_slower_trials(result_.trials);
    return result_.trials.back();
  }

  /// What is believed before any trial and now.
  struct Belief {
    explicit Belief(RateBelief before) : prior(before), now(std::move(before)) {}
    RateBelief prior, now;
  };

  /// The belief after all trials with this warm-up.
  void update(Belief& belief, int64_t warm_up) const {
    const Trial* best = best_trial(result_.trials, warm_up);
    belief.now = belief.prior;
    for (const Trial& trial : result_.trials) {
      // What fails with a warm-up would fail without.
      const bool implied = trial.warm_up > warm_up && trial.outcome == TrialOutcome::fails;
      if (implied || is_informative(trial, warm_up))
        belief.now.see(trial.learning_rate, implied || counts_as_failed(trial, best, given_));
    }
  }

  /// Trials at the planned rate, unless it has been tried, and then where the belief is split, until it is narrow and
  /// says whether the planned run trains, or its share of what is left is spent. A belief that contradicts the planned
  /// rate's own trial has this trial repeated. `while_it_trains`: only as long as the belief is that the planned rate
  /// trains.
  void search(std::optional<Belief>& belief, int64_t warm_up, double share, bool while_it_trains = false) {
    const auto reserve = static_cast<int64_t>((1 - share) * static_cast<double>(left()));
    while (left() - reserve >= shortest_ + warm_up && (!while_it_trains || trains_at_plan(belief->now, given_))) {
      const bool at_plan = plan_.peak > 0 && asks_plan(belief->now, warm_up);
      const double below = at_plan ? 0 : lower_control_rate(result_.trials, warm_up, given_);
      if (!at_plan && below == 0 && enough(belief->now, warm_up)) return;
      double rate = plan_.peak;
      if (below > 0) rate = below;
      if (!at_plan && below == 0)
        rate = std::min(belief->now.estimate().estimate, rate_below_failures(result_.trials, warm_up));
      if (attempt(rate, warm_up, reserve).outcome == TrialOutcome::unknown) return;
      update(*belief, warm_up);
      if (warm_up > 0) update(*without_, 0);
      ++seen_;
    }
  }

  /// Whether the next trial is one at the planned rate.
  [[nodiscard]] bool asks_plan(const RateBelief& belief, int64_t warm_up) const {
    const auto tried = std::count_if(result_.trials.begin(), result_.trials.end(), [&](const Trial& trial) {
      return trial.warm_up == warm_up && trial.learning_rate == plan_.peak;
    });
    if (tried == 0) return warm_up == 0 || !trains_at_plan(belief, given_);
    return tried == 1 && fails_at_plan(belief, given_) && was_stable(result_.trials, plan_.peak, warm_up, given_);
  }

  /// The belief with a warm-up before any trial with it: above that without by as much as the failures among its trials
  /// tell, as in the pairs of runs of docs/check.md. Of a run that does not train without a warm-up, less is known.
  void begin_warm_up() {
    const int64_t most = std::min(plan_.warm_up, longest_warm_up_);
    const int64_t steps = std::min(left() - shortest_, most);
    result_.tried_warm_up = steps >= std::min(most, kLeastWarmUp) ? steps : 0;
    const RateEstimate without = without_->now.estimate();
    constexpr double kDeviationsOfInterval = 2.56;
    // The standard deviation of the lift.
    const double octaves = trains_at_plan(without_->now, given_) ? 0.55 : 1;
    const double lift = warm_up_lift(least_gradient_at_input(result_.trials));
    with_ = Belief(
        RateBelief(without.estimate * std::exp2(lift), std::hypot(octaves, without.octaves() / kDeviationsOfInterval)));
  }

  /// Without a planned warm-up: whether one would let the planned rate train, if it rather does not.
  void try_warm_up() {
    constexpr double kMostLift = 4;  // more than any of the pairs of runs of docs/check.md
    const double without = without_->now.estimate().estimate;
    if (plan_.warm_up > 0 || given_.resumes || without >= plan_.peak || plan_.peak > kMostLift * without) return;
    for (const int64_t warm_up : {kUsualWarmUp, kUsualWarmUp / 2}) {
      if (left() < warm_up + shortest_) return;
      const Trial trial = attempt(plan_.peak, warm_up);
      if (trial.outcome != TrialOutcome::trains && trial.outcome != TrialOutcome::slow) return;
      // It may still be on the plateau that trials at lower rates have left.
      const Trial* best = best_trial(result_.trials, 0);
      const double gain = best == nullptr ? 0 : given_.reference - best->losses.back();
      const bool gained = given_.gain_without_control > 0 || gain > given_.gain_to_compare;
      if (best != nullptr && gained && given_.reference - trial.losses.back() < gain / 2) return;
      result_.shortest_warm_up = warm_up;
    }
  }

  /// Whether further trials with this warm-up are not worth their cost.
  [[nodiscard]] bool enough(const RateBelief& belief, int64_t warm_up) const {
    const bool planned = warm_up > 0 || plan_.warm_up == 0;  // the verdict is about this belief
    const bool open = planned && plan_.peak > 0 && !trains_at_plan(belief, given_) && !fails_at_plan(belief, given_);
    return belief.estimate().octaves() < (open ? kNarrowest : kNarrow);
  }

  void conclude() {
    const RateBelief& belief = plan_.warm_up > 0 ? with_->now : without_->now;
    Conclusion found =
        check::conclude(given_, {.trials = result_.trials,
                                 .belief = belief,
                                 .without_warm_up = without_->now,
                                 .informative = seen_,
                                 .tried_warm_up = result_.tried_warm_up,
                                 .warm_up_that_helps = result_.shortest_warm_up,
                                 .least_gradients = result_.cost.gradients + trial_ + result_.tried_warm_up});
    result_.verdict = found.verdict;
    result_.answer = std::move(found.answer);
    result_.recommended = std::move(found.recommended);
    result_.shortest_warm_up = found.shortest_warm_up;
    if (seen_ == 0) return;
    result_.largest_stable_rate = belief.estimate();
    result_.largest_stable_rate_without_warm_up = without_->now.estimate();
  }

  const SearchPlan& given_;
  const PlannedSchedule& plan_;
  const SearchHooks& hooks_;
  CheckResult& result_;
  const Stopwatch watch_;
  std::optional<Belief> with_, without_;  // with the tried warm-up, and without
  int64_t next_seed_ = 1;
  int64_t trial_ = 0, shortest_ = 0;  // steps of a trial at its rate: as many as it has, and at least
  int64_t longest_warm_up_ = 0;       // steps of a trial's warm-up
  int64_t seen_ = 0;                  // trials that said something
  double trial_seconds_ = 0;
  int64_t trial_steps_ = 0;
  double seconds_per_step_ = 0;
};

}  // namespace

void search_rates(const SearchPlan& plan, RateBelief before, const SearchHooks& hooks, CheckResult& result) {
  Search(plan, std::move(before), hooks, result).run();
}

}  // namespace plumb::check
