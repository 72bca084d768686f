// Gradients by layer at initialization: Xiong et al. 2020, Figure 3 (a, b), and the factor that its appendix predicts.
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "plumb/analysis/gradient.h"
#include "plumb/analysis/theory.h"
#include "plumb/base/error.h"
#include "plumb/report/display_name.h"
#include "plumb/report/measured_figures.h"
#include "plumb/study/over_seeds.h"

namespace plumb {
namespace {

struct GradientStudy : InitialModels {
  GradientStudy() : InitialModels{.pairs = 200} {}
};

/// Norms of the mean gradient by parameter, one value per seed.
using Norms = std::map<std::string, std::vector<double>>;
using NormsByArm = std::map<std::string, Norms>;
using NormsOfSeeds = Planned<std::vector<std::map<std::string, double>>>;  // as they are measured, [seed]

Norms by_parameter(const NormsOfSeeds& measured) {
  Norms norms;
  for (const auto& of_seed : *measured) {
    for (const auto& [parameter, norm] : of_seed) norms[parameter].push_back(norm);
  }
  return norms;
}

/// The output matrix of a sub-layer.
std::string output_matrix(StackKind stack, int64_t layer, SubLayerKind kind) {
  const std::string prefix = to_string(LayerId{stack, layer});
  switch (kind) {
    case SubLayerKind::self_attention:
      return prefix + ".self_attn.out_proj.weight";
    case SubLayerKind::cross_attention:
      return prefix + ".multihead_attn.out_proj.weight";
    default:
      return feed_forward_matrix({stack, layer}, 2);
  }
}

const std::vector<double>& norms_at(const Norms& norms, const std::string& parameter) {
  const auto found = norms.find(parameter);
  if (found == norms.end()) throw Error(fmt::format("the gradient of '{}' was not measured", parameter));
  return found->second;
}

/// The number of layers in a stack.
int64_t layers_in(const Norms& norms, StackKind stack) {
  int64_t layers = 0;
  while (norms.contains(feed_forward_matrix({stack, layers}, 2))) ++layers;
  return layers;
}

/// [seed]: norm in the last layer / norm in the first.
std::vector<double> last_to_first(const Norms& norms, StackKind stack) {
  return seed_by_seed(norms_at(norms, feed_forward_matrix({stack, layers_in(norms, stack) - 1}, 2)),
                      norms_at(norms, feed_forward_matrix({stack, 0}, 2)), std::divides<>());
}

/// [seed]: the factor per layer of a sub-layer's gradient norm, from the line fitted to its logarithm over the layers.
std::vector<double> factors(const Norms& norms, StackKind stack, SubLayerKind kind) {
  std::vector<double> places;  // whose logarithms are the numbers of the layers
  std::vector<std::vector<double>> values;
  for (int64_t layer = 0; layer < layers_in(norms, stack); ++layer) {
    places.push_back(std::exp(static_cast<double>(layer)));
    values.push_back(norms_at(norms, output_matrix(stack, layer, kind)));
  }
  std::vector<double> by_seed = power_exponents(places, values);
  for (double& factor : by_seed) factor = std::exp(factor);
  return by_seed;
}

/// `theory`: in the theory's setting instead of the study's.
ModelConfig gradient_model(const StudyContext& context, const std::string& arm, const GradientStudy& part,
                           bool theory) {
  return theory ? theory_model(context, arm, context.config.model.d_model, "theory", part.layers)
                : model_for(context, arm, part.layers);
}

NormsOfSeeds planned_norms(PartPlan& plan, StudyContext& context, const std::string& arm, const GradientStudy& part,
                           bool theory) {
  SeededMeasurement what = initial_models(context, part, "gradients", arm);
  if (theory) what.name += "-theory";
  what.model = gradient_model(context, arm, part, theory);
  return over_seeds(plan, context, what, [](Model& model, const std::vector<Batch>& batches) {
    const GradientProfile profile = measure_gradients(model, batches);
    return std::map<std::string, double>(profile.norm_by_parameter.begin(), profile.norm_by_parameter.end());
  });
}

FeedForwardNorms feed_forward_norms(const Norms& norms, StackKind stack) {
  const auto of_matrix = [&](int matrix) {
    std::vector<Interval> intervals;
    for (int64_t layer = 0; layer < layers_in(norms, stack); ++layer)
      intervals.push_back(size_interval(norms_at(norms, feed_forward_matrix({stack, layer}, matrix))));
    return intervals;
  };
  return {of_matrix(1), of_matrix(2)};
}

Figure figure_of_stack(StackKind stack, const NormsByArm& usual, const NormsByArm& in_theory, int64_t seeds) {
  OfArms<FeedForwardNorms> of_arms;
  for (const auto& [arm, norms] : usual) of_arms.emplace(arm, feed_forward_norms(norms, stack));
  Figure figure =
      gradient_figure(stack, of_arms, fmt::format("at initialization, geometric mean ({})", seeds_in_words(seeds)));
  for (const auto& [arm, norms] : in_theory) {
    Series& line = figure.add(display_name(arm) + ", theory's setting", "theory's setting");
    for (const Interval& norm : feed_forward_norms(norms, stack).second) line.point(line.x.size() + 1, norm);
  }
  return figure;
}

/// The factor per layer by sub-layer, in the study's model and in the theory's setting.
Table factor_table(const StudyContext& context, const NormsByArm& usual, const NormsByArm& in_theory,
                   const GradientStudy& part) {
  Table table{"gradient_factors",
              "Growth of the gradient from layer to layer",
              "Factor by which the gradient norm of a sub-layer's output matrix changes from one layer to the next; "
              "geometric mean with its 95% interval. For Post-LN's W₂, the appendix of Xiong et al. 2020 predicts "
              "√(3/2) = 1.225 in the theory's setting.",
              {"arm", "setting", "stack", "sub-layer", "factor per layer", "low", "high"}};
  const auto add = [&](const NormsByArm& measured, const char* setting) {
    for (const auto& [arm, norms] : measured) {
      for (const StackKind stack : stacks_of(context)) {
        for (const SubLayerKind kind :
             {SubLayerKind::self_attention, SubLayerKind::cross_attention, SubLayerKind::feed_forward}) {
          if (norms.count(output_matrix(stack, 0, kind)) == 0) continue;
          table.row(arm, setting, to_string(stack), in_words(kind), geometric_interval(factors(norms, stack, kind)));
        }
      }
    }
  };
  if (part.layers < 2) return table;
  add(usual, "the study's");
  add(in_theory, "the theory's");
  return table;
}

PartResult report_gradients(const StudyContext& context, const GradientStudy& part, const NormsByArm& usual,
                            const NormsByArm& in_theory) {
  PartResult result;
  const std::vector<StackKind> stacks = stacks_of(context);
  for (auto stack = stacks.rbegin(); stack != stacks.rend(); ++stack)
    result.figures.push_back(figure_of_stack(*stack, usual, in_theory, part.seeds));
  result.tables.push_back(factor_table(context, usual, in_theory, part));
  for (const auto& [arm, norms] : usual) result.measurements[arm] = norms;
  return result;
}

using NormsPlanned = std::map<std::string, NormsOfSeeds>;  // by arm

/// What claims can be about, by seed.
void add_quantities(PartPlan& plan, const StudyContext& context, const GradientStudy& part, const NormsPlanned& usual,
                    const NormsPlanned& in_theory) {
  const StackKind first = first_stack(context), last = last_stack(context);
  const auto add = [&](const std::string& name, const std::string& meaning, const NormsPlanned& measured,
                       StackKind stack, bool theory, const auto& values) {
    for (const auto& [arm, norms] : measured) {
      Quantity& added = plan.quantity(name, fmt::format("{}, {}", meaning, to_string(stack)), Scale::logarithmic, arm,
                                      [norms = norms, values] { return values(by_parameter(norms)); });
      added.figure = "gradient_by_layer_" + to_string(stack);
      added.in_comparison_table = name == "gradient_growth";
      if (added.in_comparison_table && part.layers > 1)
        added.telling = {.subject = "gradient at initialization", .over = "over the " + to_string(stack)};
      added.setting = [&context, part, theory](const std::string& of) {
        return setting_of(context, gradient_model(context, of, part, theory));
      };
      added.evidence = [theory](const std::string&) -> std::string {
        if (!theory) return {};
        return "The factor is the norm's backward gain √(2/3) alone and leaves out the branch's, whose expectation, "
               "√(3/2), would cancel it.";
      };
    }
  };
  add("gradient_growth", "norm of W₂'s gradient in the last layer / in the first", usual, last, false,
      [last](const Norms& norms) { return last_to_first(norms, last); });
  const std::string first_layer = feed_forward_matrix({last, 0}, 2);
  add("first_layer_gradient", "norm of W₂'s gradient in the first layer", usual, last, false,
      [first_layer](const Norms& norms) { return norms_at(norms, first_layer); });
  add("first_layer_gradient_share", "norm of W₂'s gradient in the first layer, relative to that in the last", usual,
      last, false, [last](const Norms& norms) {
        std::vector<double> shares = last_to_first(norms, last);
        for (double& share : shares) share = 1 / share;
        return shares;
      });
  add("gradient_factor_in_theory", "factor per layer of the norm of W₂'s gradient, in the theory's setting", in_theory,
      first, true, [first](const Norms& norms) { return factors(norms, first, SubLayerKind::feed_forward); });
}

PartPlan plan(StudyContext& context, const GradientStudy& part) {
  PartPlan plan(context);
  std::map<std::string, NormsOfSeeds> usual, theory;
  for (const std::string& arm : arm_names(context)) {
    usual.emplace(arm, planned_norms(plan, context, arm, part, false));
    // The factor that the appendix predicts needs Post-LN and more than one layer.
    if (arm == "post-ln" && part.layers > 1) theory.emplace(arm, planned_norms(plan, context, arm, part, true));
  }
  add_quantities(plan, context, part, usual, theory);
  plan.report = [&context, part, usual, theory] {
    NormsByArm by_arm, in_theory;
    for (const auto& [arm, measured] : usual) by_arm[arm] = by_parameter(measured);
    for (const auto& [arm, measured] : theory) in_theory[arm] = by_parameter(measured);
    return report_gradients(context, part, by_arm, in_theory);
  };
  return plan;
}

[[maybe_unused]] const bool kGradients = add_part<GradientStudy>(
    "gradients", "gradient norms by layer at initialization; for `post-ln` also in the theory's setting",
    "Xiong et al. 2020, arXiv 2002.04745", {.order = 1, .any_depth = true, .plan = plan});

}  // namespace
}  // namespace plumb
