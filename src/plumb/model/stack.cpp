#include "plumb/model/stack.h"

#include <fmt/format.h>

#include <algorithm>

#include "plumb/base/error.h"

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
  const ops::HeadShape heads{config.heads, config.kv_heads > 0 ? config.kv_heads : config.heads,
                             config.head_size > 0 ? config.head_size : d / config.heads};
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
                           .make(parameters, {prefix, d, config.feed_forward, config.feed_forward_bias, config.lora})});
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

Stream Stack::enter(const Tensor& x, ForwardContext& context) const {
  return scheme_->enter(context.passed({{shape_.stack}, Point::input}, x), context);
}

void Stack::run(Stream& stream, size_t first, size_t last, const Attend& self, const Attend& cross,
                ForwardContext& context) const {
  for (size_t i = first; i < last; ++i) {
    int64_t position = 0;
    const auto apply = [&](SubLayerKind kind, const std::function<Tensor(const Tensor&)>& forward) {
      const LayerId id{shape_.stack, static_cast<int64_t>(i), kind};
      scheme_->apply(stream, {id, position++, forward}, context);
      stream.for_each([&](Tensor& tensor) { tensor = context.passed({id, Point::stream}, tensor); });
    };
    const FeedForward& feed_forward = *layers_[i].feed_forward;
    if (parallel_) {
      apply(SubLayerKind::parallel, [&](const Tensor& h) { return self(i, h) + feed_forward(h); });
    } else {
      apply(SubLayerKind::self_attention, [&](const Tensor& h) { return self(i, h); });
    }
    if (shape_.cross_attention) apply(SubLayerKind::cross_attention, [&](const Tensor& h) { return cross(i, h); });
    if (!parallel_) apply(SubLayerKind::feed_forward, [&](const Tensor& h) { return feed_forward(h); });
  }
}

Tensor Stack::leave(const Stream& stream, const Ragged& layout, ForwardContext& context) const {
  Tensor result = scheme_->leave(stream, context);
  if (shape_.center_result) {
    result = centered(result, layout);
    context.show({{shape_.stack}, Point::result}, result);
  }
  return context.passed({{shape_.stack}, Point::result}, result);
}

Tensor Stack::operator()(const Tensor& x, const Ragged& layout, const Tensor& memory, const Ragged& memory_layout,
                         ForwardContext& context) const {
  Course course{.memory = memory};
  return part(
      course, 0, [&] { return x; }, layout, memory_layout, context);
}

Tensor Stack::part(Course& course, int64_t first, const std::function<Tensor()>& input, const Ragged& layout,
                   const Ragged& memory_layout, ForwardContext& context) const {
  const auto layers = static_cast<int64_t>(layers_.size());
  const int64_t begin = std::max<int64_t>(course.first - first, 0), end = std::min(course.last - first, layers);
  if (begin > end || (begin == end && layers > 0)) return {};
  if (begin == 0) {
    const Tensor x = input();
    context.show({{shape_.stack}, Point::input}, x);
    course.stream = enter(x, context);
  }
  AttentionPass pass(layout);
  pass.first_values = course.first_values;
  const Attend self = [&](size_t i, const Tensor& h) {
    return layers_[i].self_attention.self(h, pass, shape_.causal, context);
  };
  const Attend cross = [&](size_t i, const Tensor& h) {
    const MultiHeadAttention& attention = *layers_[i].cross_attention;
    const LayerId id{shape_.stack, static_cast<int64_t>(i), SubLayerKind::cross_attention};
    const Tensor read = context.passed({id, Point::memory}, course.memory);
    return attention.cross(h, layout, attention.remember(read, memory_layout, context), context);
  };
  run(course.stream, static_cast<size_t>(begin), static_cast<size_t>(end), self, cross, context);
  if (value_residual_) course.first_values = pass.first_values;
  if (end < layers) return {};
  Tensor result = leave(course.stream, layout, context);
  course.stream = {};
  course.first_values = Tensor();
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
  run(stream, 0, layers_.size(), self, cross, context);
  Tensor out = leave(stream, layout, context);
  for (size_t r = 0; r < state.positions.size(); ++r) state.positions[r] += layout.length(static_cast<int64_t>(r));
  return out;
}

}  // namespace plumb
