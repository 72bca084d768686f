// The decay of warm-up–stable–decay (Hu et al. 2024, arXiv 2404.06395; Hägele et al. 2024, arXiv 2405.18392): 1 until
// the last steps of a run, then down to the floor along one of these curves, where p goes from 0 to 1:
//   root: 1 − √p;  line: 1 − p
#include <algorithm>
#include <cmath>

#include "plumb/optim/schedule.h"

namespace plumb {
namespace {

struct StableDecayOptions {
  double share = 0.2;
  std::string shape = "root";
};
void describe(Fields& field, StableDecayOptions& options) {
  field("share", options.share, "the share of `train.steps` over which the rate decays, at the end",
        Domain{.smallest = 0, .largest = 1, .above = true});
  field("shape", options.shape, "`root`: 1 − √p; `line`: 1 − p; p is the progress from 0 to 1",
        one_of({"root", "line"}));
}

double remaining(const std::string& shape, double p) { return 1 - (shape == "root" ? std::sqrt(p) : p); }

const bool kStableDecayRegistered = schedule_factors().add(
    "stable_decay",
    "1, and over the last steps to `train.decay_floor`: `constant * linear_warmup * stable_decay` is "
    "warm-up–stable–decay",
    "Hu et al. 2024, arXiv 2404.06395; `root`: Hägele et al. 2024, arXiv 2405.18392",
    [](const ScheduleFrame& frame, const Options& given) -> ScheduleFactor {
      const auto& options = given.as<StableDecayOptions>();
      const auto length = static_cast<double>(frame.steps) * options.share;
      const auto begin = static_cast<double>(frame.steps) - length;
      return [=, shape = options.shape, floor = frame.decay_floor](int64_t step) {
        const double p = std::clamp((static_cast<double>(step) - begin) / length, 0.0, 1.0);
        return floor + (1 - floor) * remaining(shape, p);
      };
    },
    Options(StableDecayOptions{}));

}  // namespace
}  // namespace plumb
