#include "plumb/task/datasets.h"

#include <utility>

#include "plumb/data/sequences.h"

namespace plumb {

PairDataset::PairDataset(ParallelSplit split, const Specials& source, const Specials& target)
    : split_(std::move(split)), source_(source), target_(target) {}

ExampleCost PairDataset::cost(int64_t i) const {
  return {std::ssize(split_.source(i)) + 1, std::ssize(split_.target(i)) + 1};
}

Batch PairDataset::batch(std::span<const int64_t> examples) const {
  Batch batch;
  for (const int64_t i : examples) {
    require(i);
    append_pair(batch, split_.source(i), source_, split_.target(i), target_, i);
  }
  return batch;
}

TextDataset::TextDataset(ParallelSplit split, const Specials& specials)
    : split_(std::move(split)), specials_(specials) {}

ExampleCost TextDataset::cost(int64_t i) const {
  return {0, std::ssize(split_.target(i)) + (split_.running_text() ? 0 : 1)};
}

Batch TextDataset::batch(std::span<const int64_t> examples) const {
  Batch batch;
  for (const int64_t i : examples) {
    require(i);
    split_.running_text() ? append_running_text(batch, split_.target(i), specials_, i)
                          : append_sentence(batch, split_.target(i), specials_, i);
  }
  return batch;
}

LabeledDataset::LabeledDataset(ParallelSplit split, std::vector<int32_t> labels, const Specials& specials)
    : split_(std::move(split)), labels_(std::move(labels)), specials_(specials) {}

ExampleCost LabeledDataset::cost(int64_t i) const {
  const int64_t second = std::ssize(split_.target(i));
  return {std::ssize(split_.source(i)) + 2 + (second > 0 ? second + 1 : 0), 1};
}

Batch LabeledDataset::batch(std::span<const int64_t> examples) const {
  Batch batch;
  for (const int64_t i : examples) {
    require(i);
    append_labeled(batch, split_.source(i), split_.target(i), specials_, labels_[static_cast<size_t>(i)], i);
  }
  return batch;
}

}  // namespace plumb
