#include "plumb/plan/local_time.h"

#include <algorithm>
#include <functional>
#include <memory>

#include "plumb/base/random.h"
#include "plumb/base/timing.h"
#include "plumb/nn/attention/multi_head.h"
#include "plumb/nn/feed_forward/feed_forward.h"
#include "plumb/nn/norm/norm.h"
#include "plumb/nn/position/position.h"
#include "plumb/ops/cross_entropy.h"
#include "plumb/ops/device.h"
#include "plumb/ops/embedding.h"
#include "plumb/ops/linear.h"
#include "plumb/ops/peak_rate.h"
#include "plumb/ops/precision.h"
#include "plumb/ops/update.h"
#include "plumb/optim/optimizer.h"
#include "plumb/plan/model_cost.h"

namespace plumb::plan {
namespace {

constexpr int64_t kRuns = 3;
constexpr double kDeviation = 0.02;  // of random weights

/// Layers with random weights, and a batch of a few sequences.
class Probe {
 public:
  Probe(const ModelConfig& config, const LocalBatch& batch)
      : config_(config), recomputed_(batch.recomputed), heads_(heads_of(config)), parameters_(at::kFloat) {
    constexpr int64_t kEnough = 1024;  // tokens
    const int64_t sequences = std::min(batch.sequences, (kEnough + batch.length - 1) / batch.length);
    layout_ = Ragged(std::vector<int64_t>(static_cast<size_t>(sequences), batch.length));
    positions_ =
        make_positions(config.positions, parameters_, "position",
                       {config.d_model, config.heads, config.max_positions, true, config.head_size, config.options});
    attention_ = std::make_unique<MultiHeadAttention>(
        parameters_, "decoder.layers.0.self_attn", config.d_model, heads_,
        MultiHeadOptions{.kind = config.attention, .bias = config.attention_bias, .options = config.options},
        positions_->within(parameters_, "decoder.layers.0.self_attn"));
    feed_forward_ =
        feed_forwards()
            .at(config.activation)
            .make(parameters_, {"decoder.layers.0", config.d_model, config.feed_forward, config.feed_forward_bias});
    norm_ = norms().at(config.norm).make(parameters_, "norm", config.d_model, config.norm_eps);
    table_ = parameters_.add("table", {config.target_vocabulary, config.d_model}, Role::embedding);
    parameters_.finish();
    at::NoGradGuard no_graph;
    parameters_.flat().normal_(0, kDeviation);
  }

  [[nodiscard]] int64_t tokens() const { return layout_.tokens(); }

  [[nodiscard]] double projections() const {
    const Parameter& in = parameters_.at("decoder.layers.0.self_attn.in_proj_weight");
    const Parameter& out = parameters_.at("decoder.layers.0.self_attn.out_proj.weight");
    const Tensor x = states(config_.d_model), mixed = states(heads_.width());
    return seconds_of_layer({x, mixed, in.value, out.value}, [&] {
      return std::vector<Tensor>{ops::linear(x, in.value, {}), ops::linear(mixed, out.value, {})};
    });
  }

  /// Includes the projections.
  [[nodiscard]] double attention() const {
    const Tensor x = states(config_.d_model);
    return seconds_of_layer(with_parameters("self_attn", x),
                            [&] { return std::vector<Tensor>{attention_->self(x, layout_, true, ForwardContext())}; });
  }

  [[nodiscard]] double feed_forward() const {
    const Tensor x = states(config_.d_model);
    return seconds_of_layer(with_parameters("linear", x), [&] { return std::vector<Tensor>{(*feed_forward_)(x)}; });
  }

  /// A norm, dropout and a residual sum.
  [[nodiscard]] double norm() const {
    const Tensor x = states(config_.d_model), added = states(config_.d_model);
    std::vector<Tensor> inputs = with_parameters("norm", x);
    inputs.push_back(added);
    return seconds_of_layer(inputs, [&] {
      ForwardContext context(config_.dropout, 1, 1);
      context.enter(layout_);
      return std::vector<Tensor>{context.add_dropout((*norm_)(x, context), added)};
    });
  }

