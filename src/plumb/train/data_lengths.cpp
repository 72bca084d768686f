#include "plumb/train/data_lengths.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "plumb/base/error.h"
#include "plumb/base/progress.h"
#include "plumb/base/text.h"
#include "plumb/model/embedding.h"

namespace plumb {

void require_short_sequences(const Task& task, const ModelConfig& config) {
  const int64_t most = longest_sequence(config);
  if (most == std::numeric_limits<int64_t>::max()) return;
  for (const char* split : {"train", "valid"}) {
    if (!task.data().has_split(split)) continue;
    const std::unique_ptr<Dataset> dataset = task.dataset(split);
    for (int64_t i = 0; i < dataset->size(); ++i) {
      if (dataset->cost(i).larger() <= most) continue;
      const Batch batch = dataset->batch({&i, 1});  // an example may consist of several sequences
      const int64_t length = std::max(batch.source_layout.longest(), batch.target_layout.longest());
      if (length <= most) continue;
      throw Error(
          fmt::format("split '{}': example {} is a sequence of {} tokens, but the model has {} learned positions",
                      split, i, length, most),
          "raise model.max_positions, or prepare the data with shorter sequences");
    }
  }
}

void say_what_exceeds_micro_batches(const Task& task, const TrainConfig& config) {
  if (config.micro_batch_tokens == 0) return;
  const std::unique_ptr<Dataset> dataset = task.dataset("train");
  int64_t count = 0, most = 0;
  for (int64_t i = 0; i < dataset->size(); ++i) {
    const int64_t tokens = dataset->cost(i).larger();
    if (tokens > config.micro_batch_tokens) ++count;
    most = std::max(most, tokens);
  }
  if (count == 0) return;
  say(
      fmt::format("train.micro_batch_tokens = {} is exceeded by {} example{}, of up to {} tokens: "
                  "an example is not divided",
                  config.micro_batch_tokens, with_thousands(count), count == 1 ? "" : "s", with_thousands(most)));
}

}  // namespace plumb
