#include "plumb/analysis/branch_recursion.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <utility>

#include "plumb/analysis/token_similarity.h"
#include "plumb/base/random.h"
#include "plumb/model/kind.h"
#include "plumb/nn/init/init.h"
#include "plumb/nn/residual/residual.h"

namespace plumb {
namespace {

double gelu(double u) { return 0.5 * u * std::erfc(-u / std::numbers::sqrt2); }
double gelu_tanh(double u) {
  return 0.5 * u * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (u + 0.044715 * u * u * u)));
}
double silu(double u) { return u / (1 + std::exp(-u)); }
double relu(double u) { return std::max(u, 0.0); }

struct Activation {
  double (*function)(double);
  bool gated = false;
};
const std::map<std::string, Activation>& known_activations() {
  static const std::map<std::string, Activation> known = {
      {"relu", {relu}},         {"gelu", {gelu}},        {"gelu-tanh", {gelu_tanh}},        {"silu", {silu}},
      {"swiglu", {silu, true}}, {"geglu", {gelu, true}}, {"geglu-tanh", {gelu_tanh, true}},
  };
  return known;
}

/// Sums f(z)·density(z) over a standard normal z.
template <typename F>
double expectation(const F& f) {
  constexpr int kSteps = 60;
  constexpr double kStep = 0.1;
  double sum = 0;
  for (int i = -kSteps; i <= kSteps; ++i) {
    const double z = i * kStep;
    sum += f(z) * std::exp(-z * z / 2);
  }
  return sum * kStep / std::sqrt(2 * std::numbers::pi);
}

/// The factor by which a matrix, or one of those stacked in a parameter, multiplies mean squares: columns·E w².
double gain_of(const Parameter& parameter, int64_t part = 0) {
  double gain = 0;
  int64_t index = 0;
  for_each_matrix(parameter, [&](const Tensor& matrix, int64_t fan_in, int64_t) {
    if (index++ == part)
      gain = static_cast<double>(fan_in) * matrix.detach().to(at::kDouble).square().mean().item<double>();
  });
  return gain;
}

/// Random tokens that go through a stack of the model's residual scheme, whose sub-layers add random branches with the
/// moments that the theory predicts.
class RandomStack {
 public:
  struct Read {
    TokenMoments moments;
    double tokens = 0;  // the mean length of a sequence
  };

  RandomStack(const Model& model, StackKind stack, const Read& input, std::optional<Read> memory)
      : model_(model), stack_(stack), input_(input), memory_(std::move(memory)) {
    const ModelConfig& config = model.config();
    const ModelDepth depth = depth_of(config);
    const std::string& residual = residual_of(config, stack);
    layers_ = stack == StackKind::encoder ? depth.encoder_layers : depth.decoder_layers;
    const int64_t sub_layers = (memory_ ? 3 : 2) - (config.parallel ? 1 : 0);
    scheme_ =
        make_residual_scheme(residual, parameters_,
                             {stack, layers_, sub_layers, kWidth, config.norm, config.norm_eps, depth, config.options});
    parameters_.allocate();
    initialize(parameters_, {"xavier-normal"}, depth, 1);
    const Prescription prescription = prescription_of(residual);
    normalizes_values_ = prescription.qkv_norm;
    normalizes_queries_and_keys_ = prescription.qkv_norm || prescription.unit_matrices || config.qk_norm != "none";
  }

  /// Runs all sub-layers, shows them to the meter, and returns the moments of the result.
  TokenMoments run(BranchMeter& meter) {
    const at::NoGradGuard no_graph;
    if (scheme_->profiled()) {
      ForwardContext profiling(Pass::profiling);
      pass(profiling);
    }
    ForwardContext context(Pass::measurement);
    context.watch([&meter](const ActivationPoint& point, const Tensor& x) { meter.see(point, x); });
    meter.begin(layout_, layout_);
    Tensor result = pass(context);
    if (stack_ == StackKind::encoder && model_.config().center_memory) {
      const Tensor by_sequence = result.view({kSequences, kTokens, kWidth});
      result = (by_sequence - by_sequence.mean(1, true)).view({-1, kWidth});
      result = result * result.square().mean(1, true).rsqrt();
    }
    return moments(result);
  }

 private:
  static constexpr int64_t kSequences = 32, kTokens = 8, kWidth = 512;

