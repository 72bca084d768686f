// A model that somebody named, as an encoder of texts: with its tokenizer, and how it turns a text into a vector.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "plumb/decode/embed.h"
#include "plumb/interop/opened_model.h"

namespace plumb {

/// What a user asks for; the rest is as the sentence encoder's files say, else as the model was trained.
struct AskedEmbedding {
  std::optional<std::string> pooling;  // else "last" for language models, "mean" for others
  std::optional<bool> normalize;       // else no
  std::optional<int64_t> max_tokens;   // else the number of positions, or 512; a recurrent model reads whole texts
};

struct Embedder {
  std::shared_ptr<OpenedModel> opened;
  Tokenizer tokenizer;
  EmbedOptions options;
};

/// `data`: the directory with the tokenizer; empty: the run's, or an imported model's own tokenizer. `options`: those
/// that do not depend on the model. Throws Error if the model cannot embed texts or has fewer positions than asked for,
/// or if the tokenizer has more pieces than the model.
Embedder make_embedder(std::shared_ptr<OpenedModel> opened, const std::string& data, const AskedEmbedding& asked,
                       EmbedOptions options = {});

/// As decode/embed.h.
TextVectors embed_texts(const Embedder& embedder, const std::vector<std::string>& texts,
                        const EmbedProgress& progress = {});

}  // namespace plumb
