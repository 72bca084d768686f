#include "plumb/model/decoder.h"

#include "plumb/base/error.h"
#include "plumb/model/kind.h"

namespace plumb {
namespace {

void check_decoder(const ModelConfig& config) {
  if (config.segments > 0) throw Error("a decoder has no segments", "set model.segments = 0");
}

const bool kDecoderRegistered = model_kinds().add(
    "decoder", "the decoder alone, without cross-attention: a causal language model of the data's target side", "",
    {.reads_target = true, .pooling = "last", .check = check_decoder, .make = makes<Decoder>});

}  // namespace

Decoder::Decoder(const ModelConfig& config, at::ScalarType type) : Model(config, type) {
  validate(config);
  require_kind(config, "decoder");
  const Tensor table = parameters_.add("tgt_embed.weight", {config.target_vocabulary, config.d_model}, Role::embedding);
  embedding_ = std::make_unique<TokenEmbedding>(parameters_, config, TokenEmbedding::Shape{"tgt", true}, table);
  stack_ =
      std::make_unique<Stack>(parameters_, config, Stack::Shape{StackKind::decoder, config.decoder_layers, true, false},
                              embedding_->positions());
  if (config.labels > 0) {
    pooling_ = poolings().at(config.pooling).make;
    add_readout(pooling_.vectors * config.d_model);
  } else {
    add_output(config.target_vocabulary, config.share_embeddings == "none" ? Tensor() : table);
  }
  parameters_.allocate();
}

Tensor Decoder::hidden(const std::vector<int64_t>& tokens, const std::vector<int64_t>& segments, const Ragged& layout,
                       ForwardContext& context) {
  context.enter(layout);
  LayerRange all;
  return stack_->part(
      context.layer_range() != nullptr ? *context.layer_range() : all, 0,
      [&] { return (*embedding_)(tokens, layout.positions(), segments, context); }, layout, {}, context);
}

Tensor Decoder::hidden(const std::vector<int64_t>& tokens, const Ragged& layout, ForwardContext& context) {
  return hidden(tokens, {}, layout, context);
}

Tensor Decoder::states(const Batch& batch, ForwardContext& context) {
  const Tensor all = hidden(batch.target_input, batch.target_layout, context);
  return config().labels > 0 && all.defined() ? pooling_(all, batch.target_layout) : all;
}

Tensor Decoder::class_logits(const Batch& batch) {
  const at::NoGradGuard no_graph;
  ForwardContext context;
  return logits(states(batch, context));
}

DecoderState Decoder::start(int64_t rows) { return stack_->start(rows); }

Tensor Decoder::read(DecoderState& state, const std::vector<int64_t>& tokens, const Ragged& layout) {
  const at::NoGradGuard no_graph;
  ForwardContext context;
  const std::vector<int64_t> positions = positions_after(state.positions, layout);
  return stack_->read((*embedding_)(tokens, positions, {}, context), layout, positions, state);
}

}  // namespace plumb
