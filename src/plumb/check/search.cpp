#include "plumb/check/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "plumb/base/quantity.h"
#include "plumb/base/text.h"
#include "plumb/base/timing.h"

namespace plumb::check {
namespace {

constexpr int64_t kLeastWarmUp = 20;   // steps of a trial's warm-up, at least, if as many are planned
constexpr int64_t kUsualWarmUp = 100;  // and at most in a trial of 80 steps; in longer ones, more in proportion
constexpr double kNarrow = 1;          // octaves: an interval as narrow as this is only narrowed further for a verdict
constexpr double kNarrowest = 0.4;     // octaves: the planned rate lies so near to the edge that trials disagree
constexpr double kGiveUpFactor = 64;   // the factor by which rates were lowered in vain when nothing trains
constexpr double kSure = 0.8;          // probability of a verdict

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
      if (trains_at_plan(without_->now)) search(without_, 0, 1, true);
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
    say_progress(fmt::format("trial at {:.2g}{}", rate, warm_up > 0 ? fmt::format(", warm-up {}", warm_up) : ""));
    const int64_t steps = std::min<int64_t>(left() - reserve, trial_ + warm_up);
    Trial trial = hooks_.attempt({rate, warm_up, next_seed_++}, steps);
    result_.cost.gradients += trial.steps_taken;
    trial_seconds_ += trial.seconds;
    trial_steps_ += trial.steps_taken;
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
  /// the reference, less than half of what that has.
  [[nodiscard]] bool failed(const Trial& trial, const Trial* standard) const {
    if (trial.outcome == TrialOutcome::fails) return true;
    if (standard == nullptr || trial.learning_rate <= standard->learning_rate || !given_.judges_relative_gain)
      return false;
    const auto [own, other] = last_losses(trial, *standard);
    const double gain = given_.reference - other;
    return gain > given_.gain_to_compare && given_.reference - own < gain / 2;
  }

  /// Whether a trial with this warm-up has told anything.
  static bool is_informative(const Trial& trial, int64_t warm_up) {
    return trial.warm_up == warm_up && trial.outcome != TrialOutcome::unknown;
  }

  /// The trial with this warm-up that has the lowest loss; null if none is stable.
  [[nodiscard]] const Trial* best(int64_t warm_up) const {
    const Trial* best = nullptr;
    for (const Trial& trial : result_.trials) {
      if (!is_informative(trial, warm_up) || trial.outcome == TrialOutcome::fails) continue;
      if (best == nullptr) {
        best = &trial;
      } else if (const auto [own, other] = last_losses(trial, *best); own < other) {
        best = &trial;
      }
    }
    return best;
  }

  /// The rate of a control, if the best trial has gained so little that a much lower rate may gain more, as on a
  /// plateau, and no lower one is known to gain less. 0: none is needed.
  [[nodiscard]] double lower_control_rate(int64_t warm_up) const {
    constexpr double kLower = 8;
    const Trial* standard = best(warm_up);
    if (standard == nullptr) return 0;
    const Trial* lowest = standard;
    for (const Trial& trial : result_.trials) {
      if (is_informative(trial, warm_up) && trial.learning_rate < lowest->learning_rate) lowest = &trial;
    }
    if (lowest->outcome == TrialOutcome::fails || lowest->outcome == TrialOutcome::unmoved) return 0;
    const auto [own, other] = last_losses(*lowest, *standard);
    const double gain = given_.reference - other;
    const bool on_plateau = given_.judges_relative_gain && gain <= 0 && gain > -given_.gain_to_compare;
    const bool little = gain < given_.gain_without_control || on_plateau;
    return little && own - other <= std::abs(gain) / 2 ? lowest->learning_rate / kLower : 0;
  }

