// Text as one long stream that is read in parallel rows, for models that carry a state along.
#pragma once

#include <vector>

#include "plumb/data/split.h"
#include "plumb/task/dataset.h"
#include "plumb/text/specials.h"

namespace plumb {

/// All tokens of the target side of a split, one block or sentence after another, a sentence with its EOS, cut into
/// `rows` consecutive parts of equal length; the first ones are one token longer if that does not come out even. An
/// example is a column: the i-th token of every row, which the model predicts from the token before it in the text, or
/// from BOS where the text begins. Every token is thus predicted once. A backward stream is the same text from its last
/// token to its first.
class StreamDataset final : public Dataset {
 public:
  /// Of fewer tokens than `rows`, as many rows as there are tokens. Throws Error if `rows` is below 1, or if there is
  /// no EOS to end sentences with.
  StreamDataset(ParallelSplit split, const Specials& specials, int64_t rows, const StreamCut& cut,
                bool backward = false);

  [[nodiscard]] int64_t size() const override { return (tokens_ + rows_ - 1) / rows_; }
  [[nodiscard]] ExampleCost cost(int64_t i) const override;
  /// Adjacent columns form one sequence for each row, which may be empty in the last column.
  [[nodiscard]] Batch batch(std::span<const int64_t> examples) const override;
  [[nodiscard]] std::optional<StreamCut> stream() const override { return cut_; }

  [[nodiscard]] int64_t rows() const { return rows_; }

 private:
  /// The place of a row's first token in the text; that of the row after the last is the number of tokens.
  [[nodiscard]] int64_t begin_of_row(int64_t row) const;
  /// The place of the first token of a block or sentence.
  [[nodiscard]] int64_t begin_of_line(int64_t line) const;
  /// `count` tokens of the text from a place on, in its order.
  [[nodiscard]] std::vector<int32_t> read_text(int64_t begin, int64_t count) const;
  /// The same of the stream, which may be backward.
  [[nodiscard]] std::vector<int32_t> read(int64_t begin, int64_t count) const;
  /// Appends columns begin, …, end − 1.
  void append(Batch& batch, int64_t begin, int64_t end) const;

  ParallelSplit split_;
  Specials specials_;
  StreamCut cut_;
  int64_t tokens_;  // with EOS
  int64_t rows_;
  bool backward_;
};

}  // namespace plumb
