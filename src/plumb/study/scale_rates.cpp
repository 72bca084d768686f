// The second half of [scale]: the best learning rate against width, with and without µP.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plumb/analysis/sweep.h"
#include "plumb/base/text.h"
#include "plumb/study/scale_family.h"

namespace plumb {
namespace {

/// Best rate ~ width^p counts as constant if |p| is at most this.
constexpr double kRateMargin = 0.25;

struct RateClaim {
  Parametrization parametrization;
  const char* id;
  const char* claim;
  Region region;
};
const RateClaim kRateClaims[] = {
    {Parametrization::standard, "scale_rate_standard",
     "With the standard parametrization, wider models need smaller learning rates", Region::below(-kRateMargin, 0)},
    {Parametrization::mup, "scale_rate_mup", "With µP, the best learning rate does not depend on the width",
     Region::around(0, kRateMargin)},
};

ScaleMember rate_member(const StudyContext& context, const ScaleStudy& part, Parametrization parametrization,
                        int64_t width, double rate) {
  return {context.arms.front().name, parametrization, width, part.rate_layers, rate};
}

/// The runs of one parametrization, and their sweeps once they are trained.
struct RateSweeps {
  std::vector<int64_t> widths;
  std::vector<std::vector<std::vector<Planned<TrainedRun>>>> runs;  // [width][learning rate][seed]
  std::vector<Sweep> sweeps{};                                      // [width]

  /// The best rate at a width, by seed; NaN where the sweep does not enclose it.
  [[nodiscard]] std::vector<double> best(size_t width) const {
    std::vector<double> rates;
    for (size_t seed = 0; seed < sweeps[width].points.front().losses.size(); ++seed) {
      Sweep of_seed;
      for (const Sweep::Point& point : sweeps[width].points)
        of_seed.points.push_back({point.learning_rate, {point.losses.at(seed)}});
      rates.push_back(of_seed.best_between());
    }
    return rates;
  }
  /// p in best rate ~ width^p, by seed.
  [[nodiscard]] std::vector<double> exponents() const {
    std::vector<std::vector<double>> rates;
    for (size_t i = 0; i < widths.size(); ++i) rates.push_back(best(i));
    return power_exponents({widths.begin(), widths.end()}, rates);
  }
};

Figure sweeps_figure(const RateSweeps& all, const RateClaim& claim, int64_t seeds) {
  Figure figure{
      fmt::format("{}_sweep", claim.id),
      fmt::format("Final validation loss by learning rate and width, {}", display_name(claim.parametrization)),
      fmt::format("A gap: a run failed. With µP, the rate is that of a model with the width of [model]; {}.",
                  seeds_in_words(seeds)),
      "line",
      {"learning rate", true},
      {"validation loss (nats per token)"}};
  for (size_t i = 0; i < all.widths.size(); ++i) {
    const std::string name = fmt::format("width {}", all.widths[i]);
    Series& line = figure.add(name, name);
    for (const Sweep::Point& point : all.sweeps[i].points) {
      const bool finished =
          std::all_of(point.losses.begin(), point.losses.end(), [](double loss) { return std::isfinite(loss); });
      const double gap = std::nan("");
      line.point(point.learning_rate, finished ? confidence_interval(point.losses) : Interval{gap, gap, gap, 0});
    }
  }
  return figure;
}

/// The widths whose sweeps do not enclose their best rate, and why; "" if all do.
std::string open_ends(const RateSweeps& all) {
  std::vector<std::string> open;
  for (size_t i = 0; i < all.widths.size(); ++i) {
    if (const std::string end = all.sweeps[i].open_end(); !end.empty())
      open.push_back(fmt::format("at width {} {}", all.widths[i], end));
  }
  return join(open, "; ");
}

Verdict verdict_on(const StudyContext& context, const ScaleStudy& part, const RateSweeps& all, const RateClaim& claim) {
  const ScaleMember largest =
      rate_member(context, part, claim.parametrization, all.widths.back(), sorted(part.learning_rates).back());
  const std::string open = open_ends(all);
  Judgment judged = judge(all.exponents(), claim.region);
  if (judged.effect.count == 0 && !open.empty())
    judged.reason = "no seed has a best rate inside its sweep at each width";
  return {claim.id,
          claim.claim,
          "Yang et al. 2022, arXiv 2203.03466, figure 1",
          setting_of(context, scale_model(context, largest)),
          fmt::format("exponent p of the best learning rate as width^p, {}", display_name(claim.parametrization)),
          not_testable_because(undecided_because(judged, open), training_not_testable(context)),
          open.empty() ? "" : fmt::format("No best rate inside the sweep: {}.", open),
          fmt::format("{}_sweep", claim.id)};
}

void report_rates(const StudyContext& context, const ScaleStudy& part, std::vector<RateSweeps> by_claim,
                  PartResult& result) {
  Figure best{
      "scale_best_rate",
      "Best learning rate by width",
      fmt::format("The vertex of the parabola through the best rate of each sweep and its neighbors; {}. A gap: "
                  "the sweep does not enclose its best rate.",
                  seeds_in_words(part.rate_seeds)),
      "line",
      {"width d_model", true},
      {"best learning rate", true}};
  best.ended = "not enclosed";
  const std::vector<double> rates = sorted(part.learning_rates);
  for (size_t k = 0; k < by_claim.size(); ++k) {
    const RateClaim& claim = kRateClaims[k];
    RateSweeps& all = by_claim[k];
    for (const auto& at_width : all.runs) {
      Sweep& sweep = all.sweeps.emplace_back();
      for (size_t i = 0; i < rates.size(); ++i) sweep.points.push_back({rates[i], fitted_losses(at_width[i])});
    }
    const std::string name = display_name(claim.parametrization);
    Series& line = best.add(name, name);
    for (size_t i = 0; i < all.widths.size(); ++i) line.point(all.widths[i], geometric_interval(all.best(i)));
    result.figures.push_back(sweeps_figure(all, claim, part.rate_seeds));
    result.verdicts.push_back(verdict_on(context, part, all, claim));
  }
  result.figures.push_back(best);
}

}  // namespace

Report plan_scale_rates(PartPlan& plan, StudyContext& context, const ScaleStudy& part) {
  if (part.learning_rates.empty()) return [](PartResult&) {};
  std::vector<RateSweeps> by_claim;
  for (const RateClaim& claim : kRateClaims) {
    RateSweeps& sweeps = by_claim.emplace_back(RateSweeps{sorted(part.rate_widths), {}});
    for (const int64_t width : sweeps.widths) {
      auto& at_width = sweeps.runs.emplace_back();
      for (const double rate : sorted(part.learning_rates)) {
        const ScaleMember member = rate_member(context, part, claim.parametrization, width, rate);
        at_width.push_back(planned_runs(plan, context, scale_run(context, member), part.rate_seeds));
      }
    }
  }
  return [&context, part, by_claim](PartResult& result) { report_rates(context, part, by_claim, result); };
}

}  // namespace plumb
