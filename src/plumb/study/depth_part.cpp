// The last layer's gradient as a function of depth: Xiong et al. 2020, Figure 3 (c, d) and Theorem 1.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "plumb/analysis/gradient.h"
#include "plumb/base/progress.h"
#include "plumb/study/part.h"

namespace plumb {
namespace {

using ByDepth = std::vector<std::vector<double>>;  // [depth][seed]: the gradient norm of the last layer's W₂

MeasurementRequest depth_request(StudyContext& context, const std::string& scheme, int64_t layers,
                                 const DepthStudy& part) {
  const ModelConfig config = model_for(context, scheme, layers);
  MeasurementRequest request;
  request.name = fmt::format("depth-{}-{}", file_name(scheme), layers);
  request.label = fmt::format("depth {0}-{0}, {1}", layers, display_name(scheme));
  request.settings = {{"data", context.batch_settings},
                      {"model", settings_of(config)},
                      {"seeds", part.seeds},
                      {"pairs", part.pairs},
                      {"first_seed", context.config.study.seed}};
  request.work = work_of(config, static_cast<double>(part.seeds * part.pairs * 20));
  request.measure = [&context, config, layers, part, label = request.label] {
    const std::vector<Batch> batches = measured_batches(context, part.pairs);
    const std::string last = feed_forward_matrix({last_stack(context), layers - 1}, 2);
    Progress progress(label, part.seeds);
    std::vector<double> measured;
    for (int64_t i = 0; i < part.seeds; ++i) {
      measured.push_back(measure_gradients(*initialized_model(context, config, i), batches).norm(last));
      progress.update(i + 1);
    }
    return Json(measured);
  };
  return request;
}

/// [seed]: the exponent p of norm ~ layers^p.
std::vector<double> depth_exponents(const ByDepth& norms, const std::vector<int64_t>& layers) {
  std::vector<double> exponents;
  for (size_t seed = 0; seed < norms.front().size(); ++seed) {
    std::vector<double> x;
    std::vector<double> y;
    for (size_t i = 0; i < layers.size(); ++i) {
      x.push_back(std::log(static_cast<double>(layers[i])));
      y.push_back(std::log(norms[i][seed]));
    }
    exponents.push_back(fit_line(x, y).slope);
  }
  return exponents;
}

struct DepthClaim {
  const char* scheme;
  const char* id;
  double exponent;
  const char* claim;
};
constexpr DepthClaim kDepthClaims[] = {
    {"post-ln", "post_ln_depth", 0, "Post-LN: the last layer's gradient does not depend on depth"},
    {"pre-ln", "pre_ln_depth", -0.5, "Pre-LN: the last layer's gradient decreases with depth as 1/√L"},
};
constexpr double kDepthMargin = 0.15;  // of the exponent

}  // namespace

std::vector<MeasurementRequest> requests(StudyContext& context, const DepthStudy& part) {
  std::vector<MeasurementRequest> list;
  for (const std::string& scheme : context.config.study.schemes) {
    for (const int64_t layers : part.layers) list.push_back(depth_request(context, scheme, layers, part));
  }
  return list;
}

PartResult measure(StudyContext& context, const DepthStudy& part) {
  PartResult result;
  Figure figure;
  figure.id = "gradient_by_depth";
  figure.title = "Gradient of the last feed-forward layer by depth";
  figure.caption = fmt::format(
      "Frobenius norm of the mean gradient of W₂ in the last {} layer at initialization, for models of increasing "
      "depth; geometric mean over seeds ({}). Theorem 1 bounds it by O(d√ln d) for Post-LN and O(d√(ln d / L)) for "
      "Pre-LN.",
      to_string(last_stack(context)), seeds_in_words(part.seeds));
  figure.kind = "line";
  figure.x = {stacks_of(context).size() > 1 ? "layers (in each of encoder and decoder)" : "layers"};
  figure.y = {"gradient norm"};
  std::map<std::string, ByDepth> measured;
  double largest = 0;
  double smallest = std::numeric_limits<double>::infinity();
  for (const std::string& scheme : context.config.study.schemes) {
    Series series{display_name(scheme), scheme};
    for (const int64_t layers : part.layers) {
      measured[scheme].push_back(numbers_of(context.measurements.get(depth_request(context, scheme, layers, part))));
      const Interval interval = size_interval(measured[scheme].back());
      series.point(layers, interval.mean, interval.low, interval.high);
      largest = std::max(largest, interval.mean);
      smallest = std::min(smallest, interval.mean);
    }
    figure.series.push_back(series);
    if (scheme == "pre-ln") {
      Series theory{"1/√L, from the first point", "theory"};
      theory.style = "dashed";
      for (const int64_t layers : part.layers) {
        theory.point(layers, size_interval(measured[scheme].front()).mean *
                                 std::sqrt(static_cast<double>(part.layers.front()) / static_cast<double>(layers)));
      }
      figure.series.push_back(theory);
    }
    result.measurements[scheme] = {{"layers", part.layers}, {"norm", measured[scheme]}};
  }
  figure.y.log = largest > 1000 * smallest;  // a scheme that explodes would hide the others
  result.figures.push_back(figure);

  if (part.layers.size() < 3) return result;
  for (const DepthClaim& claim : kDepthClaims) {
    if (measured.count(claim.scheme) == 0) continue;
    const ByDepth& norms = measured[claim.scheme];
    const Judgment judgment = judge(depth_exponents(norms, part.layers), Region::around(claim.exponent, kDepthMargin));
    const auto mean = [](const std::vector<double>& values) { return size_interval(values).mean; };
    result.verdicts.push_back({claim.id, claim.claim, "Xiong et al. 2020, Figure 3d, Theorem 1",
                               setting_of(context, model_for(context, claim.scheme, part.layers.back())),
                               "exponent p of the norm of the last W₂'s gradient as layers^p", judgment,
                               fmt::format("The norm is {:.3g} with {} layers and {:.3g} with {}.", mean(norms.front()),
                                           part.layers.front(), mean(norms.back()), part.layers.back()),
                               figure.id});
  }
  return result;
}

}  // namespace plumb