  Tensor pass(ForwardContext& context) {
    random_ = Random(1, "branches");
    const Tensor x = draw(input_.moments);
    context.show({{stack_}, Point::input}, x);
    Stream stream = scheme_->enter(x, context);
    for (int64_t layer = 0; layer < layers_; ++layer) {
      int64_t position = 0;
      const auto apply = [&](SubLayerKind kind, const std::function<Tensor(const Tensor&)>& forward) {
        scheme_->apply(stream, {{stack_, layer, kind}, position++, forward}, context);
      };
      const auto attend = [&](const Tensor& h) { return draw(self_attention(layer, moments(h))); };
      const auto feed = [&](const Tensor& h) { return draw(feed_forward(layer, moments(h))); };
      if (model_.config().parallel) {
        apply(SubLayerKind::parallel, [&](const Tensor& h) { return attend(h) + feed(h); });
      } else {
        apply(SubLayerKind::self_attention, attend);
      }
      if (memory_) {
        apply(SubLayerKind::cross_attention, [&](const Tensor& h) { return draw(cross_attention(layer, moments(h))); });
      }
      if (!model_.config().parallel) apply(SubLayerKind::feed_forward, feed);
    }
    return scheme_->leave(stream, context);
  }

  [[nodiscard]] const Parameter& parameter(int64_t layer, const std::string& name) const {
    return model_.parameters().at(to_string(LayerId{stack_, layer}) + "." + name);
  }

  /// `queries`: what the queries are computed from; `read`: the keys and values.
  [[nodiscard]] TokenMoments attention(int64_t layer, const std::string& name, const TokenMoments& queries, Read read,
                                       bool causal) const {
    const Parameter& joint = parameter(layer, name + ".in_proj_weight");
    double query = queries.mean_square * gain_of(joint, 0), key = read.moments.mean_square * gain_of(joint, 1);
    if (normalizes_queries_and_keys_) query = key = 1;
    // What all keys have in common adds the same to all scores of a query.
    const AttentionScores scores{query * key * (1 - read.moments.similarity), queries.similarity};
    double gain = gain_of(parameter(layer, name + ".out_proj.weight"));
    if (normalizes_values_) {
      read.moments.mean_square = 1;
    } else {
      gain *= gain_of(joint, 2);
    }
    TokenMoments mean = attended(read.moments, read.tokens, causal, scores);
    mean.mean_square *= gain;
    return mean;
  }

  [[nodiscard]] TokenMoments self_attention(int64_t layer, const TokenMoments& read) const {
    return attention(layer, "self_attn", read, {read, input_.tokens}, stack_ == StackKind::decoder);
  }

  [[nodiscard]] TokenMoments cross_attention(int64_t layer, const TokenMoments& read) const {
    return attention(layer, "multihead_attn", read, *memory_, false);
  }

  [[nodiscard]] TokenMoments feed_forward(int64_t layer, const TokenMoments& read) const {
    TokenMoments inner =
        activated(model_.config().activation, read, gain_of(parameter(layer, "linear1.weight"))).value();
    inner.mean_square *= gain_of(parameter(layer, "linear2.weight"));
    return inner;
  }

  /// (tokens, width): normal, with the vector that the tokens of a sequence share and one of each token's own.
  Tensor draw(const TokenMoments& wanted) {
    const Tensor shared = at::empty({kSequences, 1, kWidth}), own = at::empty({kSequences, kTokens, kWidth});
    fill_normal(shared, 1, random_);
    fill_normal(own, 1, random_);
    const double similarity = std::clamp(wanted.similarity, 0.0, 1.0);
    const Tensor x = std::sqrt(wanted.mean_square) * (std::sqrt(similarity) * shared + std::sqrt(1 - similarity) * own);
    return x.view({kSequences * kTokens, kWidth});
  }

  [[nodiscard]] TokenMoments moments(const Tensor& x) const {
    return {x.square().mean().item<double>(), sum_of_cosines(x, layout_) / pairs_of_tokens(layout_)};
  }

  const Model& model_;
  StackKind stack_;
  Read input_;
  std::optional<Read> memory_;
  int64_t layers_ = 0;
  bool normalizes_values_ = false, normalizes_queries_and_keys_ = false;
  Ragged layout_{std::vector<int64_t>(kSequences, kTokens)};
  Random random_{1, "branches"};
  Parameters parameters_{at::kFloat, at::kCPU};
  std::unique_ptr<ResidualScheme> scheme_;
};

bool predictable(const ModelConfig& config) {
  return !kind_of(config).recurrent && config.attention == "softmax" && !config.attention_gate &&
         !config.value_residual && known_activations().count(config.activation) > 0;
}

