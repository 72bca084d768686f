// Weights that are moved from one vocabulary to another: a model that was trained on one text begins with them on
// another text, whose tokenizer has other pieces (ULMFiT: Howard & Ruder 2018, arXiv 1801.06146, and its code).
#pragma once

#include <cstdint>
#include <vector>

#include "plumb/ops/torch.h"
#include "plumb/text/tokenizer.h"

namespace plumb {

/// For each piece of the vocabulary `to`, the id that `from` has for it; −1 if it does not have it. Special tokens are
/// matched by what they are for, whatever their names.
std::vector<int64_t> rows_of_pieces(const Tokenizer& from, const Tokenizer& to);

/// values: (vocabulary, …), a row or a number for each piece of a vocabulary. → the same for another vocabulary of
/// `size` pieces: piece i has row rows[i]; where that is −1, and after the last of `rows`, it has the mean over the
/// first `known` rows, those of pieces.
Tensor with_rows(const Tensor& values, const std::vector<int64_t>& rows, int64_t size, int64_t known);

}  // namespace plumb
