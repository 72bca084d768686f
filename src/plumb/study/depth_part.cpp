// The last layer's gradient as a function of depth: Xiong et al. 2020, Figure 3 (c, d) and Theorem 1.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "plumb/analysis/gradient.h"
#include "plumb/analysis/statistics.h"
#include "plumb/base/progress.h"
#include "plumb/study/part.h"

namespace plumb {
namespace {

std::vector<double> measure(StudyContext& context, const std::string& scheme, int64_t layers, const DepthStudy& part) {
  const ModelConfig config = model_for(context, scheme, layers);
  const Json settings = {{"data", context.data_settings},
                         {"model", settings_of(config)},
                         {"seeds", part.seeds},
                         {"pairs", part.pairs},
                         {"first_seed", context.config.study.seed}};
  const std::string label = fmt::format("depth-{}-{}", file_name(scheme), layers);
  const Json norms = context.measurements.get(label, settings, [&] {
    const std::vector<Batch> batches = measured_batches(context, part.pairs);
    const std::string last = feed_forward_matrix({last_stack(context), layers - 1}, 2);
    Progress progress(fmt::format("depth {}-{}, {}", layers, layers, display_name(scheme)), part.seeds);
    std::vector<double> measured;
    for (int64_t i = 0; i < part.seeds; ++i) {
      measured.push_back(measure_gradients(*initialized_model(context, config, i), batches).norm(last));
      progress.update(i + 1);
    }
    return Json(measured);
  });
  return numbers_of(norms);
}

}  // namespace

PartResult measure(StudyContext& context, const DepthStudy& part) {
  PartResult result;
  Figure figure;
  figure.id = "gradient_by_depth";
  figure.title = "Gradient of the last feed-forward layer by depth";
  figure.caption = fmt::format(
      "Frobenius norm of the mean gradient of W₂ in the last {} layer at initialization, for models of increasing "
      "depth;  "
      "mean over seeds with its 95 % interval. Theorem 1 bounds it by O(d√ln d) for Post-LN and O(d√(ln d / L)) for "
      "Pre-LN.",
      to_string(last_stack(context)));
  figure.kind = "line";
  figure.x = {stacks_of(context).size() > 1 ? "layers (in each of encoder and decoder)" : "layers"};
  figure.y = {"gradient norm"};
  std::map<std::string, LineFit> fits;
  std::map<std::string, std::pair<Interval, Interval>> ends;
  for (const std::string& scheme : context.config.study.schemes) {
    Series series{display_name(scheme), scheme};
    std::vector<double> x;
    std::vector<double> y;
    for (const int64_t layers : part.layers) {
      const Interval interval = positive_interval(measure(context, scheme, layers, part));
      series.point(layers, interval.mean, interval.low, interval.high);
      x.push_back(std::log(static_cast<double>(layers)));
      y.push_back(std::log(interval.mean));
      if (layers == part.layers.front()) ends[scheme].first = interval;
      if (layers == part.layers.back()) ends[scheme].second = interval;
    }
    figure.series.push_back(series);
    if (scheme == "pre-ln") {
      Series theory{"1/√L, from the first point", "theory"};
      theory.style = "dashed";
      for (const int64_t layers : part.layers) {
        theory.point(layers, ends[scheme].first.mean *
                                 std::sqrt(static_cast<double>(part.layers.front()) / static_cast<double>(layers)));
      }
      figure.series.push_back(theory);
    }
    if (part.layers.size() > 2) fits[scheme] = fit_line(x, y);
    result.measurements[scheme] = {{"layers", part.layers}, {"log_norm", y}};
  }
  double largest = 0;
  double smallest = std::numeric_limits<double>::infinity();
  for (const auto& [scheme, end] : ends) {
    largest = std::max({largest, end.first.mean, end.second.mean});
    smallest = std::min({smallest, end.first.mean, end.second.mean});
  }
  figure.y.log = largest > 1000 * smallest;  // a scheme that explodes would hide the others
  result.figures.push_back(figure);

  const auto evidence = [&](const std::string& scheme) {
    return fmt::format(
        "The norm changes from {:.3g} at {} layers to {:.3g} at {}, as depth to the power of {:.2f} ± {:.2f}.",
        ends[scheme].first.mean, part.layers.front(), ends[scheme].second.mean, part.layers.back(), fits[scheme].slope,
        fits[scheme].slope_error);
  };
  if (fits.count("post-ln") != 0) {
    const bool flat = std::abs(fits["post-ln"].slope) < 0.2;
    result.verdicts.push_back({"post_ln_depth", "Post-LN: the last layer's gradient does not depend on depth",
                               "Xiong et al. 2020, Figure 3d, Theorem 1", confirmed_if(flat), evidence("post-ln"),
                               figure.id});
  }
  if (fits.count("pre-ln") != 0) {
    const double slope = fits["pre-ln"].slope;
    result.verdicts.push_back({"pre_ln_depth", "Pre-LN: the last layer's gradient decreases with depth as 1/√L",
                               "Xiong et al. 2020, Figure 3d, Theorem 1",
                               std::abs(slope + 0.5) < 0.2 ? "confirmed"
                               : slope < -0.1              ? "unclear"
                                                           : "contradicted",
                               evidence("pre-ln"), figure.id});
  }
  return result;
}

}  // namespace plumb
