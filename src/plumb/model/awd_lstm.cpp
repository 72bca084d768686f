#include "plumb/model/awd_lstm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/model/kind.h"
#include "plumb/nn/regularization.h"
#include "plumb/nn/residual/residual.h"
#include "plumb/ops/embedding.h"
#include "plumb/ops/index.h"

namespace plumb {
namespace {

/// The parts of a layer's state by name.
using StatePart = Tensor ops::LstmState::*;
constexpr std::array<std::pair<const char*, StatePart>, 2> kStateParts = {
    {{"hidden", &ops::LstmState::hidden}, {"cell", &ops::LstmState::cell}}};

/// The state of one layer for all rows.
class RecurrentRows final : public AttentionState {
 public:
  explicit RecurrentRows(ops::LstmState state) : value(std::move(state)) {}
  void reorder(const std::vector<int64_t>& order) override {
    const Tensor rows = ops::index_beside(value.cell, order);
    for (const auto& [name, part] : kStateParts) value.*part = (value.*part).index_select(0, rows);
  }
  [[nodiscard]] int64_t bytes() const override {
    int64_t sum = 0;
    for (const auto& [name, part] : kStateParts) sum += static_cast<int64_t>((value.*part).nbytes());
    return sum;
  }
  ops::LstmState value;
};

/// Checks what keys of Transformers are left at.
void check_awd_lstm(const ModelConfig& config) {
  if (prescription_of(config.residual).unit_matrices) {
    throw Error(fmt::format("the residual scheme \"{}\" needs a Transformer", config.residual),
                "an awd-lstm has no residual connections: leave model.residual out");
  }
  if (config.initialization == "theory") {
    throw Error("the initialization \"theory\" needs a Transformer",
                "an awd-lstm has no attention: choose another, such as \"lstm\"");
  }
  if (config.lora.rank > 0) {
    throw Error(fmt::format("model.lora.rank = {}: adapters need a Transformer", config.lora.rank),
                "an awd-lstm has no attention: leave lora out");
  }
  if (config.share_embeddings == "none" && config.labels == 0) {
    throw Error("model.share_embeddings = \"none\": the output matrix of an awd-lstm is its embedding",
                "leave model.share_embeddings out");
  }
}

const bool kAwdLstmRegistered = model_kinds().add(
    "awd-lstm", "a recurrent language model of the target side", "Merity et al. 2018, arXiv 1708.02182",
    {.reads_target = true, .recurrent = true, .pooling = "concat", .check = check_awd_lstm, .make = makes<AwdLstm>},
    Options(AwdLstmOptions{}));

/// "lstm.0.hidden": the name of a part of a layer's state in CarriedState.
std::string carried_name(const AwdLstm::Layer& layer, const char* part) { return layer.name + '.' + part; }

/// The carried states, one for each layer; empty if nothing has been carried.
std::vector<ops::LstmState> carried_states(const CarriedState* carried, const std::vector<AwdLstm::Layer>& layers) {
  std::vector<ops::LstmState> states;
  if (carried == nullptr || carried->empty()) return states;
  const auto found = [&](const std::string& name) {
    if (const Tensor* tensor = find_value(carried->tensors, name)) return *tensor;
    throw Error(fmt::format("the carried state has no '{}'", name), "it is that of another model");
  };
  for (const AwdLstm::Layer& layer : layers) {
    ops::LstmState& state = states.emplace_back();
    for (const auto& [name, part] : kStateParts) state.*part = found(carried_name(layer, name));
  }
  return states;
}

CarriedState to_carry(const std::vector<ops::LstmState>& states, const std::vector<AwdLstm::Layer>& layers) {
  CarriedState carried;
  for (size_t i = 0; i < states.size(); ++i) {
    for (const auto& [name, part] : kStateParts) {
      const Tensor& kept = states[i].*part;
      carried.tensors.emplace_back(carried_name(layers[i], name), kept.detach().contiguous());
    }
  }
  return carried;
}

}  // namespace

void describe(Fields& field, AwdLstmOptions& options) {
  field("embedding_dropout", options.embedding_dropout, "rate at which words are dropped from the embedding",
        below_one());
  field("input_dropout", options.input_dropout, "rate of the locked dropout of embeddings", below_one());
  field("hidden_dropout", options.hidden_dropout, "rate of the locked dropout between layers", below_one());
  field("output_dropout", options.output_dropout, "rate of the locked dropout after the last layer of a language model",
        below_one());
  field("weight_drop", options.weight_drop, "rate at which the weights between hidden states are dropped", below_one());
  field("activation_penalty", options.activation_penalty, "α: the loss grows by α·mean of h², h after dropout (AR)",
        at_least(0));
  field("temporal_penalty", options.temporal_penalty,
        "β: the loss grows by β·mean of (h_t − h_{t−1})², h before dropout (TAR)", at_least(0));
  field("pooled_tokens", options.pooled_tokens,
        "a classifier pools the states of this many tokens at the end of a text, which gradients go through; those "
        "before them are read without",
        at_least(1));
  field("head_size", options.head_size, "features between the two blocks of a classifier's head", at_least(1));
  field("pooled_dropout", options.pooled_dropout, "dropout rate in the first block of a classifier's head",
        below_one());
  field("head_dropout", options.head_dropout, "dropout rate in the second block", below_one());
}

AwdLstm::AwdLstm(const ModelConfig& config, at::ScalarType type) : Model(config, type) {
  validate(config);
  require_kind(config, "awd-lstm");
  options_ = options_of(config.options, config.kind, model_kinds().at(config.kind)).as<AwdLstmOptions>();
  table_ = parameters_.add("embedding.weight", {config.target_vocabulary, config.embedding_size}, Role::embedding);
  for (int64_t i = 0; i < config.layers; ++i) {
    const int64_t in = i == 0 ? config.embedding_size : config.hidden_size;
    const int64_t size = i + 1 == config.layers ? config.embedding_size : config.hidden_size;
    Layer& layer = layers_.emplace_back(Layer{fmt::format("lstm.{}", i), size});
    const std::vector<int64_t> gates(4, size);
    ops::LstmWeights& weights = layer.weights;
    weights.input = parameters_.add_stacked(layer.name + ".weight_ih_l0", {4 * size, in}, gates, Role::weight);
    weights.hidden = parameters_.add_stacked(layer.name + ".weight_hh_l0", {4 * size, size}, gates, Role::weight);
    weights.input_bias = parameters_.add(layer.name + ".bias_ih_l0", {4 * size}, Role::bias);
    weights.hidden_bias = parameters_.add(layer.name + ".bias_hh_l0", {4 * size}, Role::bias);
  }
  if (config.labels > 0) {
    pooling_ = poolings().at(config.pooling).make;
    head_ = std::make_unique<BatchNormHead>(
        parameters_, BatchNormHead::Shape{pooling_.vectors * config.embedding_size, options_.head_size,
                                          options_.pooled_dropout, options_.head_dropout, config.norm_eps});
    add_readout(options_.head_size);
  } else {
    output_ = table_;
    output_bias_ = parameters_.add("output.bias", {config.target_vocabulary}, Role::bias);
  }
  parameters_.allocate();
}

AwdLstm::Result AwdLstm::run(const std::vector<int64_t>& tokens, const Ragged& layout,
                             const std::vector<ops::LstmState>& start, ForwardContext& context) const {
  if (!start.empty() && start.size() != layers_.size())
    throw Error(fmt::format("states of {} layers for a model of {}", start.size(), layers_.size()));
  const bool regularizes = context.regularizes();
  const auto locked = [&](const Tensor& x, double p) {
    return regularizes ? locked_dropout(x, layout, p, context.mask_key()) : x;
  };
  Tensor x = ops::embedding(table_, tokens, 1.0);
  if (regularizes) x = embedding_dropout(x, tokens, table_.size(0), options_.embedding_dropout, context.mask_key());
  x = locked(x, options_.input_dropout);
  const LayerId stack{StackKind::decoder};
  context.show({stack, Point::input}, x);
  Result result;
  result.hidden = context.passed({stack, Point::input}, x);
  for (size_t i = 0; i < layers_.size(); ++i) {
    const LayerId id{StackKind::decoder, static_cast<int64_t>(i)};
    context.show({id, Point::input}, result.hidden);
    ops::LstmWeights weights = layers_[i].weights;
    if (regularizes) weights.hidden = ops::dropout(weights.hidden, options_.weight_drop, context.mask_key());
    const ops::LstmResult of_layer =
        ops::lstm(result.hidden, weights, start.empty() ? ops::LstmState{} : start[i], layout);
    result.last.push_back(of_layer.last);
    result.before_dropout = of_layer.hidden;
    context.show({id, Point::output}, result.before_dropout);
    const double after_last = head_ ? 0 : options_.output_dropout;
    result.hidden = locked(result.before_dropout, i + 1 == layers_.size() ? after_last : options_.hidden_dropout);
    result.hidden = context.passed({id, Point::stream}, result.hidden);
  }
  context.show({stack, Point::result}, result.hidden);
  result.hidden = context.passed({stack, Point::result}, result.hidden);
  return result;
}

AwdLstm::Ending AwdLstm::read_ending(const Batch& batch, ForwardContext& context) const {
  const Ragged& whole = batch.target_layout;
  const auto begin_of_text = batch.target_input.begin();
  std::vector<int64_t> first_tokens, last_tokens;
  Ragged beginning, ending;
  for (int64_t s = 0; s < whole.sequences(); ++s) {
    const auto begin = begin_of_text + whole.begin(s), end = begin_of_text + whole.begin(s + 1);
    const auto cut = end - std::min(whole.length(s), options_.pooled_tokens);
    first_tokens.insert(first_tokens.end(), begin, cut);
    last_tokens.insert(last_tokens.end(), cut, end);
    beginning.append(cut - begin);
    ending.append(end - cut);
  }
  beginning.set_origins(whole.origins());
  ending.set_origins(whole.origins());
  std::vector<ops::LstmState> start;
  if (!first_tokens.empty()) {
    const at::NoGradGuard no_graph;
    ForwardContext before = context;  // the same site numbers, so the same masks as for the ending
    before.watch({});
    before.tap({});
    start = run(first_tokens, beginning, {}, before).last;
  }
  Result result = run(last_tokens, ending, start, context);
  return {std::move(ending), std::move(result)};
}

Tensor AwdLstm::pooled(const Ending& ending, ForwardContext& context) const {
  return (*head_)(pooling_(ending.result.hidden, ending.layout), ending.layout, context);
}

Tensor AwdLstm::states(const Batch& batch, ForwardContext& context) {
  if (head_) return pooled(read_ending(batch, context), context);
  return run(batch.target_input, batch.target_layout, {}, context).hidden;
}

Loss AwdLstm::loss(const Batch& batch, const LossOptions& options, ForwardContext& context) {
  if (head_) {
    const Ending ending = read_ending(batch, context);
    Loss loss = loss_of_states(pooled(ending, context), batch, options);
    return context.regularizes() ? penalized(std::move(loss), ending.result, ending.layout, options) : loss;
  }
  CarriedState* carried = context.carried();
  const Result result = run(batch.target_input, batch.target_layout, carried_states(carried, layers_), context);
  if (carried != nullptr) *carried = to_carry(result.last, layers_);
  Loss loss = loss_of_states(result.hidden, batch, options);
  return context.regularizes() ? penalized(std::move(loss), result, batch.target_layout, options) : loss;
}

Loss AwdLstm::penalized(Loss loss, const Result& result, const Ragged& layout, const LossOptions& options) const {
  const double share = options.scale ? *options.scale * loss.weight : 1;
  if (options_.activation_penalty > 0)
    loss.value = loss.value + share * options_.activation_penalty * activation_penalty(result.hidden);
  if (options_.temporal_penalty > 0)
    loss.value = loss.value + share * options_.temporal_penalty * temporal_penalty(result.before_dropout, layout);
  return loss;
}

Tensor AwdLstm::class_logits(const Batch& batch) {
  const at::NoGradGuard no_graph;
  ForwardContext context;
  return logits(states(batch, context));
}

Tensor AwdLstm::hidden(const std::vector<int64_t>& tokens, const std::vector<int64_t>&, const Ragged& layout,
                       ForwardContext& context) {
  return run(tokens, layout, {}, context).hidden;
}

DecoderState AwdLstm::start(int64_t rows) {
  DecoderState state;
  state.positions.assign(static_cast<size_t>(rows), 0);
  for (const Layer& layer : layers_) {
    ops::LstmState zeros;
    for (const auto& [name, part] : kStateParts) {
      zeros.*part = at::zeros({rows, layer.size}, parameters().options());
    }
    state.self.push_back(std::make_unique<RecurrentRows>(std::move(zeros)));
  }
  return state;
}

Tensor AwdLstm::read(DecoderState& state, const std::vector<int64_t>& tokens, const Ragged& layout) {
  const at::NoGradGuard no_graph;
  ForwardContext context;
  std::vector<ops::LstmState> before;
  for (const auto& layer : state.self) before.push_back(dynamic_cast<const RecurrentRows&>(*layer).value);
  Result result = run(tokens, layout, before, context);
  for (size_t i = 0; i < layers_.size(); ++i) dynamic_cast<RecurrentRows&>(*state.self[i]).value = result.last[i];
  for (size_t r = 0; r < state.positions.size(); ++r) state.positions[r] += layout.length(static_cast<int64_t>(r));
  return result.hidden;
}

int64_t AwdLstm::longest() const { return std::numeric_limits<int64_t>::max(); }

}  // namespace plumb
