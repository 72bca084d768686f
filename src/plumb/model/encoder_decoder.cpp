#include "plumb/model/encoder_decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plumb/nn/init/init.h"
#include "plumb/ops/cross_entropy.h"
#include "plumb/ops/embedding.h"
#include "plumb/ops/linear.h"

namespace plumb {
namespace {

/// The position of every token within its sequence.
std::vector<int64_t> positions_of(const Ragged& layout) {
  std::vector<int64_t> ids;
  ids.reserve(static_cast<size_t>(layout.tokens()));
  for (int64_t s = 0; s < layout.sequences(); ++s) {
    for (int64_t p = 0; p < layout.length(s); ++p) ids.push_back(p);
  }
  return ids;
}

/// Pairs of random tokens: enough for the variances of a profiling pass.
Batch random_batch(const ModelConfig& config, uint64_t seed) {
  constexpr int64_t kPairs = 16;
  const int64_t length = std::min<int64_t>(24, config.max_positions - 1);
  Random random(seed, "profile");
  const auto sentence = [&](int64_t vocabulary) {
    std::vector<int32_t> ids(static_cast<size_t>(length));
    for (int32_t& id : ids) id = static_cast<int32_t>(random.below(static_cast<uint64_t>(vocabulary)));
    return ids;
  };
  Batch batch;
  for (int64_t i = 0; i < kPairs; ++i) {
    const std::vector<int32_t> source = sentence(config.source_vocabulary);
    append(batch, source, sentence(config.target_vocabulary), i);
  }
  return batch;
}

}  // namespace

void DecoderState::reorder(const std::vector<int64_t>& order, std::vector<int64_t> rows) {
  for (KeyValueCache& cache : self) cache.reorder(order);
  rows_per_source = std::move(rows);
}

EncoderDecoder::EncoderDecoder(const ModelConfig& config, at::ScalarType type) : config_(config), parameters_(type) {
  validate(config);
  const int64_t d = config.d_model;
  const ModelDepth depth{config.encoder_layers, config.decoder_layers};
  source_embedding_ = parameters_.add("src_embed.weight", {config.source_vocabulary, d}, Role::embedding);
  target_embedding_ = config.share_embeddings == "all"
                          ? source_embedding_
                          : parameters_.add("tgt_embed.weight", {config.target_vocabulary, d}, Role::embedding);
  const auto& make_positions = plumb::positions().at(config.positions).make;
  source_positions_ = make_positions(parameters_, "src_position", d, config.max_positions);
  target_positions_ = make_positions(parameters_, "tgt_position", d, config.max_positions);
  for (int64_t i = 0; i < config.encoder_layers; ++i) {
    const std::string prefix = fmt::format("encoder.layers.{}", i);
    encoder_.push_back({MultiHeadAttention(parameters_, prefix + ".self_attn", d, config.heads),
                        FeedForward(parameters_, prefix, d, config.feed_forward, config.activation)});
  }
  encoder_scheme_ = make_residual_scheme(config.residual, parameters_,
                                         {"encoder", config.encoder_layers, 2, d, config.norm, config.norm_eps, depth});
  for (int64_t i = 0; i < config.decoder_layers; ++i) {
    const std::string prefix = fmt::format("decoder.layers.{}", i);
    decoder_.push_back({MultiHeadAttention(parameters_, prefix + ".self_attn", d, config.heads),
                        MultiHeadAttention(parameters_, prefix + ".multihead_attn", d, config.heads),
                        FeedForward(parameters_, prefix, d, config.feed_forward, config.activation)});
  }
  decoder_scheme_ = make_residual_scheme(config.residual, parameters_,
                                         {"decoder", config.decoder_layers, 3, d, config.norm, config.norm_eps, depth});
  output_ = config.share_embeddings == "none"
                ? parameters_.add("output.weight", {config.target_vocabulary, d}, Role::embedding)
                : target_embedding_;
  parameters_.finish();
}

void EncoderDecoder::initialise(uint64_t seed) {
  plumb::initialise(parameters_, config_.initialisation, {config_.encoder_layers, config_.decoder_layers}, seed);
  if (encoder_scheme_->profiled()) profile(random_batch(config_, seed));
}

void EncoderDecoder::profile(const Batch& batch) {
  const at::NoGradGuard no_graph;
  ForwardContext context(Pass::profiling);
  const Tensor memory = encode(batch.source, batch.source_layout, context);
  decode(batch.target_input, batch.target_layout, memory, batch.source_layout, context);
}

Tensor EncoderDecoder::embed(const Tensor& table, Positions& positions, const std::vector<int64_t>& ids,
                             const Ragged& layout, ForwardContext& context) {
  const Tensor tokens = ops::embedding(table, ids, std::sqrt(static_cast<double>(config_.d_model)));
  return context.dropout(tokens + ops::embedding(positions.table(layout.longest()), positions_of(layout), 1.0));
}

Tensor EncoderDecoder::encode(const std::vector<int64_t>& source, const Ragged& layout, ForwardContext& context) {
  const Tensor x = embed(source_embedding_, *source_positions_, source, layout, context);
  context.show("encoder.input", x);
  Stream stream = encoder_scheme_->enter(x, context);
  for (size_t i = 0; i < encoder_.size(); ++i) {
    const EncoderLayer& layer = encoder_[i];
    const auto index = static_cast<int64_t>(i);
    const std::string prefix = fmt::format("encoder.layers.{}.", i);
    encoder_scheme_->apply(stream,
                           {index, 0, prefix + "self_attention",
                            [&](const Tensor& h) { return layer.self_attention.self(h, layout, false); }},
                           context);
    encoder_scheme_->apply(stream, {index, 1, prefix + "feed_forward", layer.feed_forward}, context);
  }
  return encoder_scheme_->leave(stream, context);
}

Tensor EncoderDecoder::decode(const std::vector<int64_t>& target, const Ragged& layout, const Tensor& memory,
                              const Ragged& memory_layout, ForwardContext& context) {
  const Tensor x = embed(target_embedding_, *target_positions_, target, layout, context);
  context.show("decoder.input", x);
  Stream stream = decoder_scheme_->enter(x, context);
  for (size_t i = 0; i < decoder_.size(); ++i) {
    const DecoderLayer& layer = decoder_[i];
    const auto index = static_cast<int64_t>(i);
    const std::string prefix = fmt::format("decoder.layers.{}.", i);
    decoder_scheme_->apply(stream,
                           {index, 0, prefix + "self_attention",
                            [&](const Tensor& h) { return layer.self_attention.self(h, layout, true); }},
                           context);
    decoder_scheme_->apply(stream,
                           {index, 1, prefix + "cross_attention",
                            [&](const Tensor& h) {
                              return layer.cross_attention.cross(
                                  h, layout, layer.cross_attention.project_memory(memory), memory_layout);
                            }},
                           context);
    decoder_scheme_->apply(stream, {index, 2, prefix + "feed_forward", layer.feed_forward}, context);
  }
  return decoder_scheme_->leave(stream, context);
}

Tensor EncoderDecoder::logits(const Tensor& hidden) const { return ops::matrix_product(hidden, output_, false, true); }

Loss EncoderDecoder::loss(const Batch& batch, const LossOptions& options, ForwardContext& context) {
  const Tensor memory = encode(batch.source, batch.source_layout, context);
  const Tensor hidden = decode(batch.target_input, batch.target_layout, memory, batch.source_layout, context);
  const int64_t tokens = batch.target_layout.tokens();
  const double scale = options.scale.value_or(1.0 / static_cast<double>(tokens));
  const ops::CrossEntropy result =
      options.twice_differentiable
          ? ops::cross_entropy(logits(hidden), batch.target_output, options.label_smoothing, scale)
          : ops::linear_cross_entropy(hidden, output_, batch.target_output, options.label_smoothing, scale);
  return {result.loss, result.nll, tokens};
}

DecoderState EncoderDecoder::start(const Tensor& memory, const Ragged& memory_layout) {
  const at::NoGradGuard no_graph;
  DecoderState state;
  state.memory_layout = memory_layout;
  state.rows_per_source.assign(static_cast<size_t>(memory_layout.sequences()), 1);
  state.self.resize(decoder_.size());
  for (const DecoderLayer& layer : decoder_) state.memory.push_back(layer.cross_attention.project_memory(memory));
  return state;
}

Tensor EncoderDecoder::step(DecoderState& state, const std::vector<int64_t>& tokens) {
  const at::NoGradGuard no_graph;
  ForwardContext context;
  const Ragged rows(state.rows_per_source);  // the rows of one source, seen as the positions of one sequence
  const Tensor position = target_positions_->table(state.position + 1).narrow(0, state.position, 1);
  const Tensor x =
      ops::embedding(target_embedding_, tokens, std::sqrt(static_cast<double>(config_.d_model))) + position;
  Stream stream = decoder_scheme_->enter(x, context);
  for (size_t i = 0; i < decoder_.size(); ++i) {
    const DecoderLayer& layer = decoder_[i];
    const auto index = static_cast<int64_t>(i);
    decoder_scheme_->apply(
        stream, {index, 0, {}, [&](const Tensor& h) { return layer.self_attention.self_step(h, state.self[i]); }},
        context);
    decoder_scheme_->apply(
        stream,
        {index,
         1,
         {},
         [&](const Tensor& h) { return layer.cross_attention.cross(h, rows, state.memory[i], state.memory_layout); }},
        context);
    decoder_scheme_->apply(stream, {index, 2, {}, layer.feed_forward}, context);
  }
  ++state.position;
  return decoder_scheme_->leave(stream, context);
}

}  // namespace plumb
