// Gradients by layer at initialization: Xiong et al. 2020, Figure 3 (a, b), and the factor that its appendix predicts.
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "plumb/analysis/gradient.h"
#include "plumb/analysis/theory.h"
#include "plumb/base/error.h"
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

/// How the gradient of W₂ in layer 1 compares, first / second: by itself, and relative to the last layer's, which a
/// scheme may enlarge without making that of layer 1 smaller.
std::vector<QuantityReading> first_layer_readings(const Norms& first, const Norms& second, StackKind stack) {
  const std::string parameter = feed_forward_matrix({stack, 0}, 2);
  return {{"by itself", seed_by_seed(norms_at(first, parameter), norms_at(second, parameter), std::divides<>())},
          {fmt::format("relative to layer {}", layers_in(first, stack)),
           seed_by_seed(last_to_first(second, stack), last_to_first(first, stack), std::divides<>())}};
}

/// `theory`: in the theory's setting instead of the study's.
ModelConfig gradient_model(const StudyContext& context, const std::string& arm, const GradientStudy& part,
                           bool theory) {
  return theory ? theory_model(context, arm, context.config.model.d_model, "theory", part.layers)
                : model_for(context, arm, part.layers);
}

NormsOfSeeds planned_norms(PartPlan& plan, StudyContext& context, const std::string& arm, const GradientStudy& part,
                           bool theory) {
  OverSeeds what = of_models(context, part, "gradients", arm);
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

void judge_factor(const StudyContext& context, const Norms& norms, const GradientStudy& part, PartResult& result) {
  const StackKind stack = first_stack(context);
  const double predicted = std::exp(theory::log_slope());
  const Judgment judgment = judge(factors(norms, stack, SubLayerKind::feed_forward),
                                  {predicted / 1.05, predicted * 1.05}, Scale::logarithmic);
  result.verdicts.push_back(
      {"post_ln_slope", "Post-LN: the gradient of layer l carries the factor (2/3)^((L−l)/2)",
       "Xiong et al. 2020, appendix", setting_of(context, gradient_model(context, "post-ln", part, true)),
       fmt::format("factor per layer of the norm of W₂'s gradient, {}", to_string(stack)), judgment,
       "The factor is the norm's backward gain √(2/3) alone and leaves out the branch's, whose expectation, √(3/2), "
       "would cancel it.",
       "gradient_by_layer_" + to_string(stack)});
}

PartResult report_gradients(const StudyContext& context, const GradientStudy& part, const NormsByArm& usual,
                            const NormsByArm& in_theory) {
  PartResult result;
  const std::vector<StackKind> stacks = stacks_of(context);
  const StackKind last = stacks.back();
  for (auto stack = stacks.rbegin(); stack != stacks.rend(); ++stack)
    result.figures.push_back(figure_of_stack(*stack, usual, in_theory, part.seeds));
  result.tables.push_back(factor_table(context, usual, in_theory, part));
  if (part.layers > 1) {
    std::vector<std::pair<std::string, Interval>> growth;
    for (const auto& [arm, norms] : usual)
      growth.emplace_back(display_name(arm), geometric_interval(last_to_first(norms, last)));
    result.summary.push_back(
        fmt::format("At initialization, the last {} layer gets this many times the gradient of the first: {} ({}).",
                    to_string(last), with_intervals(growth), seeds_in_words(part.seeds)));
  }

  const std::string ratio =
      fmt::format("norm of W₂'s gradient in {} layer {} / in layer 1", to_string(last), part.layers);
  const auto add_verdict = [&](const char* id, const char* claim, const char* source, const std::string& arm,
                               const std::string& quantity, const Judgment& judgment) {
    result.verdicts.push_back({id, claim, source, setting_of(context, gradient_model(context, arm, part, false)),
                               quantity, judgment, "", "gradient_by_layer_" + to_string(last)});
  };
  const auto ratios = [&](const char* arm) { return last_to_first(usual.at(arm), last); };
  const bool has_pre_ln = usual.count("pre-ln") != 0;
  if (usual.count("post-ln") != 0) {
    add_verdict("post_ln_grows", "Post-LN: at initialization the gradient grows toward the output",
                "Xiong et al. 2020, Figure 3a", "post-ln", ratio,
                judge(ratios("post-ln"), Region::above(1.1, 1), Scale::logarithmic));
  }
  for (const auto& [arm, norms] : in_theory) judge_factor(context, norms, part, result);
  if (has_pre_ln) {
    add_verdict("pre_ln_flat", "Pre-LN: the gradient is about the same in every layer", "Xiong et al. 2020, Figure 3a",
                "pre-ln", ratio, judge(ratios("pre-ln"), {1 / 1.5, 1.5}, Scale::logarithmic));
  }
  if (has_pre_ln && usual.count("residual-dual") != 0) {
    add_verdict("residual_dual_bounded", "ResiDual: the gradient of early layers vanishes no more than in Pre-LN",
                "Xie et al. 2023, arXiv 2304.14802, section 3", "residual-dual",
                fmt::format("norm of W₂'s gradient in {} layer 1, ResiDual / Pre-LN", to_string(last)),
                judge_readings(first_layer_readings(usual.at("residual-dual"), usual.at("pre-ln"), last),
                               Region::above(1 / 1.5), Scale::logarithmic));
  }
  for (const auto& [arm, norms] : usual) result.measurements[arm] = norms;
  return result;
}

PartPlan plan(StudyContext& context, const GradientStudy& part) {
  PartPlan plan(context);
  std::map<std::string, NormsOfSeeds> usual, theory;
  for (const std::string& arm : arm_names(context)) {
    usual.emplace(arm, planned_norms(plan, context, arm, part, false));
    // The factor that the appendix predicts needs Post-LN and more than one layer.
    if (arm == "post-ln" && part.layers > 1) theory.emplace(arm, planned_norms(plan, context, arm, part, true));
  }
  const StackKind last = last_stack(context);
  for (const auto& [arm, measured] : usual) {
    plan.quantity("gradient_growth",
                  fmt::format("norm of W₂'s gradient in the last layer / in the first, {}", to_string(last)),
                  Scale::logarithmic, arm,
                  [measured = measured, last] { return last_to_first(by_parameter(measured), last); })
        .figure = "gradient_by_layer_" + to_string(last);
  }
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
    "Xiong et al. 2020, arXiv 2002.04745", {.place = 1, .any_depth = true, .plan = plan});

}  // namespace
}  // namespace plumb
