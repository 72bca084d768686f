// Text as one long stream that is read in parallel rows, for models that carry state.
#pragma once

#include <vector>

#include "plumb/data/split.h"
#include "plumb/task/dataset.h"
#include "plumb/text/specials.h"

namespace plumb {

/// The concatenated blocks or sentences (each with its EOS) of the target side of a split, cut into `rows` consecutive
/// parts of equal length; the first ones are one token longer if the length is not a multiple of `rows`. An example is
/// a column: the i-th token of every row, which the model predicts from the preceding token of the stream, or from BOS
/// at its beginning. Every token is thus predicted once. A backward stream is the same text from its last token to its
/// first.
class StreamDataset final : public Dataset {
 public:
  /// With fewer tokens than `rows`, there is one row per token. Throws Error if `rows` is below 1, or if sentences need
  /// an EOS that the vocabulary lacks.
  StreamDataset(Split split, const Specials& specials, int64_t rows, const StreamCut& cut, bool backward = false);

  [[nodiscard]] int64_t size() const override { return (tokens_ + rows_ - 1) / rows_; }
  [[nodiscard]] ExampleCost cost(int64_t i) const override;
  /// Adjacent columns form one sequence per row, which may be empty in the last column.
  [[nodiscard]] Batch batch(std::span<const int64_t> examples) const override;
  [[nodiscard]] std::optional<StreamCut> stream() const override { return cut_; }

  [[nodiscard]] int64_t rows() const { return rows_; }

 private:
  /// The position of a row's first token in the stream; for row rows(), the number of tokens.
  [[nodiscard]] int64_t begin_of_row(int64_t row) const;
  /// The position of the first token of a block or sentence in the text.
  [[nodiscard]] int64_t begin_of_line(int64_t line) const;
  /// `count` tokens of the text from position `begin`.
  [[nodiscard]] std::vector<int32_t> read_text(int64_t begin, int64_t count) const;
  /// The same for the stream, which may be backward.
  [[nodiscard]] std::vector<int32_t> read(int64_t begin, int64_t count) const;
  /// Appends columns begin, …, end − 1.
  void append(Batch& batch, int64_t begin, int64_t end) const;

  Split split_;
  Specials specials_;
  StreamCut cut_;
  int64_t tokens_;  // with EOS
  int64_t rows_;
  bool backward_;
};

}  // namespace plumb
