// Kernels, at the sizes of a 6+6 model of width 512 (64 sentences of 32 tokens).
#include "plumb/ops/gram_schmidt_pass.h"
#include "plumb/ops/kernels/activation.h"
#include "plumb/ops/kernels/attention.h"
#include "plumb/ops/kernels/cross_entropy.h"
#include "plumb/ops/kernels/dropout.h"
#include "plumb/ops/kernels/elementwise.h"
#include "plumb/ops/kernels/norm.h"
#include "plumb/ops/kernels/optimizer.h"
#include "plumb/ops/kernels/top_values.h"
#include "plumb/ops/linear.h"
#include "timing.h"

namespace plumb::bench {
namespace {

void norm_forward(benchmark::State& state) {
  const auto x = values(kTokens * kWidth), gamma = values(kWidth), beta = values(kWidth);
  std::vector<float> y(x.size()), statistics(2 * kTokens);
  time_floats(state, 2 * kTokens * kWidth, [&] {
    kernels::norm<float>().forward(
        {kWidth, true, 1e-5F, x.data(), gamma.data(), beta.data(), y.data(), statistics.data()}, 0, kTokens);
  });
}
BENCHMARK(norm_forward);

void norm_backward(benchmark::State& state) {
  const auto x = values(kTokens * kWidth), gamma = values(kWidth), dy = values(kTokens * kWidth);
  const std::vector<float> statistics(2 * kTokens, 1.0F);
  std::vector<float> dx(x.size()), dgamma(kWidth), dbeta(kWidth);
  time_floats(state, 3 * kTokens * kWidth, [&] {
    kernels::norm<float>().backward(
        {kWidth, true, x.data(), gamma.data(), statistics.data(), dy.data(), dx.data(), dgamma.data(), dbeta.data()}, 0,
        kTokens);
  });
}
BENCHMARK(norm_backward);

void norm_double_backward(benchmark::State& state) {
  const auto x = values(kTokens * kWidth), gamma = values(kWidth), dy = values(kTokens * kWidth);
  const std::vector<float> statistics(2 * kTokens, 1.0F);
  std::vector<float> ddy(x.size()), dx(x.size()), dgamma(kWidth);
  time_floats(state, 5 * kTokens * kWidth, [&] {
    kernels::norm<float>().double_backward({kWidth, true, x.data(), gamma.data(), statistics.data(), dy.data(),
                                            x.data(), gamma.data(), gamma.data(), ddy.data(), dx.data(), dgamma.data()},
                                           0, kTokens);
  });
}
BENCHMARK(norm_double_backward);

/// One head of one sentence; query, key and value are side by side in the rows of `packed`.
struct Head {
  explicit Head(int64_t length_in) : length(length_in), packed(values(length * kStride)) {}
  [[nodiscard]] kernels::AttentionHead<float> operator()() const {
    return {
        length, length, kSize, true, 0.088F, packed.data(), kStride, packed.data() + kWidth, packed.data() + 2 * kWidth,
        kStride};
  }
  static constexpr int64_t kSize = 128, kStride = 3 * kWidth;
  int64_t length;
  std::vector<float> packed;
};

void attention_forward(benchmark::State& state) {
  const Head head(state.range(0));
  std::vector<float> out(static_cast<size_t>(head.length * kWidth));
  time_flops(state, 2.0 * static_cast<double>(head.length * head.length * Head::kSize),
             [&] { kernels::attention<float>().forward(head(), out.data(), kWidth); });
}
BENCHMARK(attention_forward)->Arg(8)->Arg(32)->Arg(256);

void attention_backward(benchmark::State& state) {
  const Head head(state.range(0));
  const auto dout = values(head.length * kWidth);
  std::vector<float> gradient(head.packed.size());
  time_flops(state, 5.0 * static_cast<double>(head.length * head.length * Head::kSize), [&] {
    kernels::attention<float>().backward(
        head(), {dout.data(), kWidth, gradient.data(), gradient.data() + kWidth, gradient.data() + 2 * kWidth});
  });
}
BENCHMARK(attention_backward)->Arg(8)->Arg(32)->Arg(256);

void attention_double_backward(benchmark::State& state) {
  const Head head(state.range(0));
  const auto dout = values(head.length * kWidth), cotangent = values(head.length * Head::kStride);
  std::vector<float> ddout(dout.size()), bar(head.packed.size());
  time_flops(state, 12.0 * static_cast<double>(head.length * head.length * Head::kSize), [&] {
    kernels::attention<float>().double_backward(
        head(), {dout.data(), kWidth, cotangent.data(), cotangent.data() + kWidth, cotangent.data() + 2 * kWidth,
                 ddout.data(), bar.data(), bar.data() + kWidth, bar.data() + 2 * kWidth});
  });
}
BENCHMARK(attention_double_backward)->Arg(8)->Arg(32)->Arg(256);

void cached_attention(benchmark::State& state) {
  const int64_t length = state.range(0);
  const auto q = values(Head::kSize), rows = values(length * 2 * kWidth);
  std::vector<const float*> keys;
  for (int64_t i = 0; i < length; ++i) keys.push_back(rows.data() + i * 2 * kWidth);
  std::vector<float> out(Head::kSize);
  time_flops(state, 4.0 * static_cast<double>(length * Head::kSize), [&] {
    kernels::attention<float>().cached({length, Head::kSize, 0.088F, q.data(), keys.data(), 0, kWidth}, out.data());
  });
}
BENCHMARK(cached_attention)->Arg(8)->Arg(32);

constexpr int64_t kLogitRows = 64;  // about as many as are held at a time

void cross_entropy(benchmark::State& state) {
  const auto logits = values(kLogitRows * kVocabulary);
  std::vector<float> out(logits.size());
  const kernels::CrossEntropyRow<float> row{kVocabulary, 7, 0.1F};
  time_floats(state, 3 * kLogitRows * kVocabulary, [&] {
    for (int64_t i = 0; i < kLogitRows * kVocabulary; i += kVocabulary) {
      const auto loss = kernels::cross_entropy<float>().loss(row, logits.data() + i);
      kernels::cross_entropy<float>().gradient(row, logits.data() + i, loss.log_partition, 1.0F, out.data() + i);
    }
  });
}
BENCHMARK(cross_entropy);

void cross_entropy_curvature(benchmark::State& state) {
  const auto logits = values(kLogitRows * kVocabulary), c = values(kLogitRows * kVocabulary);
  std::vector<float> out(logits.size());
  const kernels::CrossEntropyRow<float> row{kVocabulary, 7, 0.1F};
  time_floats(state, 3 * kLogitRows * kVocabulary, [&] {
    for (int64_t i = 0; i < kLogitRows * kVocabulary; i += kVocabulary) {
      benchmark::DoNotOptimize(
          kernels::cross_entropy<float>().curvature(row, logits.data() + i, 9.0F, 1.0F, c.data() + i, out.data() + i));
    }
  });
}
BENCHMARK(cross_entropy_curvature);

void add_dropout(benchmark::State& state) {
  const auto x = values(kTokens * kWidth), residual = values(kTokens * kWidth);
  std::vector<float> out(x.size());
  time_floats(state, 3 * kTokens * kWidth, [&] {
    kernels::dropout<float>().add({1, 2, 58982, 0}, 1.1F, residual.data(), x.data(), out.data(), 0, kTokens * kWidth);
  });
}
BENCHMARK(add_dropout);

void gelu(benchmark::State& state) {
  const auto x = values(kTokens * kWidth);
  std::vector<float> y(x.size());
  time_floats(state, 2 * kTokens * kWidth, [&] {
    kernels::logistic_gate<float>().forward({1.6, 0.04}, x.data(), y.data(), 0, kTokens * kWidth);
  });
}
BENCHMARK(gelu);

void gelu_backward(benchmark::State& state) {
  const auto x = values(kTokens * kWidth), dy = values(kTokens * kWidth);
  std::vector<float> dx(x.size());
  time_floats(state, 3 * kTokens * kWidth, [&] {
    kernels::logistic_gate<float>().backward({1.6, 0.04}, dy.data(), x.data(), dx.data(), 0, kTokens * kWidth);
  });
}
BENCHMARK(gelu_backward);

void relu(benchmark::State& state) {
  auto x = values(kTokens * kWidth);
  time_floats(state, 2 * kTokens * kWidth, [&] { kernels::elementwise<float>().rectify(x.data(), kTokens * kWidth); });
}
BENCHMARK(relu);

void column_sums(benchmark::State& state) {
  const auto x = values(kTokens * kWidth);
  std::vector<float> sums(kWidth);
  time_floats(state, kTokens * kWidth,
              [&] { kernels::elementwise<float>().column_sums(x.data(), kWidth, 0, kTokens, sums.data()); });
}
BENCHMARK(column_sums);

constexpr int64_t kParameters = int64_t{1} << 22;

void adam(benchmark::State& state) {
  const auto gradient = values(kParameters);
  auto m = values(kParameters), w = values(kParameters);
  std::vector<float> v(w.size(), 0.1F);
  time_floats(state, 7 * kParameters, [&] {
    kernels::optimizer<float>().update(ops::AdamUpdate{0.9, 0.98, 1e-9, 1e-4, 1.0, 0.0, 1.0}, gradient.data(),
                                       {m.data(), v.data(), w.data()}, kParameters);
  });
}
BENCHMARK(adam);

void gram_schmidt(benchmark::State& state) {
  constexpr int64_t kVectors = 32, kSize = int64_t{1} << 18;
  const auto basis = values(kVectors * kSize);
  auto w = values(kSize);
  std::vector<const float*> vectors;
  for (int64_t k = 0; k < kVectors; ++k) vectors.push_back(basis.data() + k * kSize);
  const std::vector<double> factors(kVectors, 1e-6);
  const auto on_one_thread = [](int64_t count, const auto& work) { work(0, count); };
  time_floats(state, (kVectors + 2) * kSize,
              [&] { ops::gram_schmidt_pass<float>(vectors, factors, true, kSize, w.data(), on_one_thread); });
}
BENCHMARK(gram_schmidt);

void top_values(benchmark::State& state) {
  const auto logits = values(kVocabulary);
  std::vector<float> best(10);
  std::vector<int32_t> ids(10);
  time_floats(state, 2 * kVocabulary, [&] {
    benchmark::DoNotOptimize(
        kernels::top_values<float>().find(logits.data(), kVocabulary, 10, best.data(), ids.data()));
    benchmark::DoNotOptimize(kernels::top_values<float>().log_partition(logits.data(), kVocabulary, best[0]));
  });
}
BENCHMARK(top_values);

/// (m, k) by (k, n): the products of a layer, for few tokens and for many.
void matrix_product(benchmark::State& state) {
  const int64_t m = state.range(0), k = state.range(1), n = state.range(2);
  const Tensor a = at::ones({m, k}), b = at::ones({n, k});
  time_flops(state, 2.0 * static_cast<double>(m * n * k),
             [&] { benchmark::DoNotOptimize(ops::gemm(a, b, {.transpose_b = true}).data_ptr<float>()); });
}
BENCHMARK(matrix_product)
    ->Args({2048, 2048, 2048})
    ->Args({2048, 512, 1536})
    ->Args({2048, 512, 512})
    ->Args({4096, 128, 256})
    ->Args({32, 512, 512})
    ->Args({5, 512, 512});

}  // namespace
}  // namespace plumb::bench
