#include "plumb/nn/init/init.h"

#include <cmath>
#include <utility>

#include "plumb/base/parallel.h"
#include "plumb/ops/dispatch.h"

namespace plumb {
namespace {

/// Draws on the CPU, so that initialization does not depend on the device.
void fill(const Tensor& tensor, const std::function<double()>& draw) {
  const Tensor here = tensor.device().is_cpu() ? tensor : at::empty(tensor.sizes(), tensor.scalar_type());
  ops::dispatch(here, [&]<typename T>() {
    T* out = here.data_ptr<T>();
    for (int64_t i = 0; i < here.numel(); ++i) out[i] = static_cast<T>(draw());
  });
  if (!tensor.device().is_cpu()) tensor.copy_(here);
}

/// Multiplies the matrices of a parameter that have a factor.
void multiply(const Parameter& parameter, const InitializationScale& scale) {
  const Tensor value = parameter.value.detach();
  if (parameter.role == Role::attention_output) value.mul_(scale.outputs);
  if (parameter.role == Role::feed_forward_input || parameter.role == Role::feed_forward_output)
    value.mul_(scale.feed_forward);
  if (parameter.role != Role::stacked_qkv) return;
  int part = 0;
  for_each_matrix(parameter, [&](const Tensor& matrix, int64_t, int64_t) {
    matrix.mul_(part++ < 2 ? scale.queries_keys : scale.values);
  });
}

}  // namespace

void describe(Fields& field, InitializationScale& scale) {
  field("queries_keys", scale.queries_keys, "multiplies the matrices of queries and keys", at_least(0));
  field("values", scale.values, "multiplies the matrices of values", at_least(0));
  field("outputs", scale.outputs, "multiplies the output matrices of attention", at_least(0));
  field("feed_forward", scale.feed_forward, "multiplies all matrices of the feed-forward sub-layers", at_least(0));
}

Registry<Initialization>& initializations() {
  static Registry<Initialization> registry(
      "initialization",
      {.title = "Initializations",
       .key = "model.initialization",
       .before = "Initializes weight matrices. Query, key and value count as separate matrices, though they are stored "
                 "as one. Unless stated otherwise, embeddings and the output matrix are N(0, 1/d), learned positions "
                 "N(0, 0.02²), gains 1, biases and shifts 0; residual schemes and norms set their own constants."});
  return registry;
}

void fill_normal(const Tensor& tensor, double deviation, Random& random) {
  fill(tensor, [&] { return deviation * random.normal(); });
}

void fill_uniform(const Tensor& tensor, double bound, Random& random) {
  fill(tensor, [&] { return bound * (2 * random.uniform() - 1); });
}

void for_each_matrix(const Parameter& parameter,
                     const std::function<void(const Tensor&, int64_t, int64_t)>& fill_matrix) {
  const Tensor whole = parameter.value.detach();
  const std::vector<int64_t> parts = parameter.parts.empty() ? std::vector<int64_t>{whole.size(0)} : parameter.parts;
  for (const Tensor& matrix : whole.split_with_sizes(parts, 0)) fill_matrix(matrix, matrix.size(1), matrix.size(0));
}

double xavier_deviation(int64_t fan_in, int64_t fan_out) {
  return std::sqrt(2.0 / static_cast<double>(fan_in + fan_out));
}

void fill_scaled_xavier(const Parameter& parameter, double scale, Random& random) {
  int part = 0;
  for_each_matrix(parameter, [&](const Tensor& matrix, int64_t fan_in, int64_t fan_out) {
    const bool weighs = parameter.role == Role::weight || parameter.role == Role::readout ||
                        (parameter.role == Role::stacked_qkv && part++ < 2);
    fill_normal(matrix, (weighs ? 1.0 : scale) * xavier_deviation(fan_in, fan_out), random);
  });
}

bool in_stack(const Parameter& parameter, StackKind stack) {
  const std::optional<LayerId> id = LayerId::of_parameter(parameter.name);
  return id && id->stack == stack;
}

bool in_decoder(const Parameter& parameter) { return in_stack(parameter, StackKind::decoder); }

Initializer initializer(const InitializationChoice& choice, const ModelDepth& depth, uint64_t seed) {
  const Initialization usual = initializations().at(choice.kind).make;
  const Initialization encoders = choice.encoder == "same" ? usual : initializations().at(choice.encoder).make;
  return [usual, encoders, scale = choice.scale, depth, seed](const Parameter& parameter) {
    const at::NoGradGuard no_graph;  // grad mode is per thread
    const Initialization& chosen = in_stack(parameter, StackKind::encoder) ? encoders : usual;
    const Tensor value = parameter.value.detach();
    Random random(seed, parameter.name);
    switch (parameter.role) {
      case Role::weight:
      case Role::stacked_qkv:
      case Role::attention_output:
      case Role::feed_forward_input:
      case Role::feed_forward_output:
      case Role::readout:
        chosen.fill_weight(parameter, depth, random);
        if (scale != InitializationScale{}) multiply(parameter, scale);
        break;
      case Role::embedding: {
        const double factor = chosen.embedding_factor ? chosen.embedding_factor(parameter, depth) : 1.0;
        fill_normal(value, factor / std::sqrt(static_cast<double>(value.size(1))), random);
        break;
      }
      case Role::position:
        fill_normal(value, 0.02, random);
        break;
      case Role::adapter:
        fill_normal(value, parameter.initial, random);
        break;
      case Role::gain:
        value.fill_(1);
        break;
      case Role::bias:
      case Role::shift:
        value.zero_();
        break;
      case Role::constant:
        if (parameter.draw) {
          fill(value, [&] { return parameter.draw(random); });
        } else if (parameter.initial_values.defined()) {
          value.copy_(parameter.initial_values);
        } else {
          value.fill_(parameter.initial);
        }
        break;
    }
  };
}

void initialize(const Parameters& parameters, const InitializationChoice& choice, const ModelDepth& depth,
                uint64_t seed) {
  const Initializer fill_parameter = initializer(choice, depth, seed);
  for (const Parameter& buffer : parameters.buffers()) buffer.value.detach().fill_(buffer.initial);
  parallel_items(std::ssize(parameters.all()),
                 [&](int64_t i) { fill_parameter(parameters.all()[static_cast<size_t>(i)]); });
}

void initialize_shards(const Parameters& shards, const Initializer& fill_parameter,
                       const std::function<std::vector<int64_t>(size_t)>& full_sizes,
                       const std::function<Tensor(size_t, const Tensor&)>& shard_of) {
  parallel_items(std::ssize(shards.all()), [&](int64_t item) {
    const at::NoGradGuard no_graph;  // grad mode is per thread
    const auto i = static_cast<size_t>(item);
    Parameter parameter = shards.all()[i];
    const Tensor shard = std::exchange(parameter.value, Tensor());
    if (shard.numel() == 0) return;
    parameter.value = at::empty(full_sizes(i), shards.options());
    fill_parameter(parameter);
    shard.copy_(shard_of(i, parameter.value));
  });
}

}  // namespace plumb
