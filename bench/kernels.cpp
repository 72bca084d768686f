// Times the kernels with Google Benchmark, at the sizes of a 6+6 model of width 512 (64 sentences of 32 tokens), and
// layers and optimizers that consist of them.
//   build/bench/kernels --benchmark_filter=norm
//   PLUMB_INSTRUCTIONS=AVX2 build/bench/kernels      with other instructions than the machine's best
//   PLUMB_THREADS=2 build/bench/kernels              with two threads; one by default
//   PLUMB_DATA=DIR build/bench/kernels --benchmark_filter=epoch    the batches of an epoch of this data directory
//   build/bench/kernels --benchmark_filter=replaceable --benchmark_repetitions=9
//       --benchmark_enable_random_interleaving=true --benchmark_report_aggregates_only=true
//                                                    kernels beside the functions of LibTorch that could replace them
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plumb/base/random.h"
#include "plumb/data/batch_plan.h"
#include "plumb/data/directory.h"
#include "plumb/model/model.h"
#include "plumb/nn/attention/attention.h"
#include "plumb/nn/init/init.h"
#include "plumb/ops/activation.h"
#include "plumb/ops/embedding.h"
#include "plumb/ops/gram_schmidt_pass.h"
#include "plumb/ops/kernels/activation.h"
#include "plumb/ops/kernels/attention.h"
#include "plumb/ops/kernels/cross_entropy.h"
#include "plumb/ops/kernels/dropout.h"
#include "plumb/ops/kernels/elementwise.h"
#include "plumb/ops/kernels/instruction_set.h"
#include "plumb/ops/kernels/norm.h"
#include "plumb/ops/kernels/optimizer.h"
#include "plumb/ops/kernels/top_values.h"
#include "plumb/ops/linear.h"
#include "plumb/ops/lstm.h"
#include "plumb/ops/precision.h"
#include "plumb/ops/threads.h"
#include "plumb/ops/top_scores.h"
#include "plumb/optim/optimizer.h"
#include "plumb/plan/model_cost.h"
#include "plumb/task/task.h"