  /// Where trials go on if at least three with this warm-up have failed and none has not: far below, to find a rate
  /// that trains, or to say that none does.
  [[nodiscard]] double rate_below_failures(int64_t warm_up) const {
    constexpr double kLower = 8;
    double lowest = std::numeric_limits<double>::infinity();
    int64_t failures = 0;
    for (const Trial& trial : result_.trials) {
      if (!is_informative(trial, warm_up)) continue;
      if (trial.outcome != TrialOutcome::fails) return std::numeric_limits<double>::infinity();
      lowest = std::min(lowest, trial.learning_rate);
      ++failures;
    }
    return failures < 3 ? std::numeric_limits<double>::infinity() : lowest / kLower;
  }

  /// The belief after all trials with this warm-up.
  void update(Belief& belief, int64_t warm_up) const {
    const Trial* standard = best(warm_up);
    belief.now = belief.prior;
    for (const Trial& trial : result_.trials) {
      // What fails with a warm-up would fail without.
      const bool implied = trial.warm_up > warm_up && trial.outcome == TrialOutcome::fails;
      if (implied || is_informative(trial, warm_up))
        belief.now.see(trial.learning_rate, implied || failed(trial, standard));
    }
  }

  /// Trials at the planned rate, unless it has been tried, and then where the belief is split, until it is narrow and
  /// says whether the planned run trains, or its share of what is left is spent. `while_it_trains`: only as long as the
  /// belief is that the planned rate trains.
  void search(std::optional<Belief>& belief, int64_t warm_up, double share, bool while_it_trains = false) {
    const auto reserve = static_cast<int64_t>((1 - share) * static_cast<double>(left()));
    while (left() - reserve >= shortest_ + warm_up && (!while_it_trains || trains_at_plan(belief->now))) {
      const bool first = plan_.peak > 0 && !(warm_up > 0 && trains_at_plan(belief->now)) &&
                         std::none_of(result_.trials.begin(), result_.trials.end(), [&](const Trial& trial) {
                           return trial.warm_up == warm_up && trial.learning_rate == plan_.peak;
                         });
      const double below = first ? 0 : lower_control_rate(warm_up);
      if (!first && below == 0 && enough(belief->now, warm_up)) return;
      const double rate = first       ? plan_.peak
                          : below > 0 ? below
                                      : std::min(belief->now.estimate().estimate, rate_below_failures(warm_up));
      if (attempt(rate, warm_up, reserve).outcome == TrialOutcome::unknown) return;
      update(*belief, warm_up);
      if (warm_up > 0) update(*without_, 0);
      ++seen_;
    }
  }

  /// The belief with a warm-up before any trial with it: a little above that without, as in the 18 pairs of runs of
  /// docs/check.md. Of a run that does not train without a warm-up, less is known.
  void begin_warm_up() {
    const int64_t most = std::min(plan_.warm_up, longest_warm_up_);
    const int64_t steps = std::min(left() - shortest_, most);
    result_.tried_warm_up = steps >= std::min(most, kLeastWarmUp) ? steps : 0;
    const RateEstimate without = without_->now.estimate();
    constexpr double kLift = 1.6, kDeviationsOfInterval = 2.56;
    const double octaves = trains_at_plan(without_->now) ? 0.55 : 1;  // the standard deviation of log₂ of that ratio
    with_ =
        Belief(RateBelief(kLift * without.estimate, std::hypot(octaves, without.octaves() / kDeviationsOfInterval)));
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
      const Trial* standard = best(0);
      const double gain = standard == nullptr ? 0 : given_.reference - standard->losses.back();
      const bool gained = given_.gain_without_control > 0 || gain > given_.gain_to_compare;
      if (standard != nullptr && gained && given_.reference - trial.losses.back() < gain / 2) return;
      result_.shortest_warm_up = warm_up;
    }
  }

  [[nodiscard]] bool trains_at_plan(const RateBelief& belief) const {
    return plan_.peak > 0 && belief.quantile(1 - kSure) > plan_.peak;
  }
  [[nodiscard]] bool fails_at_plan(const RateBelief& belief) const { return belief.quantile(kSure) < plan_.peak; }

