// plumb bench lstm: LSTM layers over rows of equal length, forward and backward.
#include "plumb/ops/lstm.h"
#include "plumb/base/machine.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "bench.h"
#include "plumb/io/safetensors.h"
#include "plumb/ops/precision.h"

namespace plumb::app::bench {
namespace {

struct LstmArguments {
  int64_t input = 400, hidden = 1150, layers = 3, rows = 80, length = 70, runs = 5;
  std::string precision = "float32";
  std::string directory;  // to export to, if any
};

struct LstmStack {
  Tensor x;  // (rows·length, input)
  std::vector<ops::LstmWeights> layers;
  Ragged layout;

  LstmStack(const LstmArguments& arguments, uint64_t seed)
      : layout(std::vector<int64_t>(static_cast<size_t>(arguments.rows), arguments.length)) {
    at::manual_seed(seed);
    const at::TensorOptions options(ops::default_device());
    const double bound = 1 / std::sqrt(static_cast<double>(arguments.hidden));
    const auto random = [&](at::IntArrayRef shape) {
      return at::empty(shape, options).uniform_(-bound, bound).requires_grad_();
    };
    x = at::randn({layout.tokens(), arguments.input}, options).requires_grad_();
    for (int64_t i = 0; i < arguments.layers; ++i) {
      const int64_t gates = 4 * arguments.hidden;
      layers.push_back({random({gates, i == 0 ? arguments.input : arguments.hidden}), random({gates, arguments.hidden}),
                        random({gates}), random({gates})});
    }
  }

  [[nodiscard]] Tensor output() const {
    Tensor hidden = x;
    for (const ops::LstmWeights& weights : layers) hidden = ops::lstm(hidden, weights, {}, layout).hidden;
    return hidden;
  }

  /// The weights by their names in torch.nn.LSTM.
  [[nodiscard]] std::vector<std::pair<std::string, Tensor>> weights() const {
    std::vector<std::pair<std::string, Tensor>> named;
    for (size_t i = 0; i < layers.size(); ++i) {
      named.emplace_back(fmt::format("weight_ih_l{}", i), layers[i].input);
      named.emplace_back(fmt::format("weight_hh_l{}", i), layers[i].hidden);
      named.emplace_back(fmt::format("bias_ih_l{}", i), layers[i].input_bias);
      named.emplace_back(fmt::format("bias_hh_l{}", i), layers[i].hidden_bias);
    }
    return named;
  }

  /// Multiplications and additions in the matrix products of a forward pass.
  [[nodiscard]] double flops() const {
    double total = 0;
    for (const ops::LstmWeights& each : layers)
      total += 2.0 * static_cast<double>(layout.tokens() * (each.input.numel() + each.hidden.numel()));
    return total;
  }
};

Json sizes_of(const LstmArguments& a) {
  return {{"input", a.input},   {"hidden", a.hidden}, {"layers", a.layers},      {"rows", a.rows},
          {"length", a.length}, {"runs", a.runs},     {"precision", a.precision}};
}

/// Exports the weights, the input x, and the mean square of the output.
void export_lstm(const LstmArguments& arguments, const LstmStack& stack) {
  const at::NoGradGuard no_graph;
  export_work(arguments.directory, "lstm", sizes_of(arguments),
              {{"mean_of_squares", stack.output().square().mean().item<double>()}});
  auto tensors = stack.weights();
  tensors.emplace_back("x", stack.x);
  for (auto& [name, tensor] : tensors) tensor = tensor.detach();
  save_safetensors(std::filesystem::path(arguments.directory) / "model.safetensors", tensors);
}

Json measure(const LstmArguments& arguments, uint64_t seed) {
  const LstmStack stack(arguments, seed);
  if (!arguments.directory.empty()) export_lstm(arguments, stack);
  ops::MatrixPrecision precision(ops::precision_of(arguments.precision));
  const ops::PrecisionGuard guard(precision);
  std::vector<Tensor> leaves = {stack.x};
  for (const auto& [name, weight] : stack.weights()) leaves.push_back(weight);
  const Tensor cotangent = at::ones({stack.layout.tokens(), arguments.hidden}, stack.x.options());
  const double forward = device_seconds(arguments.runs, stack.x.device(), [&] {
    const at::NoGradGuard no_graph;
    (void)stack.output();
  });
  const double gradient =
      device_seconds(arguments.runs, stack.x.device(), [&] { gradients({stack.output()}, leaves, {cotangent}); });
  const double ceiling = ceiling_gflops();
  const double rate = 3e-9 * stack.flops() / gradient;
  Json json = result_document("lstm", sizes_of(arguments));
  json["forward_seconds"] = forward;
  json["gradient_seconds"] = gradient;
  json["tokens_per_second"] = static_cast<double>(stack.layout.tokens()) / gradient;
  json["gflops"] = rate;
  json["ceiling_gflops"] = ceiling;
  json["ceiling_fraction"] = rate / ceiling;
  json["peak_memory_bytes"] = peak_resident_memory();
  return json;
}

void add_lstm(CLI::App& bench, Globals& globals) {
  const auto arguments = std::make_shared<LstmArguments>();
  CLI::App* verb = add_measurement(bench, globals, "lstm", "Time LSTM layers, forward and backward",
                                   [arguments, &globals] { return measure(*arguments, globals.seed); });
  add_size(*verb, "--input", arguments->input, "Width of the input");
  add_size(*verb, "--hidden", arguments->hidden, "Width of every layer");
  add_size(*verb, "--layers", arguments->layers, "Layers");
  add_size(*verb, "--rows", arguments->rows, "Sequences");
  add_size(*verb, "--length", arguments->length, "Tokens per sequence");
  add_size(*verb, "--runs", arguments->runs, "Timed runs; the median is reported");
  add_precision_option(*verb, arguments->precision);
  add_export_option(*verb, arguments->directory);
}

const bool kLstmRegistered = register_verb({Heading::benchmarks, 70, add_lstm});

}  // namespace
}  // namespace plumb::app::bench
