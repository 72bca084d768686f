// Representation collapse: how much each sub-layer still changes the representation; Xie et al. 2023, arXiv 2304.14802.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "plumb/analysis/collapse.h"
#include "plumb/analysis/statistics.h"
#include "plumb/base/text.h"
#include "plumb/study/over_seeds.h"
#include "plumb/study/trained_run.h"

namespace plumb {
namespace {

struct CollapseStudy {
  int64_t layers = 12;
  int64_t seeds = 3;
  int64_t pairs = 50;
  int64_t steps = 0;
};

void describe(Fields& field, CollapseStudy& part) {
  field("layers", part.layers, kLayersMeaning, count_from(1));
  field("seeds", part.seeds, kSeedsMeaning, count_from(1));
  field("pairs", part.pairs, kPairsMeaning, count_from(0));
  field("steps", part.steps, "training steps, as in `[train]`, before a second measurement; 0: only at initialization",
        count_from(0));
}

/// The measurements of one stack of a model, by sub-layer.
struct Curves {
  std::vector<double> change, effective_rank, mean_square, similarity;
};
void describe(Fields& field, Curves& curves) {
  field("change", curves.change);
  field("effective_rank", curves.effective_rank);
  field("mean_square", curves.mean_square);
  field("similarity", curves.similarity);
}

struct Profile {
  Curves decoder, encoder;

  [[nodiscard]] const Curves& of(StackKind stack) const { return stack == StackKind::encoder ? encoder : decoder; }
};
void describe(Fields& field, Profile& profile) {
  field.section("decoder", profile.decoder);
  field.section("encoder", profile.encoder);
}
using Profiles = std::vector<Profile>;  // [seed]

Curves curves_of(const std::vector<CollapsePoint>& points) {
  Curves curves;
  for (const CollapsePoint& point : points) {
    curves.change.push_back(point.change);
    curves.effective_rank.push_back(point.effective_rank);
    curves.mean_square.push_back(point.mean_square);
    curves.similarity.push_back(point.similarity);
  }
  return curves;
}

Profile measured_profile(Model& model, const std::vector<Batch>& batches) {
  const CollapseProfile measured = measure_collapse(model, batches);
  return {curves_of(measured.decoder), curves_of(measured.encoder)};
}

/// One quantity of one stack, [depth − 1][seed].
using Curve = std::vector<std::vector<double>>;
Curve curve_of(const Profiles& profiles, StackKind stack, std::vector<double> Curves::*quantity) {
  Curve curve((profiles.front().of(stack).*quantity).size());
  for (size_t k = 0; k < curve.size(); ++k)
    curve[k] = numbers_in(profiles, [&](const Profile& each) { return (each.of(stack).*quantity).at(k); });
  return curve;
}

constexpr int64_t kRepresentation = 2;  // 1: always the stream

/// What is measured of one scheme.
struct PlannedCollapse {
  Planned<Profiles> start;
  std::optional<Planned<std::optional<Profile>>> trained;  // without a profile if the run diverged

