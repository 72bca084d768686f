#include "plumb/metrics/chrf.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "plumb/base/error.h"
#include "plumb/metrics/corpus.h"
#include "plumb/metrics/ngrams.h"
#include "plumb/metrics/unicode.h"

namespace plumb {
namespace {

// n-grams of one order.
struct Counts {
  int64_t hypothesis = 0;
  int64_t reference = 0;
  int64_t common = 0;
};
using OrderCounts = std::vector<Counts>;  // character orders first, then word orders

bool is_ascii_punctuation(char c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

// Words with one punctuation mark cut off at the end or else at the beginning, never at both: "(so)" → "(so", ")".
std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (const std::string_view word : split_words(text)) {
    const size_t last = word.size() - 1;
    const size_t cut = last == 0 ? 0 : is_ascii_punctuation(word[last]) ? last : is_ascii_punctuation(word[0]) ? 1 : 0;
    if (cut > 0) words.push_back(word.substr(0, cut));
    words.push_back(word.substr(cut));
  }
  return words;
}

// A sentence as the two sequences whose n-grams count.
struct Sentence {
  std::u32string characters;
  std::u32string words;
};

OrderCounts count(const Sentence& hypothesis, const Sentence& reference, const ChrfOptions& options) {
  OrderCounts counts;
  const auto count_orders = [&](std::u32string_view hypothesis_sequence, std::u32string_view reference_sequence,
                                int highest) {
    for (int order = 1; order <= highest; ++order) {
      const Ngrams proposed = ngrams(hypothesis_sequence, order);
      const Ngrams wanted = ngrams(reference_sequence, order);
      // A sentence whose reference is too short for this order says nothing about precision either.
      counts.push_back({.hypothesis = wanted.empty() ? 0 : static_cast<int64_t>(proposed.size()),
                        .reference = static_cast<int64_t>(wanted.size()),
                        .common = count_common(proposed, wanted)});
    }
  };
  count_orders(hypothesis.characters, reference.characters, options.character_order);
  count_orders(hypothesis.words, reference.words, options.word_order);
  return counts;
}

double f_score(const OrderCounts& counts, double beta) {
  double precision = 0;
  double recall = 0;
  int orders = 0;
  for (const Counts& c : counts) {
    if (c.hypothesis == 0 || c.reference == 0) continue;
    precision += static_cast<double>(c.common) / static_cast<double>(c.hypothesis);
    recall += static_cast<double>(c.common) / static_cast<double>(c.reference);
    ++orders;
  }
  if (precision + recall == 0) return 0;
  precision /= orders;
  recall /= orders;
  const double factor = beta * beta;
  return 100 * (1 + factor) * precision * recall / (factor * precision + recall);
}

void require_valid(const ChrfOptions& options) {
  if (options.character_order < 0 || options.word_order < 0 || options.character_order + options.word_order == 0) {
    throw Error(
        fmt::format("chrF with character order {} and word order {}", options.character_order, options.word_order),
        "both orders must be at least 0, and one of them at least 1");
  }
  if (!(options.beta > 0)) throw Error(fmt::format("chrF with beta {}", options.beta), "beta must be above 0");
}

}  // namespace

ChrfScore corpus_chrf(const std::vector<std::string>& hypotheses,
                      const std::vector<std::vector<std::string>>& references, const ChrfOptions& options) {
  require_parallel(hypotheses, references);
  require_valid(options);
  WordNumbers numbers;
  const auto sentence = [&](const std::string& line) {
    const std::string text = options.lowercase ? to_lower(line) : line;
    Sentence result{.characters = to_utf32(text), .words = {}};
    std::erase_if(result.characters, is_space);
    if (options.word_order > 0) result.words = numbers(words_of(text));
    return result;
  };

  OrderCounts sums(static_cast<size_t>(options.character_order + options.word_order));
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    const Sentence hypothesis = sentence(hypotheses[i]);
    OrderCounts best;
    double best_score = -1;
    for (const std::vector<std::string>& reference : references) {
      OrderCounts counts = count(hypothesis, sentence(reference[i]), options);
      const double score = f_score(counts, options.beta);
      if (score <= best_score) continue;
      best_score = score;
      best = std::move(counts);
    }
    for (size_t order = 0; order < sums.size(); ++order) {
      sums[order].hypothesis += best[order].hypothesis;
      sums[order].reference += best[order].reference;
      sums[order].common += best[order].common;
    }
  }

  const auto plus_signs = static_cast<size_t>(options.word_order);
  return {.score = f_score(sums, options.beta),
          .name = fmt::format("chrF{:g}", options.beta) + std::string(plus_signs, '+'),
          .signature = metric_signature(
              references.size(), options.lowercase,
              fmt::format("eff:yes|nc:{}|nw:{}|space:no", options.character_order, options.word_order))};
}

}  // namespace plumb
