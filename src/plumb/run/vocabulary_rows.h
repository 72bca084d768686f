// Transfers weights from one vocabulary to another, to fine-tune a model on text with another tokenizer (ULMFiT: Howard
// & Ruder 2018, arXiv 1801.06146, and its code).
#pragma once

#include <cstdint>
#include <vector>

#include "plumb/ops/torch.h"
#include "plumb/text/tokenizer.h"

namespace plumb {

/// For each piece of the vocabulary `to`, its id in `from`, or −1 if `from` lacks it. Special tokens are matched by
/// their purpose, whatever their names.
std::vector<int64_t> rows_of_pieces(const Tokenizer& from, const Tokenizer& to);

/// values: (old rows, …), one row or number per piece of the old vocabulary → (size, …) for the new one: piece i gets
/// row rows[i], or the mean over the first `known` old rows if that is −1 or i ≥ rows.size().
Tensor with_rows(const Tensor& values, const std::vector<int64_t>& rows, int64_t size, int64_t known);

}  // namespace plumb
