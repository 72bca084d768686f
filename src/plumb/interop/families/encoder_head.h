// The head of an encoder in the classes of `transformers`: none, an output layer over the vocabulary, or one over
// labels.
#pragma once

#include <string>

#include "plumb/interop/family.h"

namespace plumb {

enum class EncoderHead { none, tokens, labels };

/// The head of the class in `architectures`.
EncoderHead encoder_head_of(Settings& settings);

/// The configuration of a BERT-like encoder with its head, but without its sizes: Post-LN, learned positions, a norm on
/// the embeddings. Without a head, it predicts tokens with its embedding, so that it has a loss; a token head has
/// BERT's transform and an output bias. Reads the keys of the head.
ModelConfig imported_encoder(Settings& settings);

/// The reverse: writes the class, whose name begins with `family`, and the labels LABEL_0, LABEL_1, ….
void write_encoder_head(const ModelConfig& config, const std::string& family, Json& settings);

/// The tensor names of a token head: a dense layer, its norm, and an output layer, which may share the embedding.
struct TokenHeadNames {
  std::string dense, norm, output;
  std::string bias;  // of the output, without ".bias", if it may be named differently than `output`
};

/// Takes a token head; clears the prefix of `weights`.
void take_token_head(Weights& weights, const TokenHeadNames& names, const ModelConfig& config, NamedTensors& result);

}  // namespace plumb
