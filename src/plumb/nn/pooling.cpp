#include "plumb/nn/pooling.h"

#include "plumb/ops/index.h"

namespace plumb {
namespace {

Tensor first(const Tensor& hidden, const Ragged& layout) {
  std::vector<int64_t> rows;
  for (int64_t s = 0; s < layout.sequences(); ++s) rows.push_back(layout.begin(s));
  return hidden.index_select(0, ops::index_beside(hidden, rows));
}

Tensor last(const Tensor& hidden, const Ragged& layout) {
  std::vector<int64_t> rows;
  for (int64_t s = 0; s < layout.sequences(); ++s) rows.push_back(layout.begin(s + 1) - 1);
  return hidden.index_select(0, ops::index_beside(hidden, rows));
}

Tensor mean(const Tensor& hidden, const Ragged& layout) {
  std::vector<int64_t> sequences;  // of each token
  std::vector<double> lengths;
  for (int64_t s = 0; s < layout.sequences(); ++s) {
    sequences.insert(sequences.end(), static_cast<size_t>(layout.length(s)), s);
    lengths.push_back(static_cast<double>(layout.length(s)));
  }
  const Tensor zeros = at::zeros({layout.sequences(), hidden.size(1)}, hidden.options());
  const Tensor counts = ops::values_beside(hidden, lengths);
  return zeros.index_add(0, ops::index_beside(hidden, sequences), hidden) / counts.unsqueeze(1);
}

Tensor max(const Tensor& hidden, const Ragged& layout) {
  std::vector<Tensor> rows;
  for (int64_t s = 0; s < layout.sequences(); ++s)
    rows.push_back(hidden.narrow(0, layout.begin(s), layout.length(s)).amax(0));
  return at::stack(rows, 0);
}

Tensor concat(const Tensor& hidden, const Ragged& layout) {
  return at::cat({last(hidden, layout), max(hidden, layout), mean(hidden, layout)}, 1);
}

const bool kPoolingRegistered =
    poolings().add("first", "the vector of the first token", "BERT: Devlin et al. 2019, arXiv 1810.04805", {first}) &&
    poolings().add("last", "the vector of the last token", "", {last}) &&
    poolings().add("mean", "the mean over tokens", "", {mean}) &&
    poolings().add("none", "all tokens are kept; each predicts a token", "",
                   {[](const Tensor& hidden, const Ragged&) { return hidden; }}) &&
    poolings().add("max", "the maximum of each feature over tokens", "Collobert et al. 2011, arXiv 1103.0398", {max}) &&
    poolings().add("concat", "[last, max, mean], side by side", "ULMFiT: Howard & Ruder 2018, arXiv 1801.06146",
                   {concat, 3});

}  // namespace

Registry<Pooling>& poolings() {
  static Registry<Pooling> registry(
      "pooling", {.title = "Pooling",
                  .key = "model.pooling",
                  .before = "How an `encoder`, or a language model with labels, reduces the vectors of a sequence's "
                            "tokens to one, from which it predicts the label; in an encoder with `model.pooler`, "
                            "tanh(W·x + b) is applied to the result."});
  return registry;
}

}  // namespace plumb
