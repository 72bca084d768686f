// FAVOR+ in float32, at sizes and norms whose exponentials exceed its range, against the formula in float64 and
// logarithms: positions are weighted by the softmax over log Σ_i exp(w_i·q′ + w_i·k′ − ‖k′‖²/2), x′ = x/size^¼.
#include "plumb/nn/attention/favor.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "plumb/nn/attention/attention.h"
#include "support/gradcheck.h"

namespace plumb {
namespace {

using testing::random_tensor;

constexpr int64_t kFavorHeads = 2;

struct FavorSubject {
  int64_t size, count;
  Parameters parameters{at::kFloat};
  std::unique_ptr<Attention> attention;
  Tensor directions;  // rounded to float32, as in the attention, but stored in float64

  FavorSubject(int64_t size_in, int64_t count_in) : size(size_in), count(count_in) {
    const VariantOptions options = {{"favor", Options(FavorOptions{count, 0})}};
    attention = make_attention("favor", parameters,
                               {"favor", kFavorHeads * size, {kFavorHeads, kFavorHeads, size}, options, nullptr});
    parameters.allocate();
    directions = orthogonal_directions(count, size, "favor", 0).to(at::kFloat).to(at::kDouble);
  }
  [[nodiscard]] int64_t width() const { return kFavorHeads * size; }

