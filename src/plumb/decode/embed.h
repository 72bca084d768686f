// Text embeddings: a model's pooled hidden states (Reimers & Gurevych 2019, arXiv 1908.10084).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "plumb/model/capabilities.h"
#include "plumb/model/model.h"
#include "plumb/text/tokenizer.h"

namespace plumb {

struct EmbedOptions {
  std::string pooling = "mean";  // over all tokens, including special ones: a name in poolings() except "none"
  bool normalize = false;        // divide each vector by its norm
  int64_t max_tokens = 0;        // per text, with special tokens; longer texts are truncated; 0: unlimited
  bool backward = false;         // the model reads each text from its end to its beginning
  /// Whether to add the special tokens that the tokenizer itself adds, as imported models expect; otherwise BOS and
  /// EOS, as in Plumb's training of encoders.
  bool as_tokenizer_says = false;
  int64_t batch_tokens = 4096;        // per batch
  std::string precision = "float32";  // of matrix products: float32, bf16 or int8
};

struct TextVectors {
  Tensor vectors;         // (texts, d_model; ·3 for concat), float32 unless the model is in float64, on the CPU
  int64_t truncated = 0;  // number of truncated texts
};

/// Throws Error if the model cannot embed texts.
Embeds& embedder_of(Model& model);

/// The ids that a model reads for a text.
struct IdsToEmbed {
  std::vector<int32_t> ids;
  bool truncated = false;
};

/// Throws Error if max_tokens leaves no room for a token.
IdsToEmbed ids_to_embed(const Tokenizer& tokenizer, std::string_view text, const EmbedOptions& options);

/// Called after each batch, never concurrently, with the number of finished texts.
using EmbedProgress = std::function<void(int64_t texts)>;

/// The vector of each text, in the given order, computed in batches of texts of similar length:
///   v = pool(h_1, …, h_n), and v/max(‖v‖, 1e-12) if normalized.
/// Throws Error if the options are invalid, if a text has no tokens, or if a vector is not finite.
TextVectors embed_texts(Embeds& model, const Tokenizer& tokenizer, const std::vector<std::string>& texts,
                        const EmbedOptions& options, const EmbedProgress& progress = {});

}  // namespace plumb
