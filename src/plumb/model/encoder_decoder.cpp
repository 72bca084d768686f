#include "plumb/model/encoder_decoder.h"

#include <fmt/format.h>

#include "plumb/base/error.h"
#include "plumb/model/kind.h"

namespace plumb {
namespace {

void check_encoder_decoder(const ModelConfig& config) {
  if (config.share_embeddings != "all" || config.source_vocabulary == config.target_vocabulary) return;
  throw Error(fmt::format("vocabularies of sizes {} and {} cannot share embeddings", config.source_vocabulary,
                          config.target_vocabulary),
              "prepare the data with one joint vocabulary, or set model.share_embeddings = \"target\"");
}

const bool kEncoderDecoderRegistered = model_kinds().add(
    "encoder-decoder", "translates", "Vaswani et al. 2017, arXiv 1706.03762",
    {.reads_source = true, .reads_target = true, .check = check_encoder_decoder, .make = makes<EncoderDecoder>});

}  // namespace

EncoderDecoder::EncoderDecoder(const ModelConfig& config, at::ScalarType type) : Model(config, type) {
  validate(config);
  require_kind(config, "encoder-decoder");
  const int64_t d = config.d_model;
  const Tensor source = parameters_.add("src_embed.weight", {config.source_vocabulary, d}, Role::embedding);
  const Tensor target = config.share_embeddings == "all"
                            ? source
                            : parameters_.add("tgt_embed.weight", {config.target_vocabulary, d}, Role::embedding);
  source_ = std::make_unique<TokenEmbedding>(parameters_, config, TokenEmbedding::Shape{"src", false, config.segments},
                                             source);
  target_ = std::make_unique<TokenEmbedding>(parameters_, config, TokenEmbedding::Shape{"tgt", true}, target);
  encoder_ = std::make_unique<Stack>(
      parameters_, config, Stack::Shape{StackKind::encoder, config.encoder_layers, false, false, config.center_memory},
      source_->positions());
  decoder_ = std::make_unique<Stack>(
      parameters_, config, Stack::Shape{StackKind::decoder, config.decoder_layers, true, true}, target_->positions());
  add_output(config.target_vocabulary, config.share_embeddings == "none" ? Tensor() : target);
  parameters_.allocate();
}

Tensor EncoderDecoder::encode(const std::vector<int64_t>& source, const Ragged& layout, ForwardContext& context,
                              const std::vector<int64_t>& segments) {
  context.enter(layout);
  return (*encoder_)((*source_)(source, layout.positions(), segments, context), layout, context);
}

Tensor EncoderDecoder::decode(const std::vector<int64_t>& target, const Ragged& layout, const Tensor& memory,
                              const Ragged& memory_layout, ForwardContext& context) {
  context.enter(layout);
  return (*decoder_)((*target_)(target, layout.positions(), {}, context), layout, memory, memory_layout, context);
}

Tensor EncoderDecoder::states(const Batch& batch, ForwardContext& context) {
  LayerRange all;
  LayerRange& range = context.layer_range() != nullptr ? *context.layer_range() : all;
  const Ragged &source = batch.source_layout, &target = batch.target_layout;
  context.enter(source);
  const Tensor memory = encoder_->part(
      range, 0, [&] { return (*source_)(batch.source, source.positions(), batch.segments, context); }, source, {},
      context);
  if (memory.defined()) range.memory = memory;
  context.enter(target);
  return decoder_->part(
      range, config().encoder_layers, [&] { return (*target_)(batch.target_input, target.positions(), {}, context); },
      target, source, context);
}

DecoderState EncoderDecoder::start(const std::vector<int64_t>& source, const Ragged& layout) {
  const at::NoGradGuard no_graph;
  ForwardContext context;
  return start(encode(source, layout, context), layout);
}

DecoderState EncoderDecoder::start(const Tensor& memory, const Ragged& memory_layout) {
  return decoder_->start(memory, memory_layout);
}

Tensor EncoderDecoder::read(DecoderState& state, const std::vector<int64_t>& tokens, const Ragged& layout) {
  const at::NoGradGuard no_graph;
  ForwardContext context;
  const std::vector<int64_t> positions = positions_after(state.positions, layout);
  return decoder_->read((*target_)(tokens, positions, {}, context), layout, positions, state);
}

}  // namespace plumb
