// The last layer's gradient as a function of depth: Xiong et al. 2020, Figure 3 (c, d) and Theorem 1.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "plumb/analysis/gradient.h"
#include "plumb/report/display_name.h"
#include "plumb/study/over_seeds.h"

namespace plumb {
namespace {

struct DepthStudy {
  std::vector<int64_t> layers = {6, 8, 10, 12, 14};
  int64_t seeds = 5;
  int64_t pairs = 100;
};

void describe(Fields& field, DepthStudy& part) {
  field("layers", part.layers, kLayersMeaning, count_from(1).each_once());
  field("seeds", part.seeds, kSeedsMeaning, count_from(1));
  field("pairs", part.pairs, kPairsMeaning, count_from(0));
}

using ByDepth = std::vector<Planned<std::vector<double>>>;  // [depth][seed]: the gradient norm of the last layer's W₂

PartResult report_depth(const StudyContext& context, const DepthStudy& part,
                        const std::map<std::string, ByDepth>& measured) {
  PartResult result;
  const std::vector<double> depths(part.layers.begin(), part.layers.end());
  Figure figure{
      "gradient_by_depth",
      "Gradient of the last feed-forward layer by depth",
      fmt::format("Frobenius norm of the mean gradient of W₂ in the last {} layer at initialization; geometric "
                  "mean ({}). Theorem 1 bounds it by O(d√ln d) for Post-LN and O(d√(ln d / L)) for Pre-LN.",
                  to_string(last_stack(context)), seeds_in_words(part.seeds)),
      "line",
      {stacks_of(context).size() > 1 ? "layers (in each of encoder and decoder)" : "layers"},
      {"gradient norm"}};
  double largest = 0;
  double smallest = std::numeric_limits<double>::infinity();
  for (const std::string& arm : arm_names(context)) {
    Series& line = figure.add(display_name(arm), arm);
    const ByDepth& norms = measured.at(arm);
    for (size_t i = 0; i < part.layers.size(); ++i) {
      const Interval interval = size_interval(*norms[i]);
      line.point(part.layers[i], interval);
      largest = std::max(largest, interval.mean);
      smallest = std::min(smallest, interval.mean);
    }
    if (arm == "pre-ln") {
      Series& theory = figure.add("1/√L, from the first point", "theory", "dashed");
      for (const double depth : depths) theory.point(depth, line.y.front() * std::sqrt(depths.front() / depth));
    }
    result.measurements[arm] = {{"layers", part.layers}, {"norm", result_json(norms)}};
  }
  figure.y.log = largest > 1000 * smallest;  // a scheme that explodes would hide the others
  result.figures.push_back(figure);

  return result;
}

PartPlan plan(StudyContext& context, const DepthStudy& part) {
  PartPlan plan(context);
  std::map<std::string, ByDepth> measured;
  for (const std::string& arm : arm_names(context)) {
    for (const int64_t layers : part.layers) {
      measured[arm].push_back(over_seeds(
          plan, context,
          {.name = fmt::format("depth-{}-{}", file_name(arm), layers),
           .label = fmt::format("depth {0}-{0}, {1}", layers, display_name(arm)),
           .model = model_for(context, arm, layers),
           .seeds = part.seeds,
           .pairs = part.pairs},
          [last = LayerId{last_stack(context), layers - 1}](Model& model, const std::vector<Batch>& batches) {
            return measure_gradients(model, batches).norm(feed_forward_matrix(last, 2));
          }));
    }
  }
  const auto [fewest, most] = std::minmax_element(part.layers.begin(), part.layers.end());
  for (const auto& [arm, norms] : measured) {
    if (part.layers.size() < 3) break;
    Quantity& added =
        plan.quantity("gradient_depth_exponent", "power of the number of layers as which the last W₂'s gradient grows",
                      Scale::linear, arm, [layers = part.layers, norms = norms] {
                        std::vector<std::vector<double>> values;  // [depth][seed]
                        for (const auto& at_depth : norms) values.push_back(*at_depth);
                        return power_exponents({layers.begin(), layers.end()}, values);
                      });
    added.in_comparison_table = false;
    added.figure = "gradient_by_depth";
    added.telling = {.subject = "gradient in the last layer",
                     .over = fmt::format("from {} to {} layers", *fewest, *most),
                     .factor = [deeper = static_cast<double>(*most) / static_cast<double>(*fewest)](double power) {
                       return std::pow(deeper, power);
                     }};
    added.setting = [&context, deepest = part.layers.back()](const std::string& of) {
      return setting_of(context, model_for(context, of, deepest));
    };
  }
  plan.report = [&context, part, measured] { return report_depth(context, part, measured); };
  return plan;
}

[[maybe_unused]] const bool kDepth =
    add_part<DepthStudy>("depth", "the gradient of the last feed-forward matrix as a function of depth",
                         "Xiong et al. 2020, arXiv 2002.04745", {.order = 2, .plan = plan});

}  // namespace
}  // namespace plumb
