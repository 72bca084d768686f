// Rows moved from one vocabulary to another, compared piece by piece.
#include "plumb/run/vocabulary_rows.h"

#include <gtest/gtest.h>

#include <string>

namespace plumb {
namespace {

Tokenizer tokenizer_of(const std::vector<std::string>& lines, int64_t vocabulary, bool mask = false) {
  TokenizerOptions options;
  options.vocabulary = vocabulary;
  options.mask = mask;
  return Tokenizer::train(lines, options);
}

TEST(VocabularyRows, PiecesKeepTheirRowsAndNewOnesGetTheMean) {
  const Tokenizer from = tokenizer_of({"a cat sees a dog", "the cat sees the dog"}, 30);
  const Tokenizer to = tokenizer_of({"a film sees the cat", "the film of films"}, 30, /*mask=*/true);
  const std::vector<int64_t> rows = rows_of_pieces(from, to);
  ASSERT_EQ(std::ssize(rows), to.vocabulary());
  int kept = 0, fresh = 0;
  for (int32_t id = 0; id < to.vocabulary(); ++id) {
    int64_t expected = -1;
    for (int32_t other = 0; other < from.vocabulary(); ++other) {
      if (from.piece(other) == to.piece(id)) expected = other;
    }
    EXPECT_EQ(rows[static_cast<size_t>(id)], expected) << to.piece(id);
    ++(expected < 0 ? fresh : kept);
  }
  EXPECT_GT(kept, 8);
  EXPECT_GT(fresh, 3);
  EXPECT_EQ(rows[static_cast<size_t>(to.specials().mask)], -1);
  EXPECT_EQ(rows[static_cast<size_t>(to.specials().eos)], from.specials().eos);

  const Tensor matrix = at::arange(40, at::kDouble).view({10, 4}).square(), bias = at::arange(10, at::kDouble);
  const Tensor moved = with_rows(matrix, {3, -1, 0}, 5, 8);
  const Tensor of_bias = with_rows(bias, {3, -1, 0}, 5, 8);
  ASSERT_EQ(moved.sizes(), (at::IntArrayRef{5, 4}));
  for (int64_t j = 0; j < 4; ++j) {
    double mean = 0;
    for (int64_t i = 0; i < 8; ++i) mean += matrix[i][j].item<double>() / 8;
    EXPECT_EQ(moved[0][j].item<double>(), matrix[3][j].item<double>());
    EXPECT_EQ(moved[2][j].item<double>(), matrix[0][j].item<double>());
    for (const int64_t fresh_row : {1, 3, 4}) EXPECT_NEAR(moved[fresh_row][j].item<double>(), mean, 1e-12);
  }
  EXPECT_EQ(of_bias[0].item<double>(), 3);
  EXPECT_EQ(of_bias[4].item<double>(), 3.5);
}

}  // namespace
}  // namespace plumb
