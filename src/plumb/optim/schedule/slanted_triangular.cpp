// The slanted triangular schedule of ULMFiT (Howard & Ruder 2018, arXiv 1801.06146): a short climb and a long descent.
// With T = `train.steps` and cut = ⌊T·cut_fraction⌋:
//   p = t/cut if t < cut, else 1 − (t − cut)/(cut·(1/cut_fraction − 1));  (1 + p·(ratio − 1))/ratio
#include <algorithm>
#include <cmath>

#include "plumb/optim/schedule.h"

namespace plumb {
namespace {

struct SlantedTriangularOptions {
  double cut_fraction = 0.1;
  double ratio = 32;
};
void describe(Fields& field, SlantedTriangularOptions& options) {
  field("cut_fraction", options.cut_fraction, "the share of `train.steps` over which the rate climbs",
        Domain{.smallest = 0, .largest = 1, .above = true, .below = true});
  field("ratio", options.ratio, "the peak rate divided by the lowest", at_least(1));
}

const bool kSlantedTriangularRegistered = schedule_factors().add(
    "slanted_triangular",
    "(1 + p·(ratio − 1))/ratio, p = t/cut before cut = ⌊`train.steps`·cut_fraction⌋, then "
    "1 − (t − cut)/(cut·(1/cut_fraction − 1)); has its own warm-up",
    "Howard & Ruder 2018, arXiv 1801.06146",
    [](const ScheduleFrame& frame, const Options& given) -> ScheduleFactor {
      const auto& options = given.as<SlantedTriangularOptions>();
      const double cut = std::max(std::floor(static_cast<double>(frame.steps) * options.cut_fraction), 1.0);
      const double descent = cut * (1 / options.cut_fraction - 1);
      return [=, ratio = options.ratio](int64_t step) {
        const auto t = static_cast<double>(step);
        const double p = t < cut ? t / cut : std::max(1 - (t - cut) / descent, 0.0);
        return (1 + p * (ratio - 1)) / ratio;
      };
    },
    Options(SlantedTriangularOptions{}));

}  // namespace
}  // namespace plumb
