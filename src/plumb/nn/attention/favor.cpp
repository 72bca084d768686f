// FAVOR+, Choromanski et al. 2020, arXiv 2009.14794: softmax attention by positive orthogonal random features,
//   φ(x) = exp(w·x' − ‖x'‖²/2)/√m, x' = x/size^¼;  y = Sᵀ·φ(q) / zᵀ·φ(q), S = Σ φ(k)·vᵀ, z = Σ φ(k),
// so that E[φ(q)·φ(k)] = exp(q·k/√size). For large heads or keys the exponentials overflow or underflow, and a factor
// common to all keys cannot prevent this for all features. Features are therefore passed on as logarithms, and each has
// its own running maximum over the keys (ops/exponential_rule.h). Factors common to all features of a query, or to all
// keys, cancel in the quotient: √m and exp(−‖q'‖²/2) are left out.
#include "plumb/nn/attention/favor.h"

#include <cmath>
#include <mutex>

#include "plumb/base/random.h"
#include "plumb/nn/attention/fast_weights.h"

namespace plumb {

void describe(Fields& field, FavorOptions& options) {
  field("features", options.features, "random features per head; 0: size·ln(size), rounded up", within(0, 1'000'000));
  field("redraw", options.redraw, "training steps between redraws; 0: never", at_least(0));
}

Tensor orthogonal_directions(int64_t count, int64_t size, const std::string& name, int64_t draw) {
  Random random(stream_of(name), stream_of("favor") + static_cast<uint64_t>(draw));
  Tensor directions = at::empty({count, size}, at::kDouble);
  auto* out = directions.data_ptr<double>();
  for (int64_t i = 0; i < count; ++i) {
    double* row = out + i * size;
    for (int64_t j = 0; j < size; ++j) row[j] = random.normal();
    const int64_t first = i / size * size;
    for (int pass = 0; pass < 2; ++pass) {  // Gram-Schmidt, twice for orthogonality to rounding
      for (int64_t k = first; k < i; ++k) {
        const double* other = out + k * size;
        double dot = 0;
        double square = 0;
        for (int64_t j = 0; j < size; ++j) {
          dot += row[j] * other[j];
          square += other[j] * other[j];
        }
        for (int64_t j = 0; j < size; ++j) row[j] -= dot / square * other[j];
      }
    }
    double square = 0;
    double length = 0;  // squared, of an independent Gaussian vector
    for (int64_t j = 0; j < size; ++j) {
      square += row[j] * row[j];
      length += std::pow(random.normal(), 2);
    }
    for (int64_t j = 0; j < size; ++j) row[j] *= std::sqrt(length / square);
  }
  return directions;
}

namespace {

class Favor final : public FastWeights {
 public:
  Favor(const AttentionShape& shape, const FavorOptions& options)
      : Favor(shape, options.features > 0 ? options.features : usual(shape.heads.size), options.redraw) {}

 protected:
  double feature_work() const override { return static_cast<double>(count_ * size_); }
  Tensor query_features(const Tensor& query, const ForwardContext& context) const override {
    return at::matmul(scaled(query), directions(context, query).t());
  }
  Tensor key_features(const Tensor& key, const ForwardContext& context) const override {
    return log_positive_features(scaled(key), directions(context, key));
  }

 private:
  Favor(const AttentionShape& shape, int64_t count, int64_t redraw)
      : FastWeights(shape, Rule::exponential_sum, count, {}),
        name_(shape.name),
        size_(shape.heads.size),
        count_(count),
        redraw_(redraw) {}

  /// size·ln(size), as required by Theorem 4 of the paper up to a constant, but at least size.
  static int64_t usual(int64_t size) {
    const auto s = static_cast<double>(size);
    return std::max(size, static_cast<int64_t>(std::ceil(s * std::log(s))));
  }

  [[nodiscard]] Tensor scaled(const Tensor& x) const { return x / std::pow(static_cast<double>(size_), 0.25); }

  /// The directions for the training step; outside training, the first ones.
  [[nodiscard]] Tensor directions(const ForwardContext& context, const Tensor& like) const {
    const int64_t draw = redraw_ > 0 ? context.step() / redraw_ : 0;
    const std::scoped_lock lock(mutex_);  // several threads may decode
    if (draw != 0 && draw != drawn_) {
      drawn_ = draw;
      drawn_directions_ = orthogonal_directions(count_, size_, name_, draw).to(like.options());
    }
    if (draw != 0) return drawn_directions_;
    if (!first_directions_.defined())
      first_directions_ = orthogonal_directions(count_, size_, name_, 0).to(like.options());
    return first_directions_;
  }

  std::string name_;
  int64_t size_;
  int64_t count_;
  int64_t redraw_;
  mutable std::mutex mutex_;
  mutable int64_t drawn_ = 0;
  mutable Tensor first_directions_;  // (count, size)
  mutable Tensor drawn_directions_;
};

const bool kFavorRegistered = attentions().add(
    "favor",
    "as `linear`, with φ(x) = exp(w·x′ − ‖x′‖²/2)/√m, x′ = x/size^¼, for m = `model.favor.features` orthogonal random "
    "w: in expectation the weights of softmax; redrawn every `model.favor.redraw` training steps",
    "Choromanski et al. 2020, arXiv 2009.14794",
    [](Parameters&, const AttentionShape& shape, const Options& options) {
      return std::make_unique<Favor>(shape, options.as<FavorOptions>());
    },
    Options(FavorOptions()));

}  // namespace

Tensor log_positive_features(const Tensor& x, const Tensor& directions) {
  return at::matmul(x, directions.t()) - 0.5 * (x * x).sum(-1, /*keepdim=*/true);
}

}  // namespace plumb
