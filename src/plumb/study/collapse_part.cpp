// Representation collapse: how much each sub-layer still changes the representation; Xie et al. 2023, arXiv 2304.14802.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "plumb/analysis/collapse.h"
#include "plumb/analysis/statistics.h"
#include "plumb/report/display_name.h"
#include "plumb/study/over_seeds.h"
#include "plumb/study/trained_run.h"

namespace plumb {
namespace {

struct CollapseStudy : InitialModels {
  CollapseStudy() : InitialModels{12, 3, 50} {}
  int64_t steps = 0;
};

void describe(Fields& field, CollapseStudy& part) {
  describe(field, static_cast<InitialModels&>(part));
  field("steps", part.steps, "training steps, as in `[train]`, before a second measurement; 0: only at initialization",
        count_from(0));
}

using Curves = std::map<std::string, std::vector<double>>;  // of one stack: by quantity, [depth − 1]
using Profile = std::map<std::string, Curves>;              // by stack
using Profiles = std::vector<Profile>;                      // [seed]

Profile measured_profile(Model& model, const std::vector<Batch>& batches) {
  const CollapseProfile measured = measure_collapse(model, batches);
  Profile profile;
  for (const auto& [stack, points] : {std::pair{"encoder", &measured.encoder}, {"decoder", &measured.decoder}}) {
    Curves& curves = profile[stack];
    for (const CollapsePoint& point : *points) {
      curves["change"].push_back(point.change);
      curves["effective_rank"].push_back(point.effective_rank);
      curves["mean_square"].push_back(point.mean_square);
      curves["similarity"].push_back(point.similarity);
    }
  }
  return profile;
}

/// One quantity of one stack, [depth − 1][seed].
using Curve = std::vector<std::vector<double>>;
Curve curve_of(const Profiles& profiles, StackKind stack, const std::string& quantity) {
  Curve curve;
  for (const Profile& profile : profiles) {
    const std::vector<double>& values = profile.at(to_string(stack)).at(quantity);
    curve.resize(values.size());
    for (size_t k = 0; k < values.size(); ++k) curve[k].push_back(values[k]);
  }
  return curve;
}

constexpr int64_t kRepresentation = 2;  // 1: always the stream

/// What is measured of one arm.
struct PlannedCollapse {
  Planned<Profiles> start;
  std::optional<Planned<std::optional<Profile>>> trained;  // without a profile if the run diverged