RandomStack::Read read_of(const Tensor& x, const Ragged& layout) {
  const double pairs = pairs_of_tokens(layout);
  return {{x.to(at::kDouble).square().mean().item<double>(), pairs > 0 ? sum_of_cosines(x, layout) / pairs : 0},
          static_cast<double>(layout.tokens()) / static_cast<double>(layout.sequences())};
}

}  // namespace

TokenMoments attended(const TokenMoments& read, double tokens, bool causal, const AttentionScores& scores) {
  constexpr int kDraws = 200;
  const auto count = static_cast<size_t>(std::max(1.0, std::round(tokens)));
  const double deviation = std::sqrt(scores.variance), correlation = std::clamp(scores.correlation, 0.0, 1.0);
  const double rest = std::sqrt(1 - correlation * correlation);
  Random random(1, "scores");
  // Two tokens, the second seeing `count` keys and the first, if causal, fewer of them, each number as often.
  std::vector<double> squares(count), products(count);  // [keys of the first - 1]: sums of Σa² and Σa·a'
  std::vector<double> first(count + 1), first_square(count + 1), both(count + 1);  // sums over the first keys
  for (int draw = 0; draw < kDraws; ++draw) {
    std::vector<double> second(count + 1);
    for (size_t k = 0; k < count; ++k) {
      const double z = random.normal();
      const double a = std::exp(deviation * z), b = std::exp(deviation * (correlation * z + rest * random.normal()));
      first[k + 1] = first[k] + a;
      first_square[k + 1] = first_square[k] + a * a;
      second[k + 1] = second[k] + b;
      both[k + 1] = both[k] + a * b;
    }
    for (size_t keys = 1; keys <= count; ++keys) {
      squares[keys - 1] += first_square[keys] / (first[keys] * first[keys]) / kDraws;
      // As if both saw the same keys.
      products[keys - 1] += both[keys] / (first[keys] * second[keys]) / kDraws;
    }
  }
  const auto length = [&](double overlap) { return read.similarity + (1 - read.similarity) * overlap; };
  if (!causal) {
    const double square = length(squares.back());
    return {read.mean_square * square, length(products.back()) / square};
  }
  double square = 0, cosines = 0;
  for (size_t j = 0; j < count; ++j) {
    square += length(squares[j]);
    // A later token spreads the weight of the first keys over j + 1 of them.
    for (size_t i = 0; i < j; ++i) {
      const double overlap = products[i] * static_cast<double>(i + 1) / static_cast<double>(j + 1);
      cosines += length(overlap) / std::sqrt(length(squares[i]) * length(squares[j]));
    }
  }
  const auto all = static_cast<double>(count);
  return {read.mean_square * square / all, count < 2 ? 1 : cosines / (all * (all - 1) / 2)};
}

std::optional<TokenMoments> activated(const std::string& activation, const TokenMoments& read, double gain) {
  const auto found = known_activations().find(activation);
  if (found == known_activations().end()) return std::nullopt;
  const auto& [function, gated] = found->second;
  const double mean_square = gain * read.mean_square, deviation = std::sqrt(mean_square);
  const double similarity = std::clamp(read.similarity, -1.0, 1.0), rest = std::sqrt(1 - similarity * similarity);
  double square = expectation([&](double z) { return std::pow(function(deviation * z), 2); });
  double product = expectation([&](double z) {
    const double second =
        expectation([&](double other) { return function(deviation * (similarity * z + rest * other)); });
    return function(deviation * z) * second;
  });
  if (gated) {
    square *= mean_square;
    product *= similarity * mean_square;
  }
  return TokenMoments{square, product / square};
}

std::vector<BranchPoint> predict_branches(Model& model, const Batch& batch) {
  if (!predictable(model.config())) return {};
  std::map<StackKind, RandomStack::Read> inputs;
  ForwardContext context(Pass::measurement);
  context.watch([&](const ActivationPoint& point, const Tensor& x) {
    if (point.id.layer || point.point != Point::input) return;
    inputs[point.id.stack] =
        read_of(x, point.id.stack == StackKind::encoder ? batch.source_layout : batch.target_layout);
  });
  const at::NoGradGuard no_graph;
  model.states(batch, context);
  BranchMeter meter;
  std::optional<RandomStack::Read> memory;
  for (const auto& [stack, input] : inputs) {
    RandomStack random(model, stack, input, memory);
    memory = RandomStack::Read{random.run(meter), input.tokens};
  }
  return meter.points();
}

}  // namespace plumb
