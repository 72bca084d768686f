// Text for a masked language model: sequences in which some tokens are masked and serve as labels.
#pragma once

#include "plumb/task/datasets.h"
#include "plumb/task/masking.h"

namespace plumb {

/// The encoder reads BOS + tokens [+ EOS, unless they end with it] on the source side, with some tokens replaced, and
/// predicts the original ones (at Batch::predicted_positions). Training draws new masks for each epoch and example;
/// evaluation uses fixed ones.
class MaskedDataset final : public Dataset {
 public:
  /// `specials`: of the text's vocabulary. Throws Error if it has no BOS or no EOS.
  MaskedDataset(TextDataset text, const Specials& specials, Masker masker);
  [[nodiscard]] int64_t size() const override { return text_.size(); }
  [[nodiscard]] ExampleCost cost(int64_t i) const override;
  [[nodiscard]] Batch batch(std::span<const int64_t> examples) const override;
  [[nodiscard]] Batch drawn(std::span<const int64_t> examples, const Draw& draw) const override;
  [[nodiscard]] std::vector<CorpusSize> corpora() const override { return text_.corpora(); }

 private:
  TextDataset text_;
  Specials specials_;
  Masker masker_;
};

}  // namespace plumb
