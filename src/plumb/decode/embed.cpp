#include "plumb/decode/embed.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "plumb/base/error.h"
#include "plumb/base/parallel.h"
#include "plumb/data/batches.h"
#include "plumb/decode/errors.h"
#include "plumb/nn/pooling.h"
#include "plumb/ops/precision.h"

namespace plumb {
namespace {

void check_embedding(const EmbedOptions& options) {
  if (options.max_tokens < 0) throw Error(fmt::format("max_tokens must be at least 0, not {}", options.max_tokens));
  if (options.batch_tokens < 1)
    throw Error(fmt::format("batch_tokens must be at least 1, not {}", options.batch_tokens));
  if (options.pooling == "none")
    throw Error("the pooling \"none\" yields no vector for a text", "known: first, last, max, mean, concat");
}

std::vector<int32_t> with_special_tokens(const Tokenizer& tokenizer, std::vector<int32_t> ids, bool as_tokenizer_says) {
  if (as_tokenizer_says) return tokenizer.as_input(std::move(ids));
  ids.insert(ids.begin(), token_before_text(tokenizer.specials()));
  ids.push_back(require_special(tokenizer.specials().eos, "end of a sentence"));
  return ids;
}

/// (sequences, features) with rows of length 1.
Tensor normalized_rows(const Tensor& rows) {
  constexpr double kSmallest = 1e-12;
  return rows / rows.norm(2, {1}, /*keepdim=*/true).clamp_min(kSmallest);
}

}  // namespace

Embeds& embedder_of(Model& model) {
  if (Embeds* embedder = model.embeds()) return *embedder;
  throw Error(fmt::format("a model of kind \"{}\" cannot embed texts", model.config().kind),
              "only an encoder or a language model can");
}

IdsToEmbed ids_to_embed(const Tokenizer& tokenizer, std::string_view text, const EmbedOptions& options) {
  std::vector<int32_t> ids = tokenizer.encode(text);
  bool truncated = false;
  if (options.max_tokens > 0) {
    const auto special = std::ssize(with_special_tokens(tokenizer, {}, options.as_tokenizer_says));
    if (options.max_tokens <= special) {
      throw Error(
          fmt::format("a limit of {} tokens leaves none besides the {} special tokens", options.max_tokens, special),
          "increase --max-tokens");
    }
    const auto room = static_cast<size_t>(options.max_tokens - special);
    truncated = ids.size() > room;
    if (truncated) ids.resize(room);
  }
  if (options.backward) std::reverse(ids.begin(), ids.end());
  return {with_special_tokens(tokenizer, std::move(ids), options.as_tokenizer_says), truncated};
}

TextVectors embed_texts(Embeds& model, const Tokenizer& tokenizer, const std::vector<std::string>& texts,
                        const EmbedOptions& options, const EmbedProgress& progress) {
  check_embedding(options);
  const Pooling& pool = poolings().at(options.pooling).make;
  TextVectors result;
  std::vector<IdsToEmbed> encoded(texts.size());
  std::vector<ExampleCost> costs(texts.size());
  parallel_items(std::ssize(texts), [&](int64_t i) {
    const auto place = static_cast<size_t>(i);
    encoded[place] = ids_to_embed(tokenizer, texts[place], options);
    costs[place].source = std::ssize(encoded[place].ids);
    if (costs[place].source > 0) return;
    throw Error(fmt::format("text {} has no tokens", i + 1), "it is empty, and the tokenizer adds no special tokens");
  });
  for (const IdsToEmbed& each : encoded) result.truncated += each.truncated ? 1 : 0;
  const std::vector<std::vector<int64_t>> batches = plan_evaluation_batches(costs, options.batch_tokens);
  ops::MatrixPrecision precision(ops::precision_of(options.precision), /*weights_stay=*/true);
  std::mutex mutex;
  int64_t done = 0;
  parallel_items(std::ssize(batches), [&](int64_t b) {
    const std::vector<int64_t>& members = batches[static_cast<size_t>(b)];
    std::vector<int64_t> tokens;
    Ragged layout;
    for (const int64_t i : members) {
      const std::vector<int32_t>& ids = encoded[static_cast<size_t>(i)].ids;
      tokens.insert(tokens.end(), ids.begin(), ids.end());
      layout.append(std::ssize(ids));
    }
    const at::NoGradGuard no_graph;
    const ops::PrecisionGuard guard(precision);
    ForwardContext context;
    Tensor rows = pool(model.hidden(tokens, {}, layout, context), layout);
    if (options.normalize) rows = normalized_rows(rows);
    rows = rows.cpu();
    if (!at::isfinite(rows).all().item<bool>())
      throw Error("the model gives a text a vector that is not finite", kBrokenModel);
    const std::scoped_lock lock(mutex);
    if (!result.vectors.defined()) result.vectors = at::empty({std::ssize(texts), rows.size(1)}, rows.options());
    for (size_t r = 0; r < members.size(); ++r) result.vectors[members[r]].copy_(rows[static_cast<int64_t>(r)]);
    done += std::ssize(members);
    if (progress) progress(done);
  });
  return result;
}

}  // namespace plumb