namespace plumb {
namespace {

constexpr int64_t kTokens = 2048, kWidth = 512, kVocabulary = 10000;

std::vector<float> values(int64_t count) {
  std::vector<float> all(static_cast<size_t>(count));
  Random random(1, "bench");
  for (float& value : all) value = static_cast<float>(random.uniform() - 0.5);
  return all;
}

template <typename Work>
void repeat(benchmark::State& state, const Work& work) {
  while (state.KeepRunning()) {
    work();
    benchmark::ClobberMemory();
  }
}

/// Times work that reads or writes `count` floats, or has `flops` operations, and reports the throughput.
template <typename Work>
void time_floats(benchmark::State& state, int64_t count, const Work& work) {
  repeat(state, work);
  state.SetBytesProcessed(state.iterations() * count * static_cast<int64_t>(sizeof(float)));
}
template <typename Work>
void time_flops(benchmark::State& state, double flops, const Work& work) {
  repeat(state, work);
  state.counters["FLOP/s"] = benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
}

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

void add_bias_relu(benchmark::State& state) {
  auto x = values(kTokens * kWidth);
  const auto bias = values(kWidth);
  time_floats(state, 2 * kTokens * kWidth,
              [&] { kernels::elementwise<float>().add_bias(x.data(), bias.data(), true, kWidth, 0, kTokens); });
}
BENCHMARK(add_bias_relu);

void column_sums(benchmark::State& state) {
  const auto x = values(kTokens * kWidth);
  std::vector<float> sums(kWidth);
  time_floats(state, kTokens * kWidth,
              [&] { kernels::elementwise<float>().column_sums(x.data(), kWidth, 0, kTokens, sums.data()); });
}
BENCHMARK(column_sums);

void embedding_gradient(benchmark::State& state) {
  const auto rows = values(kTokens * kWidth);
  std::vector<float> table(static_cast<size_t>(kVocabulary * kWidth));
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < kTokens; ++i) ids.push_back(i * 7919 % kVocabulary);
  time_floats(state, 3 * kTokens * kWidth, [&] {
    kernels::elementwise<float>().scatter_add_rows(rows.data(), ids.data(), kTokens, 1.0F, kWidth, table.data(), 0,
                                                   kWidth);
  });
}
BENCHMARK(embedding_gradient);

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

enum class Pass { forward, gradient };

/// Times `output` without a graph, or together with its gradient for `leaves`.
template <typename Output>
void time_pass(benchmark::State& state, Pass pass, const Output& output, const std::vector<Tensor>& leaves) {
  const Tensor cotangent = at::ones_like(output());
  repeat(state, [&] {
    const at::AutoGradMode graph(pass == Pass::gradient);
    const Tensor result = output();
    if (pass == Pass::gradient) gradients({result}, leaves, {cotangent});
  });
}

/// Work that Plumb's kernels do, and functions of LibTorch that could do it instead.
struct Replaceable {
  std::vector<Tensor> leaves;  // none: without a gradient
  std::function<Tensor()> kernels, libtorch;
};

using Activated = Tensor (*)(const Tensor&);

/// An activation alone, as in the feed-forward layers of width 512.
Replaceable activation(Activated kernels, Activated libtorch) {
  const Tensor x = at::randn({kTokens, 4 * kWidth}).requires_grad_();
  return {{x}, [=] { return kernels(x); }, [=] { return libtorch(x); }};
}

/// A whole feed-forward layer: the most that its activation may matter in a training step.
Replaceable feed_forward(Activated kernels, Activated libtorch) {
  const Tensor x = at::randn({kTokens, kWidth}).requires_grad_();
  const Tensor up = at::randn({4 * kWidth, kWidth}).mul_(0.05).requires_grad_();
  const Tensor down = at::randn({kWidth, 4 * kWidth}).mul_(0.02).requires_grad_();
  const auto layer = [=](Activated f) { return ops::linear(f(ops::linear(x, up, Tensor())), down, Tensor()); };
  return {{x, up, down}, [=] { return layer(kernels); }, [=] { return layer(libtorch); }};
}

constexpr int64_t kLargeVocabulary = 32000;

Replaceable embedding() {
  const Tensor table = at::randn({kLargeVocabulary, kWidth}).requires_grad_();
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < kTokens; ++i) ids.push_back(i * 7919 % kLargeVocabulary);
  const double scale = std::sqrt(static_cast<double>(kWidth));
  return {{table},
          [=] { return ops::embedding(table, ids, scale); },
          [=] { return scale * table.index_select(0, at::tensor(ids, at::kLong)); }};
}

/// The ten best next tokens of 32 sentences in a beam search of 5; with their logits if `logits_too`.
Replaceable best_tokens(bool logits_too) {
  constexpr int64_t kRows = 160, kBest = 10;
  const Tensor hidden = at::randn({kRows, kWidth}), weight = at::randn({kLargeVocabulary, kWidth});
  const Tensor fixed = ops::linear(hidden, weight, Tensor());
  const auto logits = [=] { return logits_too ? ops::linear(hidden, weight, Tensor()) : fixed; };
  return {{},
          [=] { return at::scalar_tensor(ops::top_scores(logits(), kBest, 0, /*normalize=*/true).scores.front()); },
          [=] {
            const Tensor scores = logits();
            return std::get<0>(scores.topk(kBest, 1)) - at::logsumexp(scores, {1}, /*keepdim=*/true);
          }};
}

void replaceable(benchmark::State& state, const std::function<Replaceable()>& make, bool libtorch, Pass pass) {
  const Replaceable work = make();
  time_pass(state, pass, libtorch ? work.libtorch : work.kernels, work.leaves);
}

/// Causal self-attention of a kind over one sequence, without projections.
void self_attention(benchmark::State& state, const std::string& kind, Pass pass) {
  constexpr int64_t kSize = 256, kHeads = 4;
  const Ragged layout({state.range(0)});
  Parameters parameters(at::kFloat);
  const auto attention =
      make_attention(kind, parameters, {"attention", kSize, {kHeads, kHeads, kSize / kHeads}, {}, nullptr});
  parameters.allocate();
  initialize(parameters, {"xavier-normal"}, {}, 1);
  const Tensor packed = at::randn({layout.tokens(), 3 * kSize}).requires_grad_();
  const Tensor x = at::randn({layout.tokens(), kSize});
  const ForwardContext context;
  time_pass(state, pass, [&] { return attention->self(packed, x, layout, true, context); }, {packed});
}

