#include "plumb/task/usual_settings.h"

#include <fmt/format.h>

namespace plumb {

std::vector<std::string> usual_passes(int64_t epochs, const Dataset& train) {
  constexpr int64_t kMost = 40'000'000;  // tokens
  int64_t tokens = 0;                    // of an epoch
  for (int64_t example = 0; example < train.size(); ++example) tokens += train.cost(example).larger();
  return {"train.optimizer=adamw",
          "train.learning_rate=1e-3",
          "train.schedule=constant * linear_warmup * cosine_decay",
          "train.warm_up=10%",
          "train.decay_floor=0.1",
          "train.weight_decay=0.1",
          "train.clip_norm=1",
          epochs * tokens < kMost ? fmt::format("train.steps={}e", epochs) : "train.steps=40Mt",
          "train.log_every=10",
          "train.validate_every=5%"};
}

}  // namespace plumb