  /// The profile after training, of one seed; empty without training.
  [[nodiscard]] Profiles after() const { return trained && **trained ? Profiles{***trained} : Profiles{}; }
};

struct Quantity {
  const char* key;
  std::vector<double> Curves::*curve;
  const char* title;
  const char* axis;
  const char* caption;
  bool log;
  double largest = std::numeric_limits<double>::infinity();
};
constexpr Quantity kQuantities[] = {
    {"change", &Curves::change, "Change of the representation by depth", "mean |x_k − x_(k−1)|",
     "Mean absolute change of an element of the normalized representation from one sub-layer to the next, by depth k. "
     "ResiDual's representation is x + norm(r).",
     true},
    {"similarity", &Curves::similarity, "Similarity of neighboring representations", "cosine",
     "Mean over tokens of the cosine between the normalized representation after and before a sub-layer.", false, 1},
    {"effective_rank", &Curves::effective_rank, "Effective rank of the representation", "effective rank",
     "Exponential of the entropy of the normalized singular values of all tokens' representations.", false},
};

/// `largest`: an upper bound of the quantity, to which its interval is clipped.
Series series_of(const std::string& name, const std::string& scheme, const Curve& curve, double largest) {
  Series series{name, scheme};
  for (size_t k = 0; k < curve.size(); ++k) {
    Interval interval = confidence_interval(curve[k]);
    interval.low = std::max(interval.low, 0.0);
    interval.high = std::min(interval.high, largest);
    interval.count > 1 ? series.point(k + 1, interval) : series.point(k + 1, interval.mean);
  }
  return series;
}

/// [seed]: the exponent p of change ~ (k + offset)^p over the sub-layers k. Not finite where a sub-layer changes
/// nothing, as with ReZero at initialization.
std::vector<double> change_exponents(const Curve& change, const std::vector<double>& offsets) {
  std::vector<double> exponents;
  for (size_t seed = 0; seed < change.front().size(); ++seed) {
    std::vector<double> x;
    std::vector<double> y;
    for (size_t k = 0; k < change.size(); ++k) {
      x.push_back(std::log(static_cast<double>(k + 1) + offsets[seed]));
      y.push_back(std::log(change[k][seed]));
    }
    exponents.push_back(change.size() > 1 && std::all_of(y.begin(), y.end(), [](double v) { return std::isfinite(v); })
                            ? fit_line(x, y).slope
                            : std::nan(""));
  }
  return exponents;
}

std::vector<double> change_exponents(const Curve& change) {
  return change_exponents(change, std::vector<double>(change.front().size(), 0.0));
}

/// [seed]: the mean square of a stack's input relative to what each sub-layer adds, from a line fitted over k. The
/// theory gives the input the weight of one sub-layer; a larger weight delays the decrease.
std::vector<double> weights_of_input(const Curve& mean_square) {
  std::vector<double> weights;
  for (size_t seed = 0; seed < mean_square.front().size(); ++seed) {
    std::vector<double> x;
    std::vector<double> y;
    for (size_t k = 0; k < mean_square.size(); ++k) {
      x.push_back(static_cast<double>(k + 1));
      y.push_back(mean_square[k][seed]);
    }
    const LineFit fit = fit_line(x, y);
    weights.push_back(fit.slope > 0 ? std::max(0.0, fit.intercept / fit.slope) : 0);
  }
  return weights;
}

struct CollapseClaim {
  const char* scheme;
  double exponent;
  const char* claim;
};
constexpr CollapseClaim kCollapseClaims[] = {
    {"pre-ln", -0.5, "Pre-LN: the change of the representation decreases with depth as 1/√k"},
    {"residual-dual", 0, "ResiDual: the change of the representation does not depend on depth"},
    {"post-ln", 0, "Post-LN: the change of the representation does not depend on depth"},
};

using CollapseByScheme = std::map<std::string, PlannedCollapse>;

Figure quantity_figure(const StudyContext& context, const CollapseStudy& part, const CollapseByScheme& measured,
                       const Quantity& quantity, StackKind stack) {
  Figure figure{
      fmt::format("collapse_{}_{}", quantity.key, to_string(stack)),
      fmt::format("{}, {}", quantity.title, to_string(stack)),
      fmt::format("{} Solid: at initialization, mean over seeds ({}){}.", quantity.caption, seeds_in_words(part.seeds),
                  part.steps > 0 ? fmt::format("; dashed: after {} training steps, one run each", part.steps) : ""),
      "line",
      {"sub-layer k", quantity.log},
      {quantity.axis, quantity.log}};
  for (const std::string& scheme : context.config.study.schemes) {
    const PlannedCollapse& of_scheme = measured.at(scheme);
    figure.series.push_back(
        series_of(display_name(scheme), scheme, curve_of(*of_scheme.start, stack, quantity.curve), quantity.largest));
    const Profiles trained = of_scheme.after();
    if (trained.empty()) continue;
    figure.series.push_back(series_of(display_name(scheme) + ", trained", scheme,
                                      curve_of(trained, stack, quantity.curve), quantity.largest));
    figure.series.back().style = "dashed";
  }
  if (quantity.curve == &Curves::change && measured.count("pre-ln") != 0) {
    Series theory{"predicted, Pre-LN", "theory"};
    theory.style = "dashed";
    const size_t sub_layers = measured.at("pre-ln").start->front().of(stack).change.size();
    for (size_t k = 1; k <= sub_layers; ++k) theory.point(k, predicted_pre_ln_change(static_cast<int64_t>(k)));
    figure.series.push_back(theory);
  }
  return figure;
}

Table collapse_table(const StudyContext& context, const CollapseByScheme& measured) {
  Table table{
      "collapse",
      "How the change decreases with depth",
      "The exponent p of change ~ k^p, fitted over the sub-layers of a stack for each seed; mean and 95% interval "
      "over seeds; after training, one run each. The last sub-layer's change, similarity to the previous one, and "
      "effective rank.",
      {"scheme", "stack", "when", "exponent", "low", "high", "last change", "last similarity", "last effective rank"}};
  const auto add_row = [&](const std::string& scheme, StackKind stack, const char* when, const Profiles& profiles) {
    if (profiles.empty()) return;
    const auto last = [&](std::vector<double> Curves::*quantity) {
      return confidence_interval(curve_of(profiles, stack, quantity).back()).mean;
    };
    table.row(scheme, to_string(stack), when,
              judge(change_exponents(curve_of(profiles, stack, &Curves::change)), {}).effect, last(&Curves::change),
              last(&Curves::similarity), last(&Curves::effective_rank));
  };
  for (const std::string& scheme : context.config.study.schemes) {
    for (const StackKind stack : stacks_of(context)) {
      add_row(scheme, stack, "initialization", *measured.at(scheme).start);
      add_row(scheme, stack, "trained", measured.at(scheme).after());
    }
  }
  return table;
}

PartResult report_collapse(const StudyContext& context, const CollapseStudy& part, const CollapseByScheme& measured) {
  PartResult result;
  for (const StackKind stack : stacks_of(context)) {
    for (const Quantity& quantity : kQuantities)
      result.figures.push_back(quantity_figure(context, part, measured, quantity, stack));
  }
  result.tables.push_back(collapse_table(context, measured));

  const StackKind first = first_stack(context);
  const auto change = [&](const std::string& scheme) {
    return curve_of(*measured.at(scheme).start, first, &Curves::change);
  };
  std::vector<std::string> powers;
  for (const std::string& scheme : context.config.study.schemes) {
    const Interval exponent = judge(change_exponents(change(scheme)), {}).effect;
    powers.push_back(exponent.count > 0
                         ? fmt::format("{} with {}", with_interval(exponent, 2), display_name(scheme))
                         : fmt::format("none with {}, where sub-layers change nothing", display_name(scheme)));
  }
  result.summary.push_back(fmt::format(
      "At initialization, the change of the representation from sub-layer to sub-layer, fitted as a power of depth, "
      "has the exponent {} ({}, {} layers; {}).",
      join(powers, ", "), to_string(first), part.layers, seeds_in_words(part.seeds)));

  for (const CollapseClaim& claim : kCollapseClaims) {
    if (measured.count(claim.scheme) == 0) continue;
    const Curve curve = change(claim.scheme);
    std::string evidence;
    if (claim.exponent < 0) {
      const std::vector<double> input =
          weights_of_input(curve_of(*measured.at(claim.scheme).start, first, &Curves::mean_square));
      evidence = fmt::format(
          "The claim holds for large k, and its prediction gives the stack's input the weight of one sub-layer; here "
          "it has that of {0:.1f}. As a power of k + {0:.1f} the exponent is {1}.",
          confidence_interval(input).mean, with_interval(judge(change_exponents(curve, input), {}).effect, 2));
    }
    std::string id = fmt::format("{}_collapse", claim.scheme);
    std::replace(id.begin(), id.end(), '-', '_');
    result.verdicts.push_back(
        {id, claim.claim, "Xie et al. 2023, arXiv 2304.14802, section 3",
         setting_of(context, model_for(context, claim.scheme, part.layers)),
         fmt::format("exponent p of the change of the representation as k^p over {} sub-layers, {}", curve.size(),
                     to_string(first)),
         judge(change_exponents(curve), Region::around(claim.exponent, 0.1)), evidence,
         "collapse_change_" + to_string(first)});
  }
  return result;
}

PartPlan plan(StudyContext& context, const CollapseStudy& part) {
  PartPlan plan(context);
  CollapseByScheme measured;
  for (const std::string& scheme : context.config.study.schemes) {
    const ModelConfig model = model_for(context, scheme, part.layers);
    PlannedCollapse planned{over_seeds(plan, context,
                                       {.name = "collapse-" + file_name(scheme),
                                        .label = "collapse, " + display_name(scheme),
                                        .model = model,
                                        .seeds = part.seeds,
                                        .pairs = part.pairs,
                                        .settings = {{"representation", kRepresentation}}},
                                       measured_profile),
                            {}};
    if (part.steps > 0) {
      RunRequest run{"collapse-trained-" + file_name(scheme), display_name(scheme), run_config(context, model)};
      run.config.train.steps = part.steps;
      planned.trained = plan.add<std::optional<Profile>>(question_measurement(
          context, run,
          {"collapse-after",
           {{"pairs", part.pairs}, {"representation", kRepresentation}},
           [&context, part](Model& trained) {
             return described_json(measured_profile(trained, measured_batches(context, part.pairs)));
           }}));
    }
    measured.emplace(scheme, planned);
  }
  plan.report = [&context, part, measured] { return report_collapse(context, part, measured); };
  return plan;
}

[[maybe_unused]] const bool kCollapse = add_part<CollapseStudy>(
    "collapse", "how much the representation changes from one sub-layer to the next",
    "Xie et al. 2023, arXiv 2304.14802",
    {.place = 9, .plan = plan, .trains = [](const CollapseStudy& part) { return part.steps > 0; }});

}  // namespace
}  // namespace plumb
