#include "plumb/model/encoder_decoder.h"

#include <fmt/format.h>

#include "plumb/base/error.h"

namespace plumb {

EncoderDecoder::EncoderDecoder(const ModelConfig& config, at::ScalarType type) : Model(config, type) {
  validate(config);
  if (config.kind != "encoder-decoder") {
    throw Error(fmt::format("model.kind = \"{}\" where an encoder-decoder is wanted", config.kind),
                "only an encoder-decoder translates");
  }
  const int64_t d = config.d_model;
  const Tensor source = parameters_.add("src_embed.weight", {config.source_vocabulary, d}, Role::embedding);
  const Tensor target = config.share_embeddings == "all"
                            ? source
                            : parameters_.add("tgt_embed.weight", {config.target_vocabulary, d}, Role::embedding);
  const auto& make_positions = positions().at(config.positions).make;
  source_ = std::make_unique<TokenEmbedding>(
      source,
      make_positions(parameters_, "src_position", {d, config.heads, config.max_positions, false, 0, config.options}));
  target_ = std::make_unique<TokenEmbedding>(
      target,
      make_positions(parameters_, "tgt_position", {d, config.heads, config.max_positions, true, 0, config.options}));
  encoder_ = std::make_unique<Stack>(parameters_, config, Stack::Shape{StackKind::encoder, config.encoder_layers, false, false},
                                     source_->positions());
  decoder_ = std::make_unique<Stack>(parameters_, config, Stack::Shape{StackKind::decoder, config.decoder_layers, true, true},
                                     target_->positions());
  output_ = config.share_embeddings == "none"
                ? parameters_.add("output.weight", {config.target_vocabulary, d}, Role::embedding)
                : target;
  parameters_.finish();
}

Tensor EncoderDecoder::encode(const std::vector<int64_t>& source, const Ragged& layout, ForwardContext& context) {
  return (*encoder_)((*source_)(source, layout, context), layout, context);
}

Tensor EncoderDecoder::decode(const std::vector<int64_t>& target, const Ragged& layout, const Tensor& memory,
                              const Ragged& memory_layout, ForwardContext& context) {
  return (*decoder_)((*target_)(target, layout, context), layout, memory, memory_layout, context);
}

Tensor EncoderDecoder::states(const Batch& batch, ForwardContext& context) {
  const Tensor memory = encode(batch.source, batch.source_layout, context);
  return decode(batch.target_input, batch.target_layout, memory, batch.source_layout, context);
}

DecoderState EncoderDecoder::start(const Tensor& memory, const Ragged& memory_layout) {
  return decoder_->start(memory, memory_layout);
}

Tensor EncoderDecoder::step(DecoderState& state, const std::vector<int64_t>& tokens) {
  const at::NoGradGuard no_graph;
  return decoder_->step(target_->at(tokens, state.position), state);
}

}  // namespace plumb