/// Three LSTM layers over rows of 70 tokens, as a recurrent language model has them.
void lstm(benchmark::State& state, Pass pass) {
  constexpr int64_t kInput = 400, kLength = 70, kLayers = 3;
  const int64_t size = state.range(0), rows = state.range(1);
  const Ragged layout(std::vector<int64_t>(static_cast<size_t>(rows), kLength));
  const double bound = 1 / std::sqrt(static_cast<double>(size));
  const auto random = [&](at::IntArrayRef shape) { return at::empty(shape).uniform_(-bound, bound).requires_grad_(); };
  std::vector<Tensor> leaves = {at::randn({layout.tokens(), kInput}).requires_grad_()};
  std::vector<ops::LstmWeights> layers;
  double flops = 0;
  for (int64_t i = 0; i < kLayers; ++i) {
    const ops::LstmWeights weights = {random({4 * size, i == 0 ? kInput : size}), random({4 * size, size}),
                                      random({4 * size}), random({4 * size})};
    flops += 2.0 * static_cast<double>(layout.tokens() * (weights.input.numel() + weights.hidden.numel()));
    leaves.insert(leaves.end(), {weights.input, weights.hidden, weights.input_bias, weights.hidden_bias});
    layers.push_back(weights);
  }
  const auto output = [&] {
    Tensor hidden = leaves.front();
    for (const ops::LstmWeights& weights : layers) hidden = ops::lstm(hidden, weights, {}, layout).hidden;
    return hidden;
  };
  time_pass(state, pass, output, leaves);
  state.counters["FLOP/s"] =
      benchmark::Counter(pass == Pass::gradient ? 3 * flops : flops, benchmark::Counter::kIsIterationInvariantRate);
}

/// A decoder with 42 million parameters, like GPT-2 but smaller.
ModelConfig decoder() {
  ModelConfig config;
  config.kind = "decoder";
  config.positions = "learned";
  config.max_positions = 1024;
  config.activation = "gelu-tanh";
  config.embedding_factor = 1;
  config.d_model = 512;
  config.feed_forward = 2048;
  config.heads = 8;
  config.decoder_layers = 8;
  config.target_vocabulary = 32000;
  return config;
}

/// An update of the decoder's parameters, with random gradients.
void update(benchmark::State& state, const std::string& optimizer_name, const std::string& precision_name) {
  const std::unique_ptr<Model> model = make_model(decoder());
  model->initialize(1);
  const Parameters& parameters = model->parameters();
  const std::vector<Tensor> gradient = parameters.split(at::randn({parameters.count()}).mul_(1e-2));
  const std::vector<ParameterStep> settings(parameters.all().size(),
                                            ParameterStep{.learning_rate = 1e-3, .weight_decay = 0.1});
  const std::unique_ptr<Optimizer> optimizer = make_optimizer(optimizer_name, parameters);
  ops::MatrixPrecision precision(ops::precision_of(precision_name));
  const ops::PrecisionGuard guard(precision);
  // NT-ASGD averages once validations become worse, and RAdam divides by √v from the sixth step on.
  for (int i = 0; i < 10; ++i) optimizer->see_validation(i);
  for (int i = 0; i < 6; ++i) optimizer->step(gradient, settings);
  repeat(state, [&] { optimizer->step(gradient, settings); });
  const auto count = static_cast<double>(parameters.count());
  const double bytes = plan::optimizer_bytes(model->config(), optimizer_name, {});
  state.counters["state bytes per parameter"] = bytes / count;
  // Parameters and state are read and written, gradients are read.
  state.counters["bytes/s"] =
      benchmark::Counter(3 * count * sizeof(float) + 2 * bytes, benchmark::Counter::kIsIterationInvariantRate);
}