  /// The profile after training, of one seed; empty without training.
  [[nodiscard]] Profiles after() const { return trained && **trained ? Profiles{***trained} : Profiles{}; }
};

struct CollapseQuantity {
  const char* key;
  const char* title;
  const char* axis;
  const char* caption;
  bool log;
  double largest = std::numeric_limits<double>::infinity();
};
constexpr CollapseQuantity kCollapseQuantities[] = {
    {"change", "Change of the representation by depth", "mean |x_k − x_(k−1)|",
     "Of an element of the normalized representation (ResiDual's: x + norm(r)).", true},
    {"similarity", "Similarity of neighboring representations", "cosine",
     "Between the normalized representations after and before a sub-layer, mean over tokens.", false, 1},
    {"effective_rank", "Effective rank of the representation", "effective rank",
     "Exponential of the entropy of the normalized singular values of all tokens' representations.", false},
};

/// `largest`: an upper bound of the quantity, to which its interval is clipped.
void fill(Series& series, const Curve& curve, double largest) {
  for (size_t k = 0; k < curve.size(); ++k) {
    Interval interval = confidence_interval(curve[k]);
    interval.low = std::max(interval.low, 0.0);
    interval.high = std::min(interval.high, largest);
    interval.count > 1 ? series.point(k + 1, interval) : series.point(k + 1, interval.mean);
  }
}

/// [seed]: the exponent p of change ~ (k + offset)^p over the sub-layers k. NaN where a sub-layer changes nothing, as
/// with ReZero at initialization.
std::vector<double> change_exponents(const Curve& change, const std::vector<double>& offsets = {}) {
  std::vector<double> exponents;
  for (size_t seed = 0; seed < change.front().size(); ++seed) {
    std::vector<double> places;
    Curve of_seed;
    for (size_t k = 0; k < change.size(); ++k) {
      places.push_back(static_cast<double>(k + 1) + (offsets.empty() ? 0 : offsets[seed]));
      of_seed.push_back({change[k][seed]});
    }
    exponents.push_back(power_exponents(places, of_seed).front());
  }
  return exponents;
}

/// [seed]: the mean square of a stack's input relative to what each sub-layer adds, from a line fitted over k. The
/// theory gives the input the weight of one sub-layer; a larger weight delays the decrease.
std::vector<double> weights_of_input(const Curve& mean_square) {
  std::vector<double> weights;
  for (size_t seed = 0; seed < mean_square.front().size(); ++seed) {
    std::vector<double> x, y;
    for (size_t k = 0; k < mean_square.size(); ++k) {
      x.push_back(static_cast<double>(k + 1));
      y.push_back(mean_square[k][seed]);
    }
    const LineFit fit = fit_line(x, y);
    weights.push_back(fit.slope > 0 ? std::max(0.0, fit.intercept / fit.slope) : 0);
  }
  return weights;
}

using CollapseByArm = std::map<std::string, PlannedCollapse>;

Figure quantity_figure(const StudyContext& context, const CollapseStudy& part, const CollapseByArm& measured,
                       const CollapseQuantity& quantity, StackKind stack) {
  Figure figure{fmt::format("collapse_{}_{}", quantity.key, to_string(stack)),
                fmt::format("{}, {}", quantity.title, to_string(stack)),
                fmt::format("{} Solid: at initialization ({}); dashed: trained or predicted.", quantity.caption,
                            seeds_in_words(part.seeds)),
                "line",
                {"sub-layer k", quantity.log},
                {quantity.axis, quantity.log}};
  for (const std::string& arm : arm_names(context)) {
    const PlannedCollapse& of_scheme = measured.at(arm);
    fill(figure.add(display_name(arm), arm), curve_of(*of_scheme.start, stack, quantity.key), quantity.largest);
    const Profiles trained = of_scheme.after();
    if (trained.empty()) continue;
    fill(figure.add(display_name(arm) + ", trained", arm, "dashed"), curve_of(trained, stack, quantity.key),
         quantity.largest);
  }
  if (quantity.key == std::string("change") && measured.count("pre-ln") != 0) {
    Series& theory = figure.add("predicted, Pre-LN", "theory", "dashed");
    const auto sub_layers = std::ssize(curve_of(*measured.at("pre-ln").start, stack, quantity.key));
    for (int64_t k = 1; k <= sub_layers; ++k) theory.point(k, predicted_pre_ln_change(k));
  }
  return figure;
}

Table collapse_table(const StudyContext& context, const CollapseByArm& measured) {
  Table table{
      "collapse",
      "How the change decreases with depth",
      "The exponent p of change ~ k^p over the sub-layers of a stack, with its 95% interval over seeds; after "
      "training, one run each. Then of the last sub-layer.",
      {"arm", "stack", "when", "exponent", "low", "high", "last change", "last similarity", "last effective rank"}};
  const auto add_row = [&](const std::string& arm, StackKind stack, const char* when, const Profiles& profiles) {
    if (profiles.empty()) return;
    const auto last = [&](const char* quantity) {
      return confidence_interval(curve_of(profiles, stack, quantity).back()).mean;
    };
    table.row(arm, to_string(stack), when, judge(change_exponents(curve_of(profiles, stack, "change")), {}).effect,
              last("change"), last("similarity"), last("effective_rank"));
  };
  for (const std::string& arm : arm_names(context)) {
    for (const StackKind stack : stacks_of(context)) {
      add_row(arm, stack, "initialization", *measured.at(arm).start);
      add_row(arm, stack, "trained", measured.at(arm).after());
    }
  }
  return table;
}

PartResult report_collapse(const StudyContext& context, const CollapseStudy& part, const CollapseByArm& measured) {
  PartResult result;
  for (const StackKind stack : stacks_of(context)) {
    for (const CollapseQuantity& quantity : kCollapseQuantities)
      result.figures.push_back(quantity_figure(context, part, measured, quantity, stack));
  }
  result.tables.push_back(collapse_table(context, measured));
  return result;
}

/// What claims can be about, by seed.
void add_quantities(PartPlan& plan, const StudyContext& context, const CollapseStudy& part,
                    const CollapseByArm& measured) {
  const StackKind first = first_stack(context);
  for (const auto& [arm, of_arm] : measured) {
    plumb::Quantity& added =
        plan.quantity("change_exponent",
                      fmt::format("exponent p of the change of the representation as k^p over the sub-layers k, {}",
                                  to_string(first)),
                      Scale::linear, arm,
                      [of_arm = of_arm, first] { return change_exponents(curve_of(*of_arm.start, first, "change")); });
    added.in_comparison_table = false;
    added.telling = {.subject = "change from one sub-layer to the next",
                     .over = "over the " + to_string(first),
                     .factor = [of_arm = of_arm, first](double power) {
                       const size_t sub_layers = curve_of(*of_arm.start, first, "change").size();
                       return std::pow(static_cast<double>(sub_layers), power);
                     }};
    added.figure = "collapse_change_" + to_string(first);
    added.setting = [&context, part](const std::string& of) {
      return setting_of(context, model_for(context, of, part.layers));
    };
    added.evidence = [measured, first](const std::string& of) -> std::string {
      if (of != "pre-ln") return {};
      const Profiles& start = *measured.at(of).start;
      const std::vector<double> input = weights_of_input(curve_of(start, first, "mean_square"));
      return fmt::format(
          "The claim holds for large k, and gives the stack's input the weight of one sub-layer; here it has that of "
          "{0:.1f}. As a power of k + {0:.1f} the exponent is {1}.",
          confidence_interval(input).mean,
          with_interval(judge(change_exponents(curve_of(start, first, "change"), input), {}).effect, 2));
    };
  }
}

PartPlan plan(StudyContext& context, const CollapseStudy& part) {
  PartPlan plan(context);
  const CollapseByArm measured = by_arm(context, [&](const std::string& arm) {
    SeededMeasurement what = initial_models(context, part, "collapse", arm);
    what.settings = {{"representation", kRepresentation}};
    PlannedCollapse planned{over_seeds(plan, context, what, measured_profile), {}};
    if (part.steps == 0) return planned;
    RunRequest run{"collapse-trained-" + file_name(arm), display_name(arm),
                   run_config(context, what.model, arm_named(context, arm).train)};
    run.config.train.steps = part.steps;
    planned.trained = plan.add<std::optional<Profile>>(
        question_measurement(context, run,
                             {"collapse-after",
                              {{"pairs", part.pairs}, {"representation", kRepresentation}},
                              [&context, part](Model& trained) {
                                return result_json(measured_profile(trained, measured_batches(context, part.pairs)));
                              }}));
    return planned;
  });
  add_quantities(plan, context, part, measured);
  plan.report = [&context, part, measured] { return report_collapse(context, part, measured); };
  return plan;
}

[[maybe_unused]] const bool kCollapse = add_part<CollapseStudy>(
    "collapse", "how much the representation changes from one sub-layer to the next",
    "Xie et al. 2023, arXiv 2304.14802",
    {.order = 10, .plan = plan, .trains = [](const CollapseStudy& part) { return part.steps > 0; }});

}  // namespace
}  // namespace plumb
