// Whether the first steps of a run are those of a run that trains.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plumb/base/config.h"
#include "plumb/trouble/failure.h"

namespace plumb::check {

/// trains: it has learned more than how frequent each label is, or keeps what it knew; fails: it has not, and is not on
/// its way; slow: it is on its way, but not there yet; unmoved: its loss has hardly changed, as at a rate that is far
/// too low; unknown: it ended before anything could be said.
enum class TrialOutcome { trains, fails, slow, unmoved, unknown };
std::string to_string(TrialOutcome outcome);
void describe(Fields& field, std::string_view key, TrialOutcome& outcome);

/// Losses by step, with the outcome that they show so far and why.
struct Judged {
  TrialOutcome outcome = TrialOutcome::unknown;
  bool clear = false;       // it trains by so much that a brief trial need not go on
  bool on_plateau = false;  // it knows no more than the frequencies yet: see judge_plateau
  std::string because;
};

/// The steps of a trial at its rate with a small budget, and the least with any. One that is as brief ends once it is
/// clear, as further trials then tell more than its other steps do; that of a larger budget goes on, since what trains
/// for 40 steps may lose it by step 200.
constexpr int64_t kBriefTrial = 80;

/// Judges the losses of a trial, measured on the same examples at these steps, after a warm-up of `warm_up` steps.
/// `diverged`: the trainer gave up.
Judged judge_losses(const std::vector<int64_t>& steps, const std::vector<double>& losses, int64_t warm_up,
                    const Baselines& baselines, bool diverged);

/// The same of losses in any unit, of which nothing is known but the first: a run that trains is one that ends below it
/// by a hundredth and has not lost again half of what it had gained. Of a model that has fallen to what the labels'
/// frequencies give and stays there, this cannot tell; a trial at another rate can (SearchPlan::judges_relative_gain).
Judged judge_fall(const std::vector<int64_t>& steps, const std::vector<double>& losses, int64_t warm_up, bool diverged);

/// Below this share of the gradient that reaches the first layer (check/gradient.h), a run that is on the plateau of
/// the labels' frequencies stays there. Of 8-layer Post-LN decoders on tiny Shakespeare (AdamW), those with 1% and more
/// after 80 steps at their rate had left it by step 350, and the one with 0.19% had not after 500.
constexpr double kGradientAtInput = 0.005;

/// Judges a trial on the plateau by how much of the gradient reaches the first layer (check/gradient.h). Post-LN passes
/// through the plateau also at rates at which it trains, and leaves it after hundreds of steps, unless the gradient has
/// vanished below.
Judged judge_plateau(Judged judged, double gradient_at_input);

}  // namespace plumb::check
