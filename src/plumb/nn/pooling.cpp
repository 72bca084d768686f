#include "plumb/nn/pooling.h"

namespace plumb {
namespace {

Tensor index_like(const std::vector<int64_t>& ids, const Tensor& x) {
  return at::tensor(at::ArrayRef<int64_t>(ids), at::TensorOptions(at::kLong)).to(x.device());
}

Tensor first(const Tensor& hidden, const Ragged& layout) {
  std::vector<int64_t> rows;
  for (int64_t s = 0; s < layout.sequences(); ++s) rows.push_back(layout.begin(s));
  return hidden.index_select(0, index_like(rows, hidden));
}

Tensor last(const Tensor& hidden, const Ragged& layout) {
  std::vector<int64_t> rows;
  for (int64_t s = 0; s < layout.sequences(); ++s) rows.push_back(layout.begin(s + 1) - 1);
  return hidden.index_select(0, index_like(rows, hidden));
}

Tensor mean(const Tensor& hidden, const Ragged& layout) {
  std::vector<int64_t> sequences;  // of each token
  std::vector<double> lengths;
  for (int64_t s = 0; s < layout.sequences(); ++s) {
    sequences.insert(sequences.end(), static_cast<size_t>(layout.length(s)), s);
    lengths.push_back(static_cast<double>(layout.length(s)));
  }
  const Tensor zeros = at::zeros({layout.sequences(), hidden.size(1)}, hidden.options());
  const Tensor counts = at::tensor(at::ArrayRef<double>(lengths), at::TensorOptions(at::kDouble)).to(hidden.options());
  return zeros.index_add(0, index_like(sequences, hidden), hidden) / counts.unsqueeze(1);
}

Tensor max(const Tensor& hidden, const Ragged& layout) {
  std::vector<Tensor> rows;
  for (int64_t s = 0; s < layout.sequences(); ++s)
    rows.push_back(hidden.narrow(0, layout.begin(s), layout.length(s)).amax(0));
  return at::stack(rows, 0);
}

const bool kPoolingRegistered =
    poolings().add("first", "the vector of the first token", "BERT: Devlin et al. 2019, arXiv 1810.04805", first) &&
    poolings().add("last", "the vector of the last token", "", last) &&
    poolings().add("mean", "the mean over tokens", "", mean) &&
    poolings().add("none", "all tokens are kept; each predicts a token", "",
                   [](const Tensor& hidden, const Ragged&) { return hidden; }) &&
    poolings().add("max", "the maximum of each feature over tokens", "Collobert et al. 2011, arXiv 1103.0398", max);

}  // namespace

Registry<Pooling>& poolings() {
  static Registry<Pooling> registry("pooling");
  return registry;
}

}  // namespace plumb
