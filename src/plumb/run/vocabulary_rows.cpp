#include "plumb/run/vocabulary_rows.h"

#include <utility>

namespace plumb {

std::vector<int64_t> rows_of_pieces(const Tokenizer& from, const Tokenizer& to) {
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < to.vocabulary(); ++i) rows.push_back(from.find(to.piece(static_cast<int32_t>(i))));
  const Specials &before = from.specials(), &after = to.specials();
  for (const auto& [old_id, id] :
       {std::pair{before.pad, after.pad}, std::pair{before.bos, after.bos}, std::pair{before.eos, after.eos},
        std::pair{before.unknown, after.unknown}, std::pair{before.mask, after.mask}}) {
    if (id >= 0) rows[static_cast<size_t>(id)] = old_id;
  }
  return rows;
}

Tensor with_rows(const Tensor& values, const std::vector<int64_t>& rows, int64_t size, int64_t known) {
  const Tensor mean = values.narrow(0, 0, known).mean(0);
  std::vector<int64_t> shape = values.sizes().vec();
  shape[0] = size;
  Tensor moved = at::empty(shape, values.options());
  for (int64_t i = 0; i < size; ++i) {
    const int64_t row = i < std::ssize(rows) ? rows[static_cast<size_t>(i)] : -1;
    moved[i].copy_(row >= 0 ? values[row] : mean);
  }
  return moved;
}

}  // namespace plumb