/// The batches of 4,096 tokens of an epoch, from opening the data.
void epoch_of_batches(benchmark::State& state, const std::string& directory) {
  int64_t tokens = 0;
  repeat(state, [&] {
    const DataDirectory data = DataDirectory::open(directory);
    const TaskConfig config;
    const auto examples = make_task(config, data, usual_model_kind(config, data))->dataset("train");
    const ExampleCosts costs(examples->size(), [&](int64_t i) { return examples->cost(i); });
    const BatchPlan plan(costs, {.tokens = 4096, .seed = 1}, 0);
    tokens = 0;
    for (int64_t window = 0; window < plan.windows(); ++window) {
      for (const std::vector<int64_t>& each : *plan.window(window)) {
        const Batch batch = examples->drawn(each, {.seed = 1, .epoch = 0});
        tokens += static_cast<int64_t>(batch.source.size() + batch.target_input.size());
      }
    }
  });
  state.counters["tokens"] = static_cast<double>(tokens);
}

/// Adds the benchmarks that depend on what is registered.
void add_benchmarks() {
  using benchmark::RegisterBenchmark;
  for (const auto& [suffix, pass] : {std::pair{"", Pass::forward}, {"_gradient", Pass::gradient}}) {
    for (const std::string& kind : attentions().names()) {
      RegisterBenchmark(("self_attention" + (suffix + ('/' + kind))).c_str(), self_attention, kind, pass)
          ->Arg(64)
          ->Arg(512)
          ->Arg(4096);
    }
    RegisterBenchmark((std::string("lstm") + suffix).c_str(), lstm, pass)
        ->ArgsProduct({{1150, 400}, {80, 20}})
        ->Unit(benchmark::kMillisecond);
  }
  const Activated silu = [](const Tensor& x) { return at::silu(x); };
  const Activated gelu_tanh = [](const Tensor& x) { return at::gelu(x, "tanh"); };
  const std::pair<const char*, std::function<Replaceable()>> replaceables[] = {
      {"silu", [=] { return activation(ops::silu, silu); }},
      {"gelu-tanh", [=] { return activation(ops::gelu_tanh, gelu_tanh); }},
      {"feed-forward-silu", [=] { return feed_forward(ops::silu, silu); }},
      {"feed-forward-gelu-tanh", [=] { return feed_forward(ops::gelu_tanh, gelu_tanh); }},
      {"embedding", embedding},
      {"best-tokens", [] { return best_tokens(false); }},
      {"logits-and-best-tokens", [] { return best_tokens(true); }},
  };
  for (const auto& [name, make] : replaceables) {
    for (const bool libtorch : {false, true}) {
      const auto add = [&, make = make](const std::string& of, Pass pass) {
        const std::string full = "replaceable/" + of + (libtorch ? "/libtorch" : "/kernels");
        RegisterBenchmark(full.c_str(), replaceable, make, libtorch, pass)->Unit(benchmark::kMillisecond);
      };
      add(name, Pass::forward);
      if (std::string_view(name).find("best-tokens") == std::string_view::npos)
        add(std::string(name) + "-gradient", Pass::gradient);
    }
  }
  const auto add_update = [](const std::string& name, const std::string& optimizer, const std::string& precision) {
    RegisterBenchmark(("update/" + name).c_str(), update, optimizer, precision)
        ->Iterations(10)  // SOAP updates its rotations in one of ten steps
        ->Unit(benchmark::kMillisecond);
  };
  for (const std::string& name : optimizers().names()) add_update(name, name, "float32");
  add_update("muon-bf16", "muon", "bf16");
  if (const char* data = std::getenv("PLUMB_DATA")) {
    RegisterBenchmark("epoch_of_batches", epoch_of_batches, std::string(data))
        ->Iterations(1)
        ->Unit(benchmark::kMillisecond);
  }
}

}  // namespace
}  // namespace plumb

int main(int argc, char** argv) {
  try {
    const char* threads = std::getenv("PLUMB_THREADS");
    plumb::ops::set_threads(threads == nullptr ? 1 : std::atoll(threads));
    const char* instructions = std::getenv("PLUMB_INSTRUCTIONS");
    plumb::kernels::use_instruction_set(instructions == nullptr ? "" : instructions);
    benchmark::AddCustomContext("instructions",
                                instructions == nullptr ? plumb::kernels::instruction_sets().front() : instructions);
    plumb::add_benchmarks();
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::RunSpecifiedBenchmarks();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kernels: %s\n", error.what());
    return 1;
  }
}
