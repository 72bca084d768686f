#include "plumb/interop/embedder.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "plumb/base/error.h"
#include "plumb/data/directory.h"
#include "plumb/interop/import.h"
#include "plumb/interop/sentence_encoding.h"
#include "plumb/model/embedding.h"
#include "plumb/model/kind.h"
#include "plumb/task/direction.h"

namespace plumb {
namespace {

/// The pooling used if neither the user nor the model's folder specifies one: as in training.
std::string usual_pooling(const ModelConfig& config) {
  if (!kind_of(config).only_encodes()) return config.labels > 0 ? config.pooling : "last";
  return config.pooling == "none" ? "mean" : config.pooling;
}

/// The most tokens of a text to read; 0: unlimited. Throws Error if more are asked for than the model has positions.
int64_t tokens_limit(const ModelConfig& config, const std::optional<int64_t>& asked, int64_t of_encoder) {
  // Time and memory of attention are quadratic in the length.
  constexpr int64_t kUsual = 512;
  const int64_t most = longest_sequence(config);
  const bool limited = most < std::numeric_limits<int64_t>::max(), recurrent = kind_of(config).recurrent;
  const int64_t wanted = asked.value_or(of_encoder > 0 || limited || recurrent ? of_encoder : kUsual);
  if (!limited) return wanted;
  if (asked && *asked > most)
    throw Error(
        fmt::format("{} tokens of each text are to be read, but the model has only {} positions", *asked, most));
  return wanted > 0 ? std::min(wanted, most) : most;
}

/// The tokenizer of the data, or of an imported model. Throws Error if it has more pieces than the model's vocabulary.
Tokenizer tokenizer_of(const ModelConfig& model, const std::string& data, const std::filesystem::path& run) {
  Tokenizer tokenizer = data.empty() ? Tokenizer::from_file(run) : DataDirectory::open(data).target_tokenizer();
  const int64_t vocabulary = text_vocabulary_of(model);
  if (tokenizer.vocabulary() > vocabulary) {
    throw Error(fmt::format("the tokenizer has {} pieces, but the model only {}", tokenizer.vocabulary(), vocabulary),
                "give the data directory that the model was trained on");
  }
  return tokenizer;
}

}  // namespace

Embedder make_embedder(std::shared_ptr<OpenedModel> opened, const std::string& data, const AskedEmbedding& asked,
                       EmbedOptions options) {
  const RunConfig& config = opened->config;
  const std::filesystem::path& run = opened->place.run;
  const std::optional<SentenceEncoding> stored =
      is_model_folder(run) ? read_sentence_encoding(run) : sentence_encoding_of(run);
  options.pooling = asked.pooling.value_or(stored ? stored->pooling : usual_pooling(config.model));
  options.normalize = asked.normalize.value_or(stored && stored->normalize);
  options.max_tokens = tokens_limit(config.model, asked.max_tokens, stored ? stored->max_tokens : 0);
  (void)embedder_of(*opened->model);
  const std::string& tokenized = data.empty() ? config.data : data;
  options.as_tokenizer_says = tokenized.empty();
  options.backward = reads_backward(config.task);
  Tokenizer tokenizer = tokenizer_of(config.model, tokenized, run);
  return {.opened = std::move(opened), .tokenizer = std::move(tokenizer), .options = std::move(options)};
}

TextVectors embed_texts(const Embedder& embedder, const std::vector<std::string>& texts,
                        const EmbedProgress& progress) {
  return embed_texts(embedder_of(*embedder.opened->model), embedder.tokenizer, texts, embedder.options, progress);
}

}  // namespace plumb
