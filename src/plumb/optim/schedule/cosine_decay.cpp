// Cosine decay (Loshchilov & Hutter 2017, arXiv 1608.03983): floor + (1 − floor)·(1 + cos(π·progress))/2.
#include <cmath>
#include <numbers>

#include "plumb/optim/schedule.h"

namespace plumb {
namespace {

const bool kCosineDecayRegistered = schedule_factors().add(
    "cosine_decay", "from 1 at s to `train.decay_floor` at step `train.steps`, along half a cosine",
    "Loshchilov & Hutter 2017, arXiv 1608.03983", [](const ScheduleFrame& frame, const Options&) -> ScheduleFactor {
      return [frame](int64_t step) {
        return frame.decay_floor +
               (1 - frame.decay_floor) * (1 + std::cos(std::numbers::pi * frame.decay_progress(step))) / 2;
      };
    });

}  // namespace
}  // namespace plumb
