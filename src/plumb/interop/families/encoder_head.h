// What follows the layers of an encoder in the classes of `transformers`: nothing, an output layer over the vocabulary,
// or one over labels.
#pragma once

#include <string>

#include "plumb/interop/family.h"

namespace plumb {

enum class EncoderHead { none, tokens, labels };

/// That of the class that `architectures` names.
EncoderHead encoder_head_of(Settings& settings);

/// An encoder in the manner of BERT with nothing but its head decided: Post-LN, learned positions, a norm of the
/// embeddings. Without a head it predicts tokens with its embedding, so that it has a loss; with one for tokens it has
/// BERT's transform and an output bias. Asks for what belongs to the head.
ModelConfig imported_encoder(Settings& settings);

/// The reverse: the class, whose name begins with `family`, and the labels, which have no names here.
void write_encoder_head(const ModelConfig& config, const std::string& family, Json& settings);

/// The names of a head for tokens: a dense layer, its norm, and an output layer, which may share the embedding.
struct TokenHeadNames {
  std::string dense, norm, output;
  std::string bias;  // of the output, without ".bias", where it has another name than `output`
};

/// Takes a head for tokens; the weights have no prefix afterwards.
void take_token_head(Weights& weights, const TokenHeadNames& names, const ModelConfig& config, NamedTensors& result);

}  // namespace plumb
