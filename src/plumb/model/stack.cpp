#include "plumb/model/stack.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "plumb/base/error.h"
#include "plumb/nn/layer_source.h"
#include "plumb/ops/backward_call.h"
#include "plumb/ops/recompute.h"

namespace plumb {
namespace {

/// [row]: the source it attends to.
std::vector<size_t> sources_of(const std::vector<int64_t>& rows_per_source) {
  std::vector<size_t> sources;
  for (size_t s = 0; s < rows_per_source.size(); ++s) {
    sources.insert(sources.end(), static_cast<size_t>(rows_per_source[s]), s);
  }
  return sources;
}

void check_order(const DecoderState& state, const std::vector<int64_t>& order, const std::vector<int64_t>& rows) {
  for (const int64_t row : order) {
    if (row < 0 || row >= state.rows()) {
      throw Error(fmt::format("row {} of a decoder with {} rows cannot be continued", row, state.rows()));
    }
  }
  if (rows.size() != state.rows_per_source.size() ||
      std::any_of(rows.begin(), rows.end(), [](int64_t n) { return n < 0; })) {
    throw Error(
        fmt::format("a decoder of {} sources was given the rows of {}", state.rows_per_source.size(), rows.size()));
  }
  if (rows.empty()) return;
  const std::vector<size_t> before = sources_of(state.rows_per_source), after = sources_of(rows);
  bool belong = after.size() == order.size();
  for (size_t i = 0; belong && i < order.size(); ++i) belong = after[i] == before[static_cast<size_t>(order[i])];
  if (!belong) throw Error("rows of a decoder were given to other sources than those they look at");
}

/// Combines the configuration with the residual scheme's prescription; model.qk_norm takes precedence.
MultiHeadOptions attention_options(const ModelConfig& config, const std::string& residual) {
  MultiHeadOptions options{.kind = config.attention,
                           .qk_norm = config.qk_norm,
                           .norm_eps = config.norm_eps,
                           .bias = config.attention_bias,
                           .gate = config.attention_gate,
                           .dropout = config.attention_dropout,
                           .options = config.options,
                           .lora = config.lora};
  const Prescription prescribed = prescription_of(residual);
  if (prescribed.qkv_norm) options.value_norm = config.norm;
  if (options.qk_norm == "none" && prescribed.qkv_norm) options.qk_norm = config.norm;
  options.unit_query_key = options.qk_norm == "none" && prescribed.unit_matrices;
  return options;
}

/// Minus the mean over each sequence, every row scaled to mean square 1: (tokens, d) → (tokens, d).
Tensor centered(const Tensor& x, const Ragged& layout) {
  std::vector<Tensor> sequences;
  for (int64_t i = 0; i < layout.sequences(); ++i) {
    const Tensor rows = x.slice(0, layout.begin(i), layout.begin(i) + layout.length(i));
    sequences.push_back(rows - rows.mean(0, true));
  }
  const Tensor moved = at::cat(sequences);
  return moved * (moved.square().mean(1, true) + 1e-5).rsqrt();
}

}  // namespace

void DecoderState::reorder(const std::vector<int64_t>& order, std::vector<int64_t> rows) {
  check_order(*this, order, rows);
  for (const auto& state : self) state->reorder(order);
  std::vector<int64_t> moved;
  moved.reserve(order.size());
  for (const int64_t row : order) moved.push_back(positions[static_cast<size_t>(row)]);
  positions = std::move(moved);
  rows_per_source = std::move(rows);
}

int64_t DecoderState::self_bytes() const {
  int64_t total = 0;
  for (const auto& state : self) total += state->bytes();
  return total;
}

Stack::Stack(Parameters& parameters, const ModelConfig& config, const Shape& shape, Positions& positions)
    : shape_(shape), parallel_(config.parallel), value_residual_(config.value_residual) {
  const int64_t d = config.d_model;
  const ops::HeadShape heads = heads_of(config);
  const std::string& residual = residual_of(config, shape.stack);
  const MultiHeadOptions options = attention_options(config, residual);
  for (int64_t i = 0; i < shape.layers; ++i) {
    const std::string prefix = to_string(LayerId{shape.stack, i});
    const std::string self_prefix = prefix + ".self_attn";
    MultiHeadAttention self(parameters, self_prefix, d, heads, options, positions.within(parameters, self_prefix));
    if (config.value_residual && i > 0) self.add_value_residual(parameters, self_prefix);
    std::unique_ptr<MultiHeadAttention> cross;
    if (shape.cross_attention) {
      cross = std::make_unique<MultiHeadAttention>(parameters, prefix + ".multihead_attn", d, heads, options);
    }
    layers_.push_back({std::move(self), std::move(cross),
                       feed_forwards()
                           .at(config.activation)
                           .make(parameters, {prefix, d, config.feed_forward, config.feed_forward_bias, config.lora,
                                              config.activation_dropout})});
  }
  const int64_t sub_layers = (shape.cross_attention ? 3 : 2) - (parallel_ ? 1 : 0);
  scheme_ = make_residual_scheme(
      residual, parameters,
      {shape.stack, shape.layers, sub_layers, d, config.norm, config.norm_eps, depth_of(config), config.options});
}

void Stack::divide(LayerDivision& division) {
  for (Layer& layer : layers_) {
    layer.self_attention.divide(division);
    if (layer.cross_attention) layer.cross_attention->divide(division);
    layer.feed_forward->divide(division);
  }
}

void Stack::apply_layer(size_t i, Stream& stream, const Attentions& attentions, ForwardContext& context) const {
  const auto& [self, cross] = attentions;
  int64_t position = 0;
  const auto apply = [&](SubLayerKind kind, const std::function<Tensor(const Tensor&)>& forward) {
    const LayerId id{shape_.stack, static_cast<int64_t>(i), kind};
    scheme_->apply(stream, {id, position++, forward}, context);
    stream.for_each([&](Tensor& tensor) { tensor = context.passed({id, Point::stream}, tensor); });
  };
  const FeedForward& feed_forward = *layers_[i].feed_forward;
  if (parallel_) {
    apply(SubLayerKind::parallel, [&](const Tensor& h) { return self(i, h) + feed_forward(h, context); });
  } else {
    apply(SubLayerKind::self_attention, [&](const Tensor& h) { return self(i, h); });
  }
  if (shape_.cross_attention) apply(SubLayerKind::cross_attention, [&](const Tensor& h) { return cross(i, h); });
  if (!parallel_) apply(SubLayerKind::feed_forward, [&](const Tensor& h) { return feed_forward(h, context); });
}

Stream Stack::enter(const Tensor& x, ForwardContext& context) const {
  return scheme_->enter(context.passed({{shape_.stack}, Point::input}, x), context);
}

Tensor Stack::leave(const Stream& stream, const Ragged& layout, ForwardContext& context) const {
  Tensor result = scheme_->leave(stream, context);
  if (shape_.center_result) result = centered(result, layout);
  context.show({{shape_.stack}, Point::result}, result);
  return context.passed({{shape_.stack}, Point::result}, result);
}

/// What the layers of a pass read besides the stream.
struct Stack::StackExtras {
  struct Layouts {
    Ragged stream, memory;
  };
  std::shared_ptr<const Layouts> layouts;
  Tensor memory;  // undefined without cross-attention
  AttentionPass pass{layouts->stream};
};

void Stack::apply_layer(size_t i, Stream& stream, StackExtras& extras, ForwardContext& context) const {
  const Attend self = [&](size_t layer, const Tensor& h) {
    return layers_[layer].self_attention.self(h, extras.pass, shape_.causal, context);
  };
  const Attend cross = [&](size_t layer, const Tensor& h) {
    const MultiHeadAttention& attention = *layers_[layer].cross_attention;
    const LayerId id{shape_.stack, static_cast<int64_t>(layer), SubLayerKind::cross_attention};
    const Tensor read = context.passed({id, Point::memory}, extras.memory);
    return attention.cross(h, extras.layouts->stream, attention.remember(read, extras.layouts->memory, context),
                           context);
  };
  apply_layer(i, stream, {self, cross}, context);
}

struct Stack::StreamShape {
  size_t sources = 0;
  bool second = false, memory = false, first_values = false;
};

std::vector<Tensor> Stack::flatten(Stream& stream, const StackExtras& extras, StreamShape& stream_shape) const {
  std::vector<Tensor> tensors;
  stream.for_each([&](const Tensor& tensor) { tensors.push_back(tensor); });
  stream_shape = {stream.sources.size(), stream.second.defined(), extras.memory.defined(),
                  extras.pass.first_values.defined()};
  if (stream_shape.memory) tensors.push_back(extras.memory);
  if (stream_shape.first_values) tensors.push_back(extras.pass.first_values);
  return tensors;
}

void Stack::unflatten(const std::vector<Tensor>& tensors, const StreamShape& stream_shape, Stream& stream,
                      StackExtras& extras) {
  auto next = tensors.begin();
  stream.x = *next++;
  stream.second = stream_shape.second ? *next++ : Tensor();
  const auto sources = next;
  next += static_cast<std::ptrdiff_t>(stream_shape.sources);
  stream.sources.assign(sources, next);
  extras.memory = stream_shape.memory ? *next++ : Tensor();
  extras.pass.first_values = stream_shape.first_values ? *next++ : Tensor();
}

void Stack::recompute_layer(size_t i, Stream& stream, StackExtras& extras, ForwardContext& context) const {
  const LayerId id{shape_.stack, static_cast<int64_t>(i)};
  LayerSource* const source = context.source();
  StreamShape before, after;
  const std::vector<Tensor> inputs = flatten(stream, extras, before);
  StackExtras blank = extras;  // what the graph keeps must not refer to the graph
  blank.memory = blank.pass.first_values = Tensor();
  const auto apply = [=, this](const std::vector<Tensor>& given, StackExtras& own, ForwardContext& in,
                               StreamShape& becomes) {
    if (source != nullptr) source->unshard(id);
    Stream part;
    unflatten(given, before, part, own);
    apply_layer(i, part, own, in);
    return flatten(part, own, becomes);
  };
  const auto forward = [&](const std::vector<Tensor>& given) {
    StackExtras own = blank;
    std::vector<Tensor> results = apply(given, own, context, after);
    extras.pass.angles_of = own.pass.angles_of;
    extras.pass.angles = own.pass.angles;
    if (source != nullptr) source->reshard(id);
    return results;
  };
  const auto replay = [apply, blank, in = context.replayed()](const std::vector<Tensor>& given) {
    StackExtras own = blank;
    ForwardContext same = in;
    StreamShape stream_shape;
    return apply(given, own, same, stream_shape);
  };
  const auto release = [=] {
    if (source != nullptr) source->reshard(id);
  };
  unflatten(ops::recomputed(inputs, {forward, replay, release}), after, stream, extras);
}

void Stack::fetch_and_apply(size_t i, Stream& stream, StackExtras& extras, ForwardContext& context) const {
  const LayerId id{shape_.stack, static_cast<int64_t>(i)};
  LayerSource* const source = context.source();
  StreamShape stream_shape;
  const auto mark = [&](const std::function<void()>& reached) {
    const std::vector<Tensor> tensors = flatten(stream, extras, stream_shape);
    unflatten(ops::called_in_backward(tensors, reached), stream_shape, stream, extras);
  };
  mark([=] { source->reshard(id); });
  source->unshard(id);
  apply_layer(i, stream, extras, context);
  source->reshard(id);
  mark([=] { source->unshard(id); });
}

Tensor Stack::operator()(const Tensor& x, const Ragged& layout, const Tensor& memory, const Ragged& memory_layout,
                         ForwardContext& context) const {
  LayerRange range{.memory = memory};
  return part(
      range, 0, [&] { return x; }, layout, memory_layout, context);
}

Tensor Stack::part(LayerRange& range, int64_t first, const std::function<Tensor()>& input, const Ragged& layout,
                   const Ragged& memory_layout, ForwardContext& context) const {
  const auto layers = static_cast<int64_t>(layers_.size());
  const int64_t begin = std::max<int64_t>(range.first - first, 0), end = std::min(range.last - first, layers);
  if (begin > end || (begin == end && layers > 0)) return {};
  if (begin == 0) {
    const Tensor x = input();
    context.show({{shape_.stack}, Point::input}, x);
    range.stream = enter(x, context);
  }
  StackExtras extras{std::make_shared<const StackExtras::Layouts>(StackExtras::Layouts{layout, memory_layout}),
                     range.memory};
  extras.pass.keeps_values = value_residual_;
  extras.pass.first_values = range.first_values;
  for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
    if (context.recomputes()) {
      recompute_layer(i, range.stream, extras, context);
    } else if (context.source() != nullptr) {
      fetch_and_apply(i, range.stream, extras, context);
    } else {
      apply_layer(i, range.stream, extras, context);
    }
  }
  range.memory = extras.memory;
  range.first_values = extras.pass.first_values;
  if (end < layers) return {};
  Tensor result = leave(range.stream, layout, context);
  range.stream = {};
  range.first_values = Tensor();
  return result;
}