  /// Whether further trials with this warm-up are not worth their cost.
  [[nodiscard]] bool enough(const RateBelief& belief, int64_t warm_up) const {
    const bool planned = warm_up > 0 || plan_.warm_up == 0;  // the verdict is about this belief
    const bool open = planned && plan_.peak > 0 && !trains_at_plan(belief) && !fails_at_plan(belief);
    return belief.estimate().octaves() < (open ? kNarrowest : kNarrow);
  }

  [[nodiscard]] bool any_stable() const {
    return std::any_of(result_.trials.begin(), result_.trials.end(), [](const Trial& trial) {
      return trial.outcome == TrialOutcome::trains || trial.outcome == TrialOutcome::slow;
    });
  }

  /// Whether all steps of the planned run change the weights less than a few at the recommended rate.
  [[nodiscard]] bool moves_too_little(double recommended) const {
    constexpr double kFew = 10;
    return given_.judges_relative_gain && plan_.peak * static_cast<double>(plan_.steps) < kFew * recommended;
  }

  /// Whether every trial has failed, down to rates so low that no lower one would help.
  [[nodiscard]] bool all_failed() const {
    const bool all = std::all_of(result_.trials.begin(), result_.trials.end(), [](const Trial& trial) {
      return trial.outcome == TrialOutcome::fails || trial.outcome == TrialOutcome::unknown;
    });
    return all && seen_ > 0 && plan_.peak > 0 && smallest_rate() <= plan_.peak / kGiveUpFactor;
  }

  void conclude() {
    const bool warms = plan_.warm_up > 0;
    const RateBelief& belief = warms ? with_->now : without_->now;
    const bool shortened = result_.tried_warm_up < plan_.warm_up;
    if (seen_ == 0) {
      constexpr int64_t kTold = 30;  // a trial's outcome takes four losses, ten steps apart
      decide(CheckAnswer::unknown,
             plan_.steps < kTold ? fmt::format("cannot tell: a run of {} steps is too short to judge", plan_.steps)
                                 : fmt::format("cannot tell within this budget: give at least {} gradients",
                                               result_.cost.gradients + trial_ + result_.tried_warm_up));
      return;
    }
    result_.largest_stable_rate = belief.estimate();
    result_.largest_stable_rate_without_warm_up = without_->now.estimate();
    const double stable = belief.estimate().estimate;
    const double best_guess = rate_to_recommend(stable, plan_.peak, given_.steps_like_signs);
    recommend(best_guess == plan_.peak ? given_.configured_rate : best_guess / plan_.factor, {});
    if (given_.judges_relative_gain && result_.recommended) result_.recommended->loss_above_best = kLossAboveBest;
    const auto in_words = [](double rate) { return fmt::format("the largest stable rate is about {:.2g}", rate); };
    const std::string about = in_words(stable);
    if (all_failed()) {
      decide(CheckAnswer::cannot,
             fmt::format("does not train: no trial learned anything, at rates down to {:.2g}", smallest_rate()));
      result_.recommended.reset();
    } else if (!any_stable() && fails_at_plan(belief) && !shortened) {
      decide(CheckAnswer::other_rate,
             fmt::format("does not train at {:.2g}: no trial learned anything, at rates down to "
                         "{:.2g}; lower ones were not tried",
                         plan_.peak, smallest_rate()));
      result_.recommended.reset();
    } else if (!any_stable()) {
      decide(CheckAnswer::unknown,
             fmt::format("cannot tell within this budget: no trial learned anything, at rates down to {:.2g}",
                         smallest_rate()));
      result_.recommended.reset();
    } else if (trains_at_plan(belief) && moves_too_little(best_guess)) {
      decide(
          CheckAnswer::other_rate,
          fmt::format("learns next to nothing at {:.2g}: its {} steps change the weights less than ten at {:.2g}; {}",
                      plan_.peak, with_thousands(plan_.steps), best_guess, about));
    } else if (trains_at_plan(belief) && given_.gain_without_control == 0 &&
               lower_control_rate(result_.tried_warm_up) > 0) {
      decide(CheckAnswer::unknown,
             fmt::format("cannot tell within this budget: no trial has come below {:.2f}, what knowing only how "
                         "frequent each label is gives",
                         given_.reference));
      result_.recommended.reset();
    } else if (trains_at_plan(belief)) {
      decide(CheckAnswer::trains, fmt::format("trains as configured: {}, {} times the configured one", about,
                                              rounded(stable / plan_.peak, 2)));
      if (warms && trains_at_plan(without_->now)) result_.shortest_warm_up = 0;
      if (warms && !result_.shortest_warm_up && result_.tried_warm_up > 0)
        result_.shortest_warm_up = result_.tried_warm_up;
      if (!given_.judges_relative_gain)
        recommend(given_.configured_rate, {});  // trained weights are to change as was planned
      shorten_warm_up();
    } else if (!warms && result_.shortest_warm_up) {
      const int64_t steps = *result_.shortest_warm_up;
      decide(CheckAnswer::needs_warm_up,
             fmt::format("trains only with warm-up: {} steps were enough at {:.2g}; without, {}", steps, plan_.peak,
                         about));
      recommend(given_.configured_rate, 2 * steps);
    } else if (fails_at_plan(belief) && !shortened) {
      decide(CheckAnswer::other_rate, fmt::format("does not train at {:.2g}: {}", plan_.peak, about));
    } else if (fails_at_plan(belief)) {
      decide(
          CheckAnswer::unknown,
          fmt::format("cannot tell within this budget: {}, below {:.2g}, but the planned warm-up of {} steps may be "
                      "enough",
                      result_.tried_warm_up > 0 ? fmt::format("after one of {} steps, {}", result_.tried_warm_up, about)
                                                : "without warm-up, " + in_words(without_->now.estimate().estimate),
                      plan_.peak, with_thousands(plan_.warm_up)));
    } else {
      decide(CheckAnswer::unknown,
             fmt::format("cannot tell within this budget: the largest stable rate lies between {:.2g} and {:.2g}, and "
                         "the configured one is {:.2g}",
                         belief.estimate().low, belief.estimate().high, plan_.peak));
    }
  }

