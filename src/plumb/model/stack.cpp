#include "plumb/model/stack.h"

namespace plumb {

void DecoderState::reorder(const std::vector<int64_t>& order, std::vector<int64_t> rows) {
  for (const auto& state : self) state->reorder(order);
  rows_per_source = std::move(rows);
}

Stack::Stack(Parameters& parameters, const ModelConfig& config, const Shape& shape, Positions& positions)
    : shape_(shape) {
  const int64_t d = config.d_model;
  const MultiHeadOptions options{config.attention, config.qk_norm, config.norm_eps, config.options};
  for (int64_t i = 0; i < shape.layers; ++i) {
    const std::string prefix = to_string(LayerId{shape.stack, i});
    MultiHeadAttention self(parameters, prefix + ".self_attn", d, config.heads, options,
                            positions.within(parameters, prefix + ".self_attn"));
    std::unique_ptr<MultiHeadAttention> cross;
    if (shape.cross_attention) {
      cross = std::make_unique<MultiHeadAttention>(parameters, prefix + ".multihead_attn", d, config.heads, options);
    }
    layers_.push_back(
        {std::move(self), std::move(cross),
         feed_forwards()
             .at(config.activation)
             .make(parameters, {prefix, d, config.feed_forward, config.feed_forward_bias, config.options})});
  }
  scheme_ = make_residual_scheme(config.residual, parameters,
                                 {shape.stack, shape.layers, shape.cross_attention ? 3 : 2, d, config.norm,
                                  config.norm_eps, depth_of(config), config.options});
}

Tensor Stack::operator()(const Tensor& x, const Ragged& layout, const Tensor& memory, const Ragged& memory_layout,
                         ForwardContext& context) const {
  context.show({{shape_.stack}, Point::input}, x);
  Stream stream = scheme_->enter(x, context);
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    const auto index = static_cast<int64_t>(i);
    int64_t position = 0;
    const auto id = [&](SubLayerKind kind) { return LayerId{shape_.stack, index, kind}; };
    scheme_->apply(stream,
                   {id(SubLayerKind::self_attention), position++,
                    [&](const Tensor& h) { return layer.self_attention.self(h, layout, shape_.causal, context); }},
                   context);
    if (layer.cross_attention) {
      const MultiHeadAttention& cross = *layer.cross_attention;
      scheme_->apply(stream,
                     {id(SubLayerKind::cross_attention), position++,
                      [&](const Tensor& h) {
                        return cross.cross(h, layout, cross.remember(memory, memory_layout, context), context);
                      }},
                     context);
    }
    scheme_->apply(stream, {id(SubLayerKind::feed_forward), position, [&](const Tensor& h) { return (*layer.feed_forward)(h); }}, context);
  }
  return scheme_->leave(stream, context);
}

DecoderState Stack::start(int64_t rows) const {
  DecoderState state;
  state.rows_per_source.assign(static_cast<size_t>(rows), 1);
  for (const Layer& layer : layers_) state.self.push_back(layer.self_attention.start(rows));
  return state;
}

DecoderState Stack::start(const Tensor& memory, const Ragged& memory_layout) const {
  const at::NoGradGuard no_graph;
  const ForwardContext context;
  DecoderState state = start(memory_layout.sequences());
  for (const Layer& layer : layers_)
    state.memory.push_back(layer.cross_attention->remember(memory, memory_layout, context));
  return state;
}

Tensor Stack::step(const Tensor& x, DecoderState& state) const {
  const at::NoGradGuard no_graph;
  ForwardContext context;
  const Ragged rows(state.rows_per_source);  // the rows of one source, seen as the positions of one sequence
  Stream stream = scheme_->enter(x, context);
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    const auto index = static_cast<int64_t>(i);
    int64_t position = 0;
    const auto id = [&](SubLayerKind kind) { return LayerId{shape_.stack, index, kind}; };
    scheme_->apply(stream,
                   {id(SubLayerKind::self_attention), position++,
                    [&](const Tensor& h) { return layer.self_attention.self_step(h, state.position, *state.self[i]); }},
                   context);
    if (layer.cross_attention) {
      scheme_->apply(stream,
                     {id(SubLayerKind::cross_attention), position++,
                      [&](const Tensor& h) { return layer.cross_attention->cross(h, rows, state.memory[i], context); }},
                     context);
    }
    scheme_->apply(stream, {id(SubLayerKind::feed_forward), position, [&](const Tensor& h) { return (*layer.feed_forward)(h); }}, context);
  }
  ++state.position;
  return scheme_->leave(stream, context);
}

}  // namespace plumb
