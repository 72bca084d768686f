#include "plumb/model/decoder.h"

#include <fmt/format.h>

#include "plumb/base/error.h"

namespace plumb {

Decoder::Decoder(const ModelConfig& config, at::ScalarType type) : Model(config, type) {
  validate(config);
  if (config.kind != "decoder") throw Error(fmt::format("model.kind = \"{}\" where a decoder is wanted", config.kind));
  const int64_t d = config.d_model;
  const Tensor table = parameters_.add("tgt_embed.weight", {config.target_vocabulary, d}, Role::embedding);
  embedding_ = std::make_unique<TokenEmbedding>(
      table, positions()
                 .at(config.positions)
                 .make(parameters_, "tgt_position", {d, config.heads, config.max_positions, true, 0, config.options}));
  stack_ = std::make_unique<Stack>(parameters_, config, Stack::Shape{StackKind::decoder, config.decoder_layers, true, false},
                                   embedding_->positions());
  output_ = config.share_embeddings == "none"
                ? parameters_.add("output.weight", {config.target_vocabulary, d}, Role::embedding)
                : table;
  parameters_.finish();
}

Tensor Decoder::hidden(const std::vector<int64_t>& tokens, const Ragged& layout, ForwardContext& context) {
  return (*stack_)((*embedding_)(tokens, layout, context), layout, context);
}

Tensor Decoder::states(const Batch& batch, ForwardContext& context) {
  return hidden(batch.target_input, batch.target_layout, context);
}

DecoderState Decoder::start(int64_t rows) { return stack_->start(rows); }

Tensor Decoder::step(DecoderState& state, const std::vector<int64_t>& tokens) {
  const at::NoGradGuard no_graph;
  return stack_->step(embedding_->at(tokens, state.position), state);
}

}  // namespace plumb