  /// Recommends a shorter warm-up if the planned one takes most of the run.
  void shorten_warm_up() {
    if (!result_.recommended || 2 * plan_.warm_up <= plan_.steps) return;
    const int64_t usual = std::max<int64_t>(plan_.steps / 10, 1);
    result_.answer += fmt::format("; but its warm-up takes {} of {} steps, where {} are usual",
                                  with_thousands(plan_.warm_up), with_thousands(plan_.steps), with_thousands(usual));
    result_.recommended->warm_up = usual;
  }

  void decide(CheckAnswer verdict, std::string answer) {
    result_.verdict = verdict;
    result_.answer = std::move(answer);
    if (verdict == CheckAnswer::unknown && result_.recommended) result_.recommended->loss_above_best.reset();
  }

  /// `warm_up`: in place of the planned one. A run that goes on keeps its settings.
  void recommend(double rate, std::optional<int64_t> warm_up) {
    if (given_.resumes) return;
    result_.recommended = Recommendation{.learning_rate = rate, .warm_up = warm_up, .schedule = {}};
    if (!warm_up && given_.schedule_with_warm_up.empty()) result_.recommended->warm_up = plan_.warm_up;
    if (warm_up) result_.recommended->schedule = given_.schedule_with_warm_up;
  }

  [[nodiscard]] double smallest_rate() const {
    double smallest = std::numeric_limits<double>::infinity();
    for (const Trial& trial : result_.trials) {
      if (trial.outcome != TrialOutcome::unknown) smallest = std::min(smallest, trial.learning_rate);
    }
    return smallest;
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
