// Relative positions of Transformer-XL, Dai et al. 2019, arXiv 1901.02860, section 3.3. For each head,
//   score(i, j) = [(q_i + u)·k_j + (q_i + v)·W_R·R_{i−j}]/√size,
// R_p the sinusoidal vector of distance p (sines in its first half, cosines in its second, as in the authors' code).
// The authors' code (pytorch/mem_transformer.py) shares u and v among all layers; here each layer has separate ones,
// like W_R, so that layers are independent.
// Per layer: r_proj.weight (heads·size, d), and u and v as r_content.bias, r_position.bias (heads, size).
#include <cmath>

#include "plumb/nn/position/growing_table.h"
#include "plumb/nn/position/position.h"
#include "plumb/ops/linear.h"
#include "plumb/ops/relative_attention.h"

namespace plumb {
namespace {

/// R of the distances 0 … length − 1: (length, d), sines in the first half of the columns.
Tensor sinusoids(int64_t length, int64_t d) {
  const Tensor frequencies =
      at::pow(10000.0, at::arange(0, d, 2, at::TensorOptions(at::kDouble)) * (-1.0 / static_cast<double>(d)));
  const Tensor angles = at::arange(length, at::TensorOptions(at::kDouble)).unsqueeze(1) * frequencies;
  return at::cat({angles.sin(), angles.cos()}, 1).narrow(1, 0, d);
}

class RelativeScores final : public RelativePositions {
 public:
  RelativeScores(Parameters& parameters, const std::string& prefix, const PositionShape& shape,
                 std::shared_ptr<const GrowingTable> table)
      : d_(shape.d_model),
        size_(shape.size()),
        weight_(parameters.add(prefix + ".r_proj.weight", {shape.heads * size_, d_}, Role::weight)),
        content_(parameters.add(prefix + ".r_content.bias", {shape.heads, size_}, Role::position)),
        position_(parameters.add(prefix + ".r_position.bias", {shape.heads, size_}, Role::position)),
        table_(std::move(table)) {}

  bool biased() const override { return true; }

  [[nodiscard]] bool divisible() const override { return true; }
  void divide(LayerDivision& division) override {
    for (const Tensor& each : {weight_, content_, position_}) division.divide(each, 0);
  }

  Tensor bias(const Tensor& query, const Tensor& key, int64_t begin) const override {
    const int64_t queries = query.size(1);
    const int64_t keys = key.size(1);
    // Distances i − j from begin − (keys − 1) to begin + queries − 1.
    const int64_t lowest = begin - keys + 1;
    const int64_t count = queries + keys - 1;
    const Tensor by_distance = distance_scores(query + position_.unsqueeze(1), distances(lowest, count, query), begin);
    const Tensor from = at::arange(queries, query.options().dtype(at::kLong)).unsqueeze(1) + (begin - lowest);
    const Tensor index = from - at::arange(keys, from.options());
    const Tensor by_position = by_distance.gather(2, index.unsqueeze(0).expand({query.size(0), queries, keys}));
    const Tensor by_content = at::matmul(content_.unsqueeze(1), key.transpose(1, 2));  // (heads, 1, keys)
    return (by_position + by_content) / std::sqrt(static_cast<double>(size_));
  }

  Tensor causal_attention(const Tensor& query, const Tensor& key_value, const Ragged& layout,
                          const ops::HeadShape& heads) const override {
    const Tensor r = distances(0, std::max<int64_t>(layout.longest(), 1), query);
    return ops::relative_attention(query + content_.reshape({-1}), query + position_.reshape({-1}), key_value,
                                   ops::matrix_product(r, weight_, false, true), layout, heads);
  }

 private:
  /// q·W_R·R of every query and distance. q: (heads, queries, size), the first at position `begin`; r: (count, d) →
  /// (heads, queries, count). W_R is multiplied by R or, if begin > 0 and that takes fewer multiplications, by q, so
  /// that decoding does not project all of R for every token.
  [[nodiscard]] Tensor distance_scores(const Tensor& q, const Tensor& r, int64_t begin) const {
    const int64_t queries = q.size(1);
    const int64_t count = r.size(0);
    const int64_t from_r = count * size_ * (d_ + queries);
    const int64_t from_q = queries * d_ * (size_ + count);
    if (begin > 0 && from_q < from_r) {
      const Tensor projected = at::matmul(q, weight_.reshape({-1, size_, d_}));  // (heads, queries, d)
      return at::matmul(projected, r.t());
    }
    const Tensor projected = ops::matrix_product(r, weight_, false, true).view({count, -1, size_});
    return at::matmul(q, projected.permute({1, 2, 0}));
  }

  /// R of the distances from, from + 1, …: (count, d). For negative distances the sines change sign.
  [[nodiscard]] Tensor distances(int64_t from, int64_t count, const Tensor& like) const {
    const int64_t sines = (d_ + 1) / 2;
    const Tensor table = table_->rows(std::max(from + count, 1 - from), like.options());
    std::vector<Tensor> parts;
    if (from < 0) {
      const int64_t end = std::min<int64_t>(from + count, 0);
      const Tensor mirrored = table.narrow(0, 1 - end, end - from).flip(0);
      parts.push_back(at::cat({-mirrored.narrow(1, 0, sines), mirrored.narrow(1, sines, d_ - sines)}, 1));
    }
    const int64_t begin = std::max<int64_t>(from, 0);
    if (begin < from + count) parts.push_back(table.narrow(0, begin, from + count - begin));
    return parts.size() == 1 ? parts.front() : at::cat(parts, 0);
  }

  int64_t d_;
  int64_t size_;
  Tensor weight_;    // (heads·size, d)
  Tensor content_;   // u, (heads, size)
  Tensor position_;  // v, (heads, size)
  std::shared_ptr<const GrowingTable> table_;
};

class TransformerXl final : public Positions {
 public:
  explicit TransformerXl(const PositionShape& shape)
      : shape_(shape),
        table_(std::make_shared<GrowingTable>([d = shape.d_model](int64_t length) { return sinusoids(length, d); })) {}
  std::shared_ptr<RelativePositions> within(Parameters& parameters, const std::string& prefix) override {
    return std::make_shared<RelativeScores>(parameters, prefix, shape_, table_);
  }

 private:
  PositionShape shape_;
  std::shared_ptr<const GrowingTable> table_;  // shared by all layers
};

const bool kTransformerXlRegistered = positions().add(
    "transformer-xl",
    "score [(q + u)·k + (q + v)·W_R·R(i − j)]/√size, R sinusoidal; u, v and W_R trained, in each layer (the authors' "
    "code: u and v shared by all layers)",
    "Dai et al. 2019, arXiv 1901.02860",
    [](Parameters&, const std::string&, const PositionShape& shape, const Options&) {
      return std::make_unique<TransformerXl>(shape);
    });

}  // namespace
}  // namespace plumb
