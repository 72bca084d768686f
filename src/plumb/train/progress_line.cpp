#include "plumb/train/progress_line.h"

#include <fmt/format.h>

#include <cmath>

#include "plumb/base/quantity.h"
#include "plumb/train/trainer.h"

namespace plumb {

std::vector<ProgressPart> progress_parts(const TrainStatus& status) {
  constexpr int kMost = ProgressPart::kTime + 1;
  std::vector<ProgressPart> parts = {
      {fmt::format("epoch {}", status.epoch + 1), 2},
      {fmt::format("loss {:.3f}", status.loss), kMost},
      {"ppl " + rounded(std::exp(status.nll), 3), 3},
      {fmt::format("lr {:.2e}", status.learning_rate), 5},
  };
  if (status.gradient_norm) parts.push_back({fmt::format("grad {:.3g}", *status.gradient_norm), 4});
  parts.push_back({fmt::format("{:.0f} tok/s", status.tokens_per_second), 6});
  if (status.ceiling_fraction) parts.push_back({fmt::format("{:.0f}% of peak", 100 * *status.ceiling_fraction), 1});
  if (status.data_fraction >= 0.01) parts.push_back({fmt::format("data {:.0f}%", 100 * status.data_fraction), 2});
  return parts;
}

void TrainProgress::on_begin(const Trainer& trainer) {
  shown_.emplace(label_, trainer.planned_steps(), Progress::Unit::steps, trainer.step());
}

void TrainProgress::on_step(const Trainer& trainer, const TrainStatus& status) {
  shown_->update(trainer.step(), progress_parts(status));
}

}  // namespace plumb