DecoderState Stack::start(int64_t rows) const {
  DecoderState state;
  state.positions.assign(static_cast<size_t>(rows), 0);
  for (const Layer& layer : layers_) state.self.push_back(layer.self_attention.start(rows));
  return state;
}

DecoderState Stack::start(const Tensor& memory, const Ragged& memory_layout) const {
  const at::NoGradGuard no_graph;
  const ForwardContext context;
  DecoderState state = start(memory_layout.sequences());
  state.rows_per_source.assign(static_cast<size_t>(memory_layout.sequences()), 1);
  for (const Layer& layer : layers_)
    state.memory.push_back(layer.cross_attention->remember(memory, memory_layout, context));
  return state;
}

Tensor Stack::read(const Tensor& x, const Ragged& layout, const std::vector<int64_t>& positions,
                   DecoderState& state) const {
  const at::NoGradGuard no_graph;
  ForwardContext context;
  AttentionPass pass(layout, positions);
  pass.keeps_values = value_residual_;
  Ragged by_source;  // the tokens of all rows of a source, as one sequence
  int64_t row = 0;
  for (const int64_t rows : state.rows_per_source) {
    by_source.append(layout.begin(row + rows) - layout.begin(row));
    row += rows;
  }
  const Attend self = [&](size_t i, const Tensor& h) {
    return layers_[i].self_attention.read(h, pass, *state.self[i]);
  };
  const Attend cross = [&](size_t i, const Tensor& h) {
    return layers_[i].cross_attention->cross(h, by_source, state.memory[i], context);
  };
  Stream stream = enter(x, context);
  for (size_t i = 0; i < layers_.size(); ++i) apply_layer(i, stream, {self, cross}, context);
  Tensor out = leave(stream, layout, context);
  for (size_t r = 0; r < state.positions.size(); ++r) state.positions[r] += layout.length(static_cast<int64_t>(r));
  return out;
}

}  // namespace plumb
