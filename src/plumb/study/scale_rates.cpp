#include "plumb/study/scale_rates.h"

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

std::vector<double> rates_of(const ScaleStudy& part) {
  std::vector<double> rates = part.learning_rates;
  std::sort(rates.begin(), rates.end());
  return rates;
}

std::vector<int64_t> widths_of(const ScaleStudy& part) {
  std::vector<int64_t> widths = part.rate_widths;
  std::sort(widths.begin(), widths.end());
  widths.erase(std::unique(widths.begin(), widths.end()), widths.end());
  return widths;
}

ScaleMember rate_member(const StudyContext& context, const ScaleStudy& part, Parametrization parametrization,
                        int64_t width, double rate) {
  return {context.config.study.schemes.front(), parametrization, width, part.rate_layers, rate};
}

/// The sweeps of one parametrization.
struct RateSweeps {
  std::vector<int64_t> widths;
  std::vector<Sweep> sweeps;  // [width]

  /// A sweep with the runs of one seed.
  [[nodiscard]] Sweep of_seed(size_t width, size_t seed) const {
    Sweep sweep;
    for (const Sweep::Point& point : sweeps[width].points)
      sweep.points.push_back({point.learning_rate, {point.losses.at(seed)}});
    return sweep;
  }
  [[nodiscard]] size_t seeds() const { return sweeps.front().points.front().losses.size(); }
  /// The best rate at a width, by seed; NaN where the sweep does not enclose it.
  [[nodiscard]] std::vector<double> best(size_t width) const {
    std::vector<double> rates;
    for (size_t seed = 0; seed < seeds(); ++seed) rates.push_back(of_seed(width, seed).best_between());
    return rates;
  }
  /// p in best rate ~ width^p, by seed.
  [[nodiscard]] std::vector<double> exponents() const {
    std::vector<double> found;
    for (size_t seed = 0; seed < seeds(); ++seed) {
      std::vector<double> x;
      std::vector<double> y;
      for (size_t i = 0; i < widths.size(); ++i) {
        x.push_back(std::log(static_cast<double>(widths[i])));
        y.push_back(std::log(of_seed(i, seed).best_between()));
      }
      found.push_back(fit_line(x, y).slope);
    }
    return found;
  }
};

/// The runs of one parametrization, [width][learning rate].
struct PlannedSweeps {
  std::vector<std::vector<std::vector<Planned<TrainedRun>>>> runs;

  [[nodiscard]] RateSweeps trained(const ScaleStudy& part) const {
    RateSweeps all{widths_of(part), {}};
    const std::vector<double> rates = rates_of(part);
    for (const auto& at_width : runs) {
      Sweep& sweep = all.sweeps.emplace_back();
      for (size_t i = 0; i < rates.size(); ++i) sweep.points.push_back({rates[i], final_losses(at_width[i])});
    }
    return all;
  }
};

Figure sweeps_figure(const RateSweeps& all, Parametrization parametrization, const std::string& id) {
  Figure figure{
      id,
      fmt::format("Final validation loss by learning rate and width, {}", display_name(parametrization)),
      fmt::format("{} A gap: a run diverged.{}",
                  all.seeds() == 1 ? "One run at each rate, no intervals." : "Means over seeds with 95% intervals.",
                  parametrization == Parametrization::mup
                      ? " The rate is that of a model with the width of [model], from which those of others follow."
                      : ""),
      "line",
      {"learning rate", true},
      {"validation loss (nats per token)"}};
  for (size_t i = 0; i < all.widths.size(); ++i) {
    const std::string name = fmt::format("width {}", all.widths[i]);
    Series line{name, name};
    for (const Sweep::Point& point : all.sweeps[i].points) {
      const bool finished =
          std::all_of(point.losses.begin(), point.losses.end(), [](double loss) { return std::isfinite(loss); });
      const double gap = std::nan("");
      line.point(point.learning_rate, finished ? confidence_interval(point.losses) : Interval{gap, gap, gap, 0});
    }
    figure.series.push_back(line);
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

void judge_rates(const StudyContext& context, const ScaleStudy& part, const RateSweeps& all, const RateClaim& claim,
                 const std::string& figure, PartResult& result) {
  const ScaleMember largest =
      rate_member(context, part, claim.parametrization, all.widths.back(), rates_of(part).back());
  const std::string open = open_ends(all);
  Judgment judged = judge(all.exponents(), claim.region);
  if (judged.effect.count == 0 && !open.empty())
    judged.reason = "no seed has a best rate inside its sweep at each width";
  const Judgment judgment = not_testable_because(undecided_because(judged, open), training_not_testable(context));
  result.verdicts.push_back(
      {claim.id, claim.claim, "Yang et al. 2022, arXiv 2203.03466, figure 1",
       setting_of(context, scale_model(context, largest)),
       fmt::format("exponent p of the best learning rate as width^p, {}", display_name(claim.parametrization)),
       judgment, open.empty() ? "" : fmt::format("No best rate inside the sweep: {}.", open), figure});
  if (std::isfinite(judgment.effect.mean)) {
    result.summary.push_back(fmt::format("Exponent of the best learning rate over the width, {}: {} ({}).",
                                         display_name(claim.parametrization), with_interval(judgment.effect),
                                         seeds_in_words(part.rate_seeds)));
  }
}

void report_rates(const StudyContext& context, const ScaleStudy& part, const std::vector<PlannedSweeps>& planned,
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
  for (size_t k = 0; k < planned.size(); ++k) {
    const RateClaim& claim = kRateClaims[k];
    const RateSweeps all = planned[k].trained(part);
    const std::string id = fmt::format("{}_sweep", claim.id);
    result.figures.push_back(sweeps_figure(all, claim.parametrization, id));
    const std::string name = display_name(claim.parametrization);
    Series line{name, name};
    for (size_t i = 0; i < all.widths.size(); ++i) line.point(all.widths[i], geometric_interval(all.best(i)));
    best.series.push_back(line);
    judge_rates(context, part, all, claim, id, result);
  }
  result.figures.push_back(best);
}

}  // namespace

std::function<void(PartResult&)> plan_scale_rates(PartPlan& plan, StudyContext& context, const ScaleStudy& part) {
  if (part.learning_rates.empty()) return [](PartResult&) {};
  std::vector<PlannedSweeps> planned;
  for (const RateClaim& claim : kRateClaims) {
    PlannedSweeps& sweeps = planned.emplace_back();
    for (const int64_t width : widths_of(part)) {
      auto& at_width = sweeps.runs.emplace_back();
      for (const double rate : rates_of(part)) {
        const ScaleMember member = rate_member(context, part, claim.parametrization, width, rate);
        at_width.push_back(planned_runs(plan, context, member, part.rate_seeds));
      }
    }
  }
  return [&context, part, planned](PartResult& result) { report_rates(context, part, planned, result); };
}

}  // namespace plumb
