// The datasets of the tasks: pairs, text, and labeled text from a split of a data directory.
#pragma once

#include <vector>

#include "plumb/data/split.h"
#include "plumb/task/dataset.h"
#include "plumb/text/specials.h"

namespace plumb {

/// Sentence pairs: the encoder reads source + EOS; the decoder reads BOS + target and predicts target + EOS.
class PairDataset final : public Dataset {
 public:
  PairDataset(ParallelSplit split, const Specials& source, const Specials& target);
  [[nodiscard]] int64_t size() const override { return split_.size(); }
  [[nodiscard]] ExampleCost cost(int64_t i) const override;
  [[nodiscard]] Batch batch(std::span<const int64_t> examples) const override;

 private:
  ParallelSplit split_;
  Specials source_, target_;
};

/// The target side of a split as text: either blocks of running text, which have no end, or sentences, which do.
class TextDataset final : public Dataset {
 public:
  TextDataset(ParallelSplit split, const Specials& specials);
  [[nodiscard]] int64_t size() const override { return split_.size(); }
  [[nodiscard]] ExampleCost cost(int64_t i) const override;
  [[nodiscard]] Batch batch(std::span<const int64_t> examples) const override;

 private:
  ParallelSplit split_;
  Specials specials_;
};

/// A sentence, or a pair of sentences on the two sides of the split, with one label each.
class LabeledDataset final : public Dataset {
 public:
  LabeledDataset(ParallelSplit split, std::vector<int32_t> labels, const Specials& specials);
  [[nodiscard]] int64_t size() const override { return split_.size(); }
  [[nodiscard]] ExampleCost cost(int64_t i) const override;
  [[nodiscard]] Batch batch(std::span<const int64_t> examples) const override;

 private:
  ParallelSplit split_;
  std::vector<int32_t> labels_;
  Specials specials_;
};

}  // namespace plumb
