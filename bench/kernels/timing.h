// Times work with Google Benchmark.
#pragma once

#include <benchmark/benchmark.h>

#include <vector>

#include "plumb/base/random.h"
#include "plumb/ops/torch.h"

namespace plumb::bench {

constexpr int64_t kTokens = 2048, kWidth = 512, kVocabulary = 10000;

inline std::vector<float> values(int64_t count) {
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

// Benchmarks of what is registered, or chosen by the environment.
void add_layers();
void add_replaceable();
void add_updates();

}  // namespace plumb::bench
