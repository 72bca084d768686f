// Layers that consist of kernels.
#include <cmath>
#include <string>

#include "plumb/nn/attention/attention.h"
#include "plumb/nn/init/init.h"
#include "plumb/ops/lstm.h"
#include "timing.h"

namespace plumb::bench {
namespace {

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

}  // namespace

void add_layers() {
  for (const auto& [suffix, pass] : {std::pair{"", Pass::forward}, {"_gradient", Pass::gradient}}) {
    for (const std::string& kind : attentions().names()) {
      benchmark::RegisterBenchmark(("self_attention" + (suffix + ('/' + kind))).c_str(), self_attention, kind, pass)
          ->Arg(64)
          ->Arg(512)
          ->Arg(4096);
    }
    benchmark::RegisterBenchmark((std::string("lstm") + suffix).c_str(), lstm, pass)
        ->ArgsProduct({{1150, 400}, {80, 20}})
        ->Unit(benchmark::kMillisecond);
  }
}

}  // namespace plumb::bench
