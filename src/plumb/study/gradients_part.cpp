// Gradients by layer at initialization: Xiong et al. 2020, Figure 3 (a, b), and the factor that its appendix predicts.
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "plumb/analysis/gradient.h"
#include "plumb/analysis/theory.h"
#include "plumb/base/error.h"
#include "plumb/study/over_seeds.h"

namespace plumb {
namespace {

struct GradientStudy {
  int64_t layers = 6;
  int64_t seeds = 5;
  int64_t pairs = 200;
};

void describe(Fields& field, GradientStudy& part) {
  field("layers", part.layers, kLayersMeaning, count_from(1));
  field("seeds", part.seeds, kSeedsMeaning, count_from(1));
  field("pairs", part.pairs, kPairsMeaning, count_from(0));
}

/// Norms of the mean gradient by parameter, one value per seed.
using Norms = std::map<std::string, std::vector<double>>;
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

/// [seed]: norm in the last layer / norm in the first.
std::vector<double> last_to_first(const Norms& norms, StackKind stack, int64_t layers) {
  const std::vector<double> last = norms_at(norms, feed_forward_matrix({stack, layers - 1}, 2));
  const std::vector<double> first = norms_at(norms, feed_forward_matrix({stack, 0}, 2));
  std::vector<double> ratios;
  for (size_t seed = 0; seed < last.size(); ++seed) ratios.push_back(last[seed] / first[seed]);
  return ratios;
}

/// [seed]: the factor per layer of a sub-layer's gradient norm, from the line fitted to its logarithm over the layers.
std::vector<double> factors(const Norms& norms, StackKind stack, int64_t layers, SubLayerKind kind) {
  std::vector<double> by_seed;
  const size_t seeds = norms_at(norms, output_matrix(stack, 0, kind)).size();
  for (size_t seed = 0; seed < seeds; ++seed) {
    std::vector<double> x;
    std::vector<double> y;
    for (int64_t layer = 0; layer < layers; ++layer) {
      x.push_back(static_cast<double>(layer));
      y.push_back(std::log(norms_at(norms, output_matrix(stack, layer, kind))[seed]));
    }
    by_seed.push_back(std::exp(fit_line(x, y).slope));
  }
  return by_seed;
}

/// How the gradient of W₂ in layer 1 compares, first / second: by itself, and relative to the last layer's, which a
/// scheme may enlarge without making that of layer 1 smaller.
std::vector<QuantityReading> first_layer_readings(const Norms& first, const Norms& second, StackKind stack,
                                                  int64_t layers) {
  const std::string parameter = feed_forward_matrix({stack, 0}, 2);
  const std::vector<double> of_first = last_to_first(first, stack, layers);
  const std::vector<double> of_second = last_to_first(second, stack, layers);
  std::vector<QuantityReading> readings = {{"by itself", {}}, {fmt::format("relative to layer {}", layers), {}}};
  for (size_t seed = 0; seed < of_first.size(); ++seed) {
    readings[0].values.push_back(norms_at(first, parameter)[seed] / norms_at(second, parameter)[seed]);
    readings[1].values.push_back(of_second[seed] / of_first[seed]);
  }
  return readings;
}

/// `theory`: in the theory's setting instead of the study's.
ModelConfig gradient_model(const StudyContext& context, const std::string& scheme, const GradientStudy& part,
                           bool theory) {
  return theory ? theory_model(context, scheme, context.config.model.d_model, "theory", part.layers)
                : model_for(context, scheme, part.layers);
}

NormsOfSeeds planned_norms(PartPlan& plan, StudyContext& context, const std::string& scheme, const GradientStudy& part,
                           bool theory) {
  return over_seeds(plan, context,
                    {.name = fmt::format("gradients-{}{}", file_name(scheme), theory ? "-theory" : ""),
                     .label = "gradients, " + display_name(scheme) + (theory ? ", theory's setting" : ""),
                     .model = gradient_model(context, scheme, part, theory),
                     .seeds = part.seeds,
                     .pairs = part.pairs},
                    [](Model& model, const std::vector<Batch>& batches) {
                      const GradientProfile profile = measure_gradients(model, batches);
                      return std::map<std::string, double>(profile.norm_by_parameter.begin(),
                                                           profile.norm_by_parameter.end());
                    });
}

/// Whether to judge the factor that the appendix predicts, which needs Post-LN and more than one layer.
bool judges_factor(const std::string& scheme, const GradientStudy& part) {
  return scheme == "post-ln" && part.layers > 1;
}

Figure gradient_figure(StackKind stack, const std::map<std::string, Norms>& by_scheme,
                       const std::map<std::string, Norms>& in_theory, int64_t layers, int64_t seeds) {
  Figure figure{"gradient_by_layer_" + to_string(stack),
                fmt::format("Gradient norm by layer, {}", to_string(stack)),
                fmt::format("Frobenius norm of the mean gradient of the feed-forward matrices of each {} layer at "
                            "initialization. Solid: W₂; dashed: W₁. Geometric mean over seeds ({}).",
                            to_string(stack), seeds_in_words(seeds)),
                "line",
                {"layer"},
                {"gradient norm", true}};
  const auto add = [&](Series series, const Norms& norms, int matrix) {
    for (int64_t layer = 0; layer < layers; ++layer)
      series.point(layer + 1, size_interval(norms_at(norms, feed_forward_matrix({stack, layer}, matrix))));
    figure.series.push_back(series);
  };
  for (const auto& [scheme, norms] : by_scheme) {
    Series first{display_name(scheme) + " W₁", scheme};
    first.style = "dashed";
    add({display_name(scheme) + " W₂", scheme}, norms, 2);
    add(first, norms, 1);
  }
  for (const auto& [scheme, norms] : in_theory)
    add({display_name(scheme) + " W₂, theory's setting", "theory's setting"}, norms, 2);
  return figure;
}

/// The factor per layer by sub-layer, in the study's model and in the theory's setting.
Table factor_table(const StudyContext& context, const std::map<std::string, Norms>& by_scheme,
                   const std::map<std::string, Norms>& in_theory, const GradientStudy& part) {
  Table table{"gradient_factors",
              "Growth of the gradient from layer to layer",
              "Factor by which the gradient norm of a sub-layer's output matrix changes from one layer to the next, "
              "fitted over the layers of each seed; geometric mean over the seeds with its 95% interval. For Post-LN's "
              "feed-forward matrix W₂, the appendix of Xiong et al. 2020 predicts √(3/2) = 1.225 in the theory's "
              "setting.",
              {"scheme", "setting", "stack", "sub-layer", "factor per layer", "low", "high"}};
  const auto add = [&](const std::string& scheme, const char* setting, const Norms& norms) {
    for (const StackKind stack : stacks_of(context)) {
      for (const SubLayerKind kind :
           {SubLayerKind::self_attention, SubLayerKind::cross_attention, SubLayerKind::feed_forward}) {
        if (norms.count(output_matrix(stack, 0, kind)) == 0) continue;
        table.row(scheme, setting, to_string(stack),
                  kind == SubLayerKind::self_attention    ? "self-attention"
                  : kind == SubLayerKind::cross_attention ? "cross-attention"
                                                          : "feed-forward",
                  geometric_interval(factors(norms, stack, part.layers, kind)));
      }
    }
  };
  if (part.layers < 2) return table;
  for (const auto& [scheme, norms] : by_scheme) add(scheme, "the study's", norms);
  for (const auto& [scheme, norms] : in_theory) add(scheme, "the theory's", norms);
  return table;
}

void judge_factor(const StudyContext& context, const Norms& norms, const GradientStudy& part, PartResult& result) {
  const StackKind stack = first_stack(context);
  const double predicted = std::exp(theory::log_slope());
  const Judgment judgment = judge(factors(norms, stack, part.layers, SubLayerKind::feed_forward),
                                  {predicted / 1.05, predicted * 1.05}, Scale::logarithmic);
  result.verdicts.push_back(
      {"post_ln_slope", "Post-LN: the gradient of layer l carries the factor (2/3)^((L−l)/2)",
       "Xiong et al. 2020, appendix", setting_of(context, gradient_model(context, "post-ln", part, true)),
       fmt::format("factor per layer of the norm of W₂'s gradient, {}", to_string(stack)), judgment,
       "The factor is the norm's backward gain √(2/3) alone and leaves out the branch's, whose expectation, √(3/2), "
       "would cancel it. The table gives the factors of attention and of the decoder, whose cross-attention adds paths "
       "that the theory leaves out.",
       "gradient_by_layer_" + to_string(stack)});
}

PartResult report_gradients(const StudyContext& context, const GradientStudy& part,
                            const std::map<std::string, Norms>& by_scheme,
                            const std::map<std::string, Norms>& in_theory) {
  PartResult result;
  const std::vector<StackKind> stacks = stacks_of(context);
  const StackKind last = stacks.back();
  for (auto stack = stacks.rbegin(); stack != stacks.rend(); ++stack)
    result.figures.push_back(gradient_figure(*stack, by_scheme, in_theory, part.layers, part.seeds));
  result.tables.push_back(factor_table(context, by_scheme, in_theory, part));

  const std::string id = "gradient_by_layer_" + to_string(last);
  const std::string ratio =
      fmt::format("norm of W₂'s gradient in {} layer {} / in layer 1", to_string(last), part.layers);
  const auto setting = [&](const std::string& scheme) {
    return setting_of(context, gradient_model(context, scheme, part, false));
  };
  if (by_scheme.count("post-ln") != 0) {
    const Judgment judgment =
        judge(last_to_first(by_scheme.at("post-ln"), last, part.layers), Region::above(1.1, 1), Scale::logarithmic);
    result.verdicts.push_back({"post_ln_grows", "Post-LN: at initialization the gradient grows toward the output",
                               "Xiong et al. 2020, Figure 3a", setting("post-ln"), ratio, judgment, "", id});
    result.summary.push_back(fmt::format(
        "At initialization, the norm of W₂'s gradient in the last {} layer of Post-LN is {} times that in the "
        "first ({}; {} layers).",
        to_string(last), with_interval(judgment.effect), seeds_in_words(part.seeds), part.layers));
  }
  for (const auto& [scheme, norms] : in_theory) judge_factor(context, norms, part, result);
  if (by_scheme.count("pre-ln") != 0) {
    result.verdicts.push_back(
        {"pre_ln_flat", "Pre-LN: the gradient is about the same in every layer", "Xiong et al. 2020, Figure 3a",
         setting("pre-ln"), ratio,
         judge(last_to_first(by_scheme.at("pre-ln"), last, part.layers), {1 / 1.5, 1.5}, Scale::logarithmic), "", id});
  }
  if (by_scheme.count("residual-dual") != 0 && by_scheme.count("pre-ln") != 0) {
    result.verdicts.push_back(
        {"residual_dual_bounded", "ResiDual: the gradient of early layers vanishes no more than in Pre-LN",
         "Xie et al. 2023, arXiv 2304.14802, section 3", setting("residual-dual"),
         fmt::format("norm of W₂'s gradient in {} layer 1, ResiDual / Pre-LN", to_string(last)),
         judge_readings(first_layer_readings(by_scheme.at("residual-dual"), by_scheme.at("pre-ln"), last, part.layers),
                        Region::above(1 / 1.5), Scale::logarithmic),
         "", id});
  }
  for (const auto& [scheme, norms] : by_scheme) result.measurements[scheme] = norms;
  return result;
}

PartPlan plan(StudyContext& context, const GradientStudy& part) {
  PartPlan plan(context);
  std::map<std::string, NormsOfSeeds> usual, theory;
  for (const std::string& scheme : context.config.study.schemes) {
    usual.emplace(scheme, planned_norms(plan, context, scheme, part, false));
    if (judges_factor(scheme, part)) theory.emplace(scheme, planned_norms(plan, context, scheme, part, true));
  }
  plan.report = [&context, part, usual, theory] {
    std::map<std::string, Norms> by_scheme, in_theory;
    for (const auto& [scheme, measured] : usual) by_scheme[scheme] = by_parameter(measured);
    for (const auto& [scheme, measured] : theory) in_theory[scheme] = by_parameter(measured);
    return report_gradients(context, part, by_scheme, in_theory);
  };
  return plan;
}

[[maybe_unused]] const bool kGradients = add_part<GradientStudy>(
    "gradients", "gradient norms by layer at initialization; for `post-ln` also in the theory's setting",
    "Xiong et al. 2020, arXiv 2002.04745", {.place = 1, .plan = plan});

}  // namespace
}  // namespace plumb