  /// packed: (tokens, 3·width) → (tokens, width), in float64, differentiable. `largest`, if given, receives the largest
  /// exponent.
  [[nodiscard]] Tensor exact(const Tensor& packed, const Ragged& layout, bool causal, double* largest = nullptr) const {
    const Tensor all = packed.to(at::kDouble);
    std::vector<Tensor> rows;
    for (int64_t s = 0; s < layout.sequences(); ++s) {
      const Tensor own = all.narrow(0, layout.begin(s), layout.length(s));
      std::vector<Tensor> heads;
      for (int64_t h = 0; h < kFavorHeads; ++h) {
        const double root = std::pow(static_cast<double>(size), 0.25);
        const Tensor q = own.narrow(1, h * size, size) / root;
        const Tensor k = own.narrow(1, width() + h * size, size) / root;
        const Tensor a = at::matmul(q, directions.t());
        const Tensor b = at::matmul(k, directions.t()) - 0.5 * (k * k).sum(1, true);
        if (largest != nullptr) {
          *largest = std::max({*largest, a.abs().max().item<double>(), b.abs().max().item<double>()});
        }
        std::vector<Tensor> scores;
        for (int64_t t = 0; t < layout.length(s); ++t) scores.push_back(at::logsumexp(a[t] + b, 1));
        Tensor score = at::stack(scores);
        if (causal) score = score.masked_fill(at::ones_like(score).tril() == 0, -INFINITY);
        heads.push_back(at::matmul(at::softmax(score, 1), own.narrow(1, 2 * width() + h * size, size)));
      }
      rows.push_back(at::cat(heads, 1));
    }
    return at::cat(rows, 0);
  }
};

/// Queries and keys N(0, scale²), values N(0, 1), in float32.
Tensor favor_inputs(int64_t tokens, int64_t width, double scale, uint64_t seed) {
  return at::cat({random_tensor({tokens, 2 * width}, seed, scale), random_tensor({tokens, width}, seed + 1)}, 1)
      .to(at::kFloat);
}

double largest_error(const Tensor& a, const Tensor& b) { return (a.to(at::kDouble) - b).abs().max().item<double>(); }

/// Compares `self`, both ways, and `read` with the exact formula. Rounding an exponent e changes its exponential by
/// |e|·2⁻²⁴, relatively.
void expect_exact(const FavorSubject& subject, const Tensor& packed, const Ragged& layout) {
  double largest = 0;
  const Tensor causal = subject.exact(packed, layout, true, &largest);
  const Tensor both = subject.exact(packed, layout, false);
  const double tolerance = 1e-6 * (5 + largest);
  EXPECT_LT(largest_error(subject.attention->self(packed, packed, layout, true, {}), causal), tolerance);
  EXPECT_LT(largest_error(subject.attention->self(packed, packed, layout, false, {}), both), tolerance);
  // Step by step, with rows of different lengths; the first positions are read together.
  const int64_t width = subject.width();
  for (const int64_t at_once : {1, 3}) {
    const std::unique_ptr<AttentionState> state = subject.attention->start(layout.sequences());
    for (int64_t begin = 0; begin < layout.longest(); begin += begin == 0 ? at_once : 1) {
      const int64_t count = begin == 0 ? at_once : 1;
      Ragged piece;
      std::vector<int64_t> places;
      for (int64_t s = 0; s < layout.sequences(); ++s) {
        const int64_t n = std::clamp<int64_t>(layout.length(s) - begin, 0, count);
        piece.append(n);
        for (int64_t i = 0; i < n; ++i) places.push_back(layout.begin(s) + begin + i);
      }
      const Tensor index = at::tensor(places, at::kLong);
      const Tensor part = packed.index_select(0, index);
      const Tensor read = subject.attention->read(part.narrow(1, 0, width).contiguous(),
                                                  part.narrow(1, width, 2 * width).contiguous(), part, piece, *state);
      ASSERT_LT(largest_error(read, causal.index_select(0, index)), tolerance) << "position " << begin;
    }
  }
}

TEST(Favor, IsExactInFloat32ForHeadsAndNormsOfAnySize) {
  for (const int64_t size : {64, 128, 192, 256}) {
    const FavorSubject subject(size, size + 40);
    for (const double scale : {1.0, 2.0, 4.0, 16.0}) {
      SCOPED_TRACE(fmt::format("size {}, scale {}", size, scale));
      const Ragged layout({20, 3, 1});
      ASSERT_NO_FATAL_FAILURE(expect_exact(subject, favor_inputs(24, subject.width(), scale, 1), layout));
    }
  }
}

/// Keys that grow or shrink from position to position, and sequences of several blocks.
TEST(Favor, IsExactForNormsThatChangeAlongTheSequence) {
  const FavorSubject subject(128, 150);
  const Ragged layout({140, 30});
  const Tensor time = at::linspace(0, 1, 170, at::TensorOptions(at::kFloat)).unsqueeze(1);
  for (const bool grows : {true, false}) {
    SCOPED_TRACE(grows);
    Tensor packed = favor_inputs(170, subject.width(), 1, 1);
    const Tensor factor = 0.1 + 5.9 * (grows ? time : 1 - time);
    packed.narrow(1, 0, 2 * subject.width()).mul_(factor);
    ASSERT_NO_FATAL_FAILURE(expect_exact(subject, packed, layout));
  }
}

TEST(Favor, HasGradientsInFloat32ForLargeHeads) {
  for (const int64_t size : {64, 128, 256}) {
    for (const double scale : {1.0, 3.0}) {
      SCOPED_TRACE(fmt::format("size {}, scale {}", size, scale));
      const FavorSubject subject(size, size + 40);
      const Ragged layout({12, 5});
      const Tensor packed = favor_inputs(17, subject.width(), scale, 1);
      const Tensor weights = random_tensor({17, subject.width()}, 9);
      const Tensor other = random_tensor({17, 3 * subject.width()}, 10);
      for (const bool causal : {true, false}) {
        // The gradient, and the gradient of its product with another vector.
        const auto both_orders = [&](at::ScalarType type, const std::function<Tensor(const Tensor&)>& f) {
          const Tensor x = packed.to(type).clone().requires_grad_(true);
          const Tensor first = gradients({f(x)}, {x}, {weights.to(type)}, /*create_graph=*/true)[0];
          const Tensor second = gradients({(first * other.to(type)).sum()}, {x}, {at::ones({}, type)})[0];
          return std::vector<Tensor>{first.detach().to(at::kDouble), second.to(at::kDouble)};
        };
        const auto found =
            both_orders(at::kFloat, [&](const Tensor& x) { return subject.attention->self(x, x, layout, causal, {}); });
        const auto expected =
            both_orders(at::kDouble, [&](const Tensor& x) { return subject.exact(x, layout, causal); });
        const int64_t attended = 2 * subject.width();  // queries and keys
        for (size_t order = 0; order < 2; ++order) {
          const Tensor error = (found[order] - expected[order]).narrow(1, 0, attended);
          const double norm = expected[order].narrow(1, 0, attended).norm().item<double>();
          EXPECT_GT(norm, 1e-6);
          EXPECT_LT(error.norm().item<double>(), 1e-3 * norm) << "order " << order + 1;
        }
      }
    }
  }
}

}  // namespace
}  // namespace plumb
