// Relative positions of Transformer-XL, Dai et al. 2019, arXiv 1901.02860, section 3.3. For each head,
//   score(i, j) = [(q_i + u)·k_j + (q_i + v)·W_R·R_{i−j}]/√size,
// R_p the sinusoidal vector of distance p (sines in its first half, cosines in its second, as in the authors' code).
// Per layer: r_proj.weight (d, d), and u and v as r_content.bias, r_position.bias (heads, size).
#include <cmath>

#include "plumb/nn/position/position.h"
#include "plumb/ops/linear.h"

namespace plumb {
namespace {

/// R of the distances from, from + 1, …: (count, d).
Tensor sinusoids(int64_t from, int64_t count, int64_t d, const Tensor& like) {
  const Tensor frequencies =
      at::pow(10000.0, at::arange(0, d, 2, at::TensorOptions(at::kDouble)) * (-1.0 / static_cast<double>(d)));
  const Tensor angles = at::arange(from, from + count, at::TensorOptions(at::kDouble)).unsqueeze(1) * frequencies;
  return at::cat({angles.sin(), angles.cos()}, 1).narrow(1, 0, d).to(like.options());
}

class RelativeScores final : public RelativePositions {
 public:
  RelativeScores(Parameters& parameters, const std::string& prefix, const PositionShape& shape)
      : d_(shape.d_model),
        heads_(shape.heads),
        weight_(parameters.add(prefix + ".r_proj.weight", {d_, d_}, Role::weight)),
        content_(parameters.add(prefix + ".r_content.bias", {heads_, d_ / heads_}, Role::position)),
        position_(parameters.add(prefix + ".r_position.bias", {heads_, d_ / heads_}, Role::position)) {}

  bool biased() const override { return true; }

  Tensor bias(const Tensor& query, const Tensor& key, int64_t begin) const override {
    const int64_t queries = query.size(1);
    const int64_t keys = key.size(1);
    const int64_t size = d_ / heads_;
    // Distances i − j from begin − (keys − 1) to begin + queries − 1.
    const int64_t lowest = begin - keys + 1;
    const int64_t count = queries + keys - 1;
    const Tensor r = ops::matrix_product(sinusoids(lowest, count, d_, query), weight_, false, true)
                         .view({count, heads_, size})
                         .transpose(0, 1);  // (heads, count, size)
    const Tensor by_distance =
        at::matmul(query + position_.unsqueeze(1), r.transpose(1, 2));  // (heads, queries, count)
    const Tensor from = at::arange(queries, at::kLong).unsqueeze(1) + (begin - lowest);
    const Tensor index = (from - at::arange(keys, at::kLong)).to(query.device());
    const Tensor by_position = by_distance.gather(2, index.unsqueeze(0).expand({heads_, queries, keys}));
    const Tensor by_content = at::matmul(content_.unsqueeze(1), key.transpose(1, 2));  // (heads, 1, keys)
    return (by_position + by_content) / std::sqrt(static_cast<double>(size));
  }

 private:
  int64_t d_;
  int64_t heads_;
  Tensor weight_;    // (d, d)
  Tensor content_;   // u, (heads, size)
  Tensor position_;  // v, (heads, size)
};

class TransformerXl final : public Positions {
 public:
  explicit TransformerXl(const PositionShape& shape) : shape_(shape) {}
  std::shared_ptr<const RelativePositions> within(Parameters& parameters, const std::string& prefix) override {
    return std::make_shared<RelativeScores>(parameters, prefix, shape_);
  }

 private:
  PositionShape shape_;
};

const bool registered = positions().add(
    "transformer-xl",
    "score [(q + u)·k + (q + v)·W_R·R(i − j)]/√size, R sinusoidal; u, v and W_R trained, in each layer",
    "Dai et al. 2019, arXiv 1901.02860",
    [](Parameters&, const std::string&, const PositionShape& shape) { return std::make_unique<TransformerXl>(shape); });

}  // namespace
}  // namespace plumb
