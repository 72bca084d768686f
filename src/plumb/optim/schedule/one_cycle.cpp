// The one-cycle schedule (Smith & Topin 2018, arXiv 1708.07120) in the two phases of fastai and PyTorch: from
// 1/first_divisor up to 1 and down to 1/(first_divisor·last_divisor), over `train.steps`. Within a phase from a to b,
// with progress p from 0 to 1:
//   cosine: b + (a − b)·(1 + cos(π·p))/2;  line: a + (b − a)·p
// The paper also lowers the momentum while the rate is high, which is not done here.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "plumb/optim/schedule.h"

namespace plumb {
namespace {

struct OneCycleOptions {
  double climb = 0.3;
  double first_divisor = 25;
  double last_divisor = 1e4;
  std::string shape = "cosine";
};
void describe(Fields& field, OneCycleOptions& options) {
  field("climb", options.climb, "the share of `train.steps` over which the rate climbs",
        Domain{.smallest = 0, .largest = 1, .above = true, .below = true});
  field("first_divisor", options.first_divisor, "the first rate is the peak divided by it", at_least(1));
  field("last_divisor", options.last_divisor, "the last rate is the first one divided by it", at_least(1));
  field("shape", options.shape, "the curve of both phases", one_of({"cosine", "line"}));
}

const bool kOneCycleRegistered = schedule_factors().add(
    "one_cycle",
    "from 1/first_divisor to 1 and on to 1/(first_divisor·last_divisor), along two half cosines; has its own warm-up",
    "Smith & Topin 2018, arXiv 1708.07120",
    [](const ScheduleFrame& frame, const Options& given) -> ScheduleFactor {
      const auto& options = given.as<OneCycleOptions>();
      const auto last = static_cast<double>(frame.steps) - 1;  // steps before the last one
      const double peak = options.climb * static_cast<double>(frame.steps) - 1;
      const double first = 1 / options.first_divisor, end = first / options.last_divisor;
      return [=, line = options.shape == "line"](int64_t step) {
        const auto t = static_cast<double>(step - 1);
        const bool climbs = t <= peak;
        const double from = climbs ? first : 1, to = climbs ? 1 : end;
        const double p = climbs ? (peak > 0 ? t / peak : 1) : std::min((t - peak) / (last - peak), 1.0);
        return line ? from + (to - from) * p : to + (from - to) * (1 + std::cos(std::numbers::pi * p)) / 2;
      };
    },
    Options(OneCycleOptions{}));

}  // namespace
}  // namespace plumb