  [[nodiscard]] double output() const {
    const Tensor x = states(config_.d_model);
    return seconds_of({x, table_}, [&] {
      return std::vector<Tensor>{ops::linear_cross_entropy(x, table_, {}, ids(), {}, 0, 1).loss};
    });
  }

  [[nodiscard]] double embedding() const {
    return seconds_of({table_}, [&] { return std::vector<Tensor>{ops::embedding(table_, ids(), 1)}; });
  }

 private:
  /// Seconds of a forward and a backward pass.
  [[nodiscard]] static double seconds_of(const std::vector<Tensor>& inputs,
                                         const std::function<std::vector<Tensor>()>& forward) {
    return median_seconds(kRuns, [&] {
      const std::vector<Tensor> outputs = forward();
      std::vector<Tensor> weights;
      for (const Tensor& output : outputs) weights.push_back(at::ones_like(output));
      static_cast<void>(gradients(outputs, inputs, weights));
      ops::synchronize(inputs.front().device());
    });
  }

  /// The same of a part of a layer, whose forward pass is computed again if layers are recomputed.
  [[nodiscard]] double seconds_of_layer(const std::vector<Tensor>& inputs,
                                        const std::function<std::vector<Tensor>()>& forward) const {
    return seconds_of(inputs, [&] {
      if (recomputed_) static_cast<void>(forward());
      return forward();
    });
  }

  [[nodiscard]] Tensor states(int64_t width) const {
    return at::randn({tokens(), width}, parameters_.options()).requires_grad_(true);
  }

  /// x, and the parameters whose names contain `part`.
  [[nodiscard]] std::vector<Tensor> with_parameters(const std::string& part, const Tensor& x) const {
    std::vector<Tensor> inputs{x};
    for (const Parameter& each : parameters_.all()) {
      if (each.name.find(part) != std::string::npos) inputs.push_back(each.value);
    }
    return inputs;
  }

  [[nodiscard]] std::vector<int64_t> ids() const {
    Random random(1, "plan");
    std::vector<int64_t> drawn(static_cast<size_t>(tokens()));
    for (int64_t& id : drawn) id = static_cast<int64_t>(random.below(static_cast<uint64_t>(config_.target_vocabulary)));
    return drawn;
  }

