#include "plumb/decode/translate.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <mutex>
#include <numeric>

#include "plumb/base/error.h"
#include "plumb/base/parallel.h"
#include "plumb/base/progress.h"
#include "plumb/base/text.h"
#include "plumb/ops/precision.h"

namespace plumb {
namespace {

/// A sentence's cost in its batch: source tokens, including EOS, times beam width.
int64_t cost(const std::vector<int32_t>& source, const DecodeOptions& options) {
  return (static_cast<int64_t>(source.size()) + 1) * options.beam;
}

/// Batches of sentence indices, longest sentences first, so that the largest batches do not come last. All batches have
/// about the same cost, and each thread gets the same number of them, unless they would be very small.
std::vector<std::vector<size_t>> plan(const std::vector<std::vector<int32_t>>& sources, const DecodeOptions& options) {
  constexpr int64_t kSmall = 256;
  std::vector<size_t> order(sources.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return sources[a].size() > sources[b].size(); });
  int64_t total = 0;
  for (const std::vector<int32_t>& source : sources) total += cost(source, options);
  const int64_t threads = omp_get_max_threads();
  const int64_t largest = sources.empty() ? 0 : cost(sources[order.front()], options);
  // A batch may exceed its share by half a sentence.
  const int64_t room = std::max<int64_t>(1, options.batch_tokens - largest / 2);
  const int64_t rounds = std::max<int64_t>(1, (total + room * threads - 1) / (room * threads));
  const int64_t share = std::min(options.batch_tokens, std::max(kSmall, total / (rounds * threads) + 1));
  std::vector<std::vector<size_t>> batches;
  int64_t so_far = 0;
  int64_t last = -1;
  for (const size_t i : order) {
    const int64_t more = cost(sources[i], options);
    // Based on the cumulative sum, so that the rounding of batches does not add up to an extra batch.
    const int64_t place = (so_far + more / 2) / share;
    if (place > last) batches.emplace_back();
    last = place;
    so_far += more;
    batches.back().push_back(i);
  }
  return batches;
}

std::vector<std::string> texts(const Tokenizer& target, const std::vector<std::vector<int32_t>>& translations) {
  std::vector<std::string> lines;
  lines.reserve(translations.size());
  for (const std::vector<int32_t>& ids : translations) lines.push_back(target.decode(ids));
  return lines;
}

void require_vocabularies(const Translates& model, const Tokenizer& source, const Tokenizer& target, bool imported) {
  const int64_t more_source = model.source_vocabulary() - source.vocabulary();
  const int64_t more_target = model.vocabulary() - target.vocabulary();
  if (imported ? more_source >= 0 && more_target >= 0 : more_source == 0 && more_target == 0) return;
  throw Error(
      fmt::format("the model's vocabularies ({} and {}) do not match the tokenizers' ({} and {})",
                  model.source_vocabulary(), model.vocabulary(), source.vocabulary(), target.vocabulary()),
      imported ? "the tokenizers belong to another model" : "give the data directory that the model was trained on");
}

}  // namespace

Translates& translator_of(Model& model) {
  if (Translates* translator = model.translates()) return *translator;
  throw Error(fmt::format("a model of kind \"{}\" cannot translate", model.config().kind),
              "only an encoder-decoder can; `plumb generate` continues text, `plumb classify` labels it");
}

std::vector<std::vector<int32_t>> translate(Translates& model, const std::vector<std::vector<int32_t>>& sources_in,
                                            const DecodeOptions& options, const TranslateProgress& progress) {
  validate(options);
  std::vector<std::vector<int32_t>> sources = sources_in;
  const int64_t limit = std::min(options.longest_source, model.longest_source() - 1);  // besides EOS
  for (size_t i = 0; i < sources.size(); ++i) {
    const size_t length = sources[i].size();
    if (static_cast<int64_t>(length) <= limit) continue;
    warn(fmt::format("sentence {} has {} tokens; only the first {} are translated", i + 1,
                     with_thousands(static_cast<int64_t>(length)), with_thousands(limit)));
    sources[i].resize(static_cast<size_t>(limit));
  }
  // Each thread works on its own batch, so that none waits within a step. A single batch is parallelized within its
  // operations.
  std::vector<std::vector<int32_t>> results(sources.size());
  const std::vector<std::vector<size_t>> batches = plan(sources, options);
  ops::MatrixPrecision precision(ops::precision_of(options.precision), /*weights_stay=*/true);
  std::mutex mutex;
  int64_t done = 0;
  int64_t tokens = 0;
  const auto work = [&](const std::vector<size_t>& batch) {
    std::vector<std::vector<int32_t>> inputs;
    for (const size_t i : batch) inputs.push_back(sources[i]);
    const ops::PrecisionGuard guard(precision);
    std::vector<std::vector<int32_t>> outputs = beam_search(model, inputs, options);
    const std::scoped_lock lock(mutex);
    for (size_t j = 0; j < batch.size(); ++j) {
      tokens += inputs[j].empty() ? 0 : static_cast<int64_t>(outputs[j].size()) + 1;
      results[batch[j]] = std::move(outputs[j]);
    }
    done += static_cast<int64_t>(batch.size());
    if (progress) progress(done, tokens);
  };
  parallel_items(std::ssize(batches), [&](int64_t b) { work(batches[static_cast<size_t>(b)]); });
  return results;
}

std::vector<std::string> translate(Translates& model, const Tokenizer& source, const Tokenizer& target,
                                   const std::vector<std::string>& lines, const DecodeOptions& options,
                                   const TranslateProgress& progress) {
  require_vocabularies(model, source, target, options.imported);
  std::vector<std::vector<int32_t>> sources;
  sources.reserve(lines.size());
  for (const std::string& line : lines) sources.push_back(source.encode(line));
  DecodeOptions with_specials = options;
  with_specials.source = source.specials();
  with_specials.target = target.specials();
  if (options.imported) with_specials.target_pieces = target.vocabulary();
  return texts(target, translate(model, sources, with_specials, progress));
}

}  // namespace plumb