  ModelConfig config_;
  bool recomputed_;
  ops::HeadShape heads_;
  Parameters parameters_;
  Ragged layout_;
  std::unique_ptr<Positions> positions_;
  std::unique_ptr<MultiHeadAttention> attention_;
  std::unique_ptr<FeedForward> feed_forward_;
  std::unique_ptr<Norm> norm_;
  Tensor table_;
};

/// Of the optimizer's step and of the gradient's norm, per parameter.
struct UpdateCost {
  double seconds = 0, bytes = 0;
};
UpdateCost update_cost(const ModelConfig& config, const std::string& optimizer, const VariantOptions& options) {
  constexpr int64_t kElements = int64_t{1} << 22;  // more than caches hold
  Parameters parameters(at::kFloat);
  const int64_t d = config.d_model, rows = std::max<int64_t>(config.feed_forward, 1);
  for (int64_t i = 0; i == 0 || i * rows * d < kElements; ++i)
    parameters.add("matrix" + std::to_string(i), {rows, d}, Role::feed_forward_input);
  parameters.finish();
  const auto made = make_optimizer(optimizer, parameters, options);
  std::vector<Tensor> gradient;
  for (const Tensor& value : parameters.values()) gradient.push_back(at::full_like(value.detach(), 1e-3));
  const double seconds = median_seconds(kRuns, [&] {
    static_cast<void>(ops::sum_of_squares(gradient));
    made->step(gradient, 1e-6);
    ops::synchronize(parameters.device());
  });
  double moved = 4 * static_cast<double>(parameters.flat().nbytes());  // the gradient twice; values read and written
  for (const auto& [name, tensor] : made->state()) moved += 2 * static_cast<double>(tensor.nbytes());
  const auto count = static_cast<double>(parameters.count());
  return {seconds / count, moved / count};
}

/// Bytes that a product of (tokens, in) and (in, out) reads and writes, forward and backward, in float32.
double product_bytes(double tokens, double in, double out) { return 3 * 4 * (tokens * (in + out) + in * out); }

}  // namespace

double LocalTime::seconds() const {
  double sum = 0;
  for (const StepPart& part : parts) sum += part.seconds;
  return sum;
}

double LocalTime::operations() const {
  double sum = 0;
  for (const StepPart& part : parts) sum += part.operations;
  return sum;
}

LocalTime local_time(const ModelConfig& config, const LocalBatch& batch, int64_t repetitions,
                     const std::string& optimizer, const VariantOptions& options) {
  require_kind(config, "decoder");
  const ModelCost cost = cost_of(config);
  const auto precision_of_products = batch.rounded ? ops::Precision::bfloat16 : ops::Precision::float32;
  LocalTime time;
  time.peak_rate = ops::peak_product_rate(precision_of_products);
  time.memory_rate = ops::peak_memory_rate();
  ops::MatrixPrecision precision(precision_of_products);
  const ops::PrecisionGuard guard(precision);
  const Probe probe(config, batch);
  const double tokens = static_cast<double>(batch.tokens()) * static_cast<double>(repetitions);
  const double times = tokens / static_cast<double>(probe.tokens());
  const auto layers = static_cast<double>(cost.layers);
  const double width = static_cast<double>(cost.heads * cost.head_size + cost.kv_heads * cost.head_size);
  const double projected = 4 * static_cast<double>(cost.d_model) * width;  // operations per token, forward
  const double inner = (cost.gated ? 6.0 : 4.0) * static_cast<double>(cost.d_model * cost.feed_forward);
  // Operations beyond projections and feed-forward belong to the positions.
  const double attended = cost.attention_flops(batch.length) + std::max(cost.layer_flops - projected - inner, 0.0);
  const double projections = probe.projections();
  const UpdateCost update = update_cost(config, optimizer, options);
  const auto d = static_cast<double>(cost.d_model), parameters = static_cast<double>(cost.parameters);
  const auto passes = static_cast<double>(repetitions), per_pass = static_cast<double>(batch.tokens());
  const auto query = static_cast<double>(cost.heads * cost.head_size);
  const auto kv = static_cast<double>(cost.kv_heads * cost.head_size), ff = static_cast<double>(cost.feed_forward);
  const double projected_bytes = product_bytes(per_pass, d, query + 2 * kv) + product_bytes(per_pass, query, d);
  const double inner_bytes = product_bytes(per_pass, d, ff * (cost.gated ? 2 : 1)) + product_bytes(per_pass, ff, d);
  time.parts = {
      {"projections", layers * times * projections, 3 * layers * tokens * projected, layers * passes * projected_bytes},
      {"attention", layers * times * std::max(probe.attention() - projections, 0.0), 3 * layers * tokens * attended,
       layers * tokens * 4 * 6 * (query + kv)},
      {"feed-forward", layers * times * probe.feed_forward(), 3 * layers * tokens * inner,
       layers * passes * inner_bytes},
      {"norms", 2 * layers * times * probe.norm(), 0, 2 * layers * tokens * 4 * 9 * d},
      {"cross-entropy", times * probe.output(), 3 * tokens * cost.output_flops,
       passes * 3 * 4 * (per_pass + static_cast<double>(cost.outputs)) * d},
      {"embedding", times * probe.embedding(), 0, passes * 4 * (4 * per_pass + static_cast<double>(cost.outputs)) * d},
      {"optimizer", parameters * update.seconds, 0, parameters * update.bytes}};
  return time;
}

}  // namespace plumb::plan
