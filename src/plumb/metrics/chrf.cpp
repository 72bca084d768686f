#include "plumb/metrics/chrf.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "plumb/base/error.h"
#include "plumb/metrics/ngrams.h"
#include "plumb/metrics/unicode.h"

namespace plumb {
namespace {

bool is_ascii_punctuation(char c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

// Words with one punctuation mark split off at the end, or else at the beginning, but never both: "(so)" → "(so", ")".
std::vector<std::string_view> words_and_marks(std::string_view text) {
  std::vector<std::string_view> words;
  for (const std::string_view word : split_words(text)) {
    const size_t last = word.size() - 1;
    const size_t cut = last == 0 ? 0 : is_ascii_punctuation(word[last]) ? last : is_ascii_punctuation(word[0]) ? 1 : 0;
    if (cut > 0) words.push_back(word.substr(0, cut));
    words.push_back(word.substr(cut));
  }
  return words;
}

// The n-grams of a sentence, by order: those of characters first, then those of words.
class OrderedNgrams {
 public:
  OrderedNgrams(std::string_view line, WordNumbers& numbers, const ChrfOptions& options) {
    const std::string text = options.lowercase ? to_lower(line) : std::string(line);
    characters_ = to_utf32(text);
    if (!options.whitespace) std::erase_if(characters_, is_space);
    for (int order = 1; order <= options.character_order; ++order) orders_.push_back(ngrams(characters_, order));
    if (options.word_order > 0) words_ = numbers(words_and_marks(text));
    for (int order = 1; order <= options.word_order; ++order) orders_.push_back(ngrams(words_, order));
  }
  OrderedNgrams(const OrderedNgrams&) = delete;  // the n-grams point into the sequences
  OrderedNgrams& operator=(const OrderedNgrams&) = delete;

  [[nodiscard]] const std::vector<Ngrams>& orders() const { return orders_; }

 private:
  std::u32string characters_;
  std::u32string words_;
  std::vector<Ngrams> orders_;
};

std::vector<int64_t> count_chrf(const OrderedNgrams& hypothesis, const OrderedNgrams& reference) {
  std::vector<int64_t> counts;
  for (size_t order = 0; order < hypothesis.orders().size(); ++order) {
    const Ngrams& proposed = hypothesis.orders()[order];
    const Ngrams& wanted = reference.orders()[order];
    // A sentence whose reference is too short for this order does not count toward precision either.
    counts.push_back(wanted.empty() ? 0 : static_cast<int64_t>(proposed.size()));
    counts.push_back(static_cast<int64_t>(wanted.size()));
    counts.push_back(count_common(proposed, wanted));
  }
  return counts;
}

double ratio(int64_t part, int64_t whole) { return static_cast<double>(part) / static_cast<double>(whole); }

double f_measure(double precision, double recall, double beta) {
  const double factor = beta * beta;
  return (1 + factor) * precision * recall / (factor * precision + recall);
}

double mean_of_f_scores(std::span<const int64_t> counts, double beta) {
  constexpr double kEpsilon = 1e-16;
  double sum = 0;
  for (size_t i = 0; i < counts.size(); i += 3) {
    const double precision = counts[i] > 0 ? ratio(counts[i + 2], counts[i]) : kEpsilon;
    const double recall = counts[i + 1] > 0 ? ratio(counts[i + 2], counts[i + 1]) : kEpsilon;
    sum += precision + recall > 0 ? f_measure(precision, recall, beta) : kEpsilon;
  }
  const size_t orders = counts.size() / 3;
  return 100 * sum / static_cast<double>(orders);
}

double f_score_of_means(std::span<const int64_t> counts, double beta) {
  double precision = 0;
  double recall = 0;
  int orders = 0;
  for (size_t i = 0; i < counts.size(); i += 3) {
    if (counts[i] == 0 || counts[i + 1] == 0) continue;
    precision += ratio(counts[i + 2], counts[i]);
    recall += ratio(counts[i + 2], counts[i + 1]);
    ++orders;
  }
  if (precision + recall == 0) return 0;
  return 100 * f_measure(precision / orders, recall / orders, beta);
}

double chrf_of_counts(std::span<const int64_t> counts, const ChrfOptions& options) {
  return options.epsilon_smoothing ? mean_of_f_scores(counts, options.beta) : f_score_of_means(counts, options.beta);
}

void require_valid_chrf(const ChrfOptions& options) {
  if (options.character_order < 0 || options.word_order < 0 || options.character_order + options.word_order == 0) {
    throw Error(
        fmt::format("chrF with character order {} and word order {}", options.character_order, options.word_order),
        "both orders must be at least 0, and one of them at least 1");
  }
  if (!(options.beta > 0)) throw Error(fmt::format("chrF with beta {}", options.beta), "beta must be above 0");
}

}  // namespace

CorpusMetric chrf_metric(const ChrfOptions& options) {
  require_valid_chrf(options);
  const auto count = [options](std::string_view hypothesis, std::span<const std::string_view> references,
                               std::span<int64_t> counts) {
    WordNumbers numbers;
    const OrderedNgrams proposed(hypothesis, numbers, options);
    double best_score = -1;
    for (const std::string_view reference : references) {
      const std::vector<int64_t> found = count_chrf(proposed, OrderedNgrams(reference, numbers, options));
      const double score = chrf_of_counts(found, options);
      if (score <= best_score) continue;
      best_score = score;
      std::copy(found.begin(), found.end(), counts.begin());
    }
  };
  return {.name = fmt::format("chrF{:g}", options.beta) + std::string(static_cast<size_t>(options.word_order), '+'),
          .settings = fmt::format("case:{}|eff:{}|nc:{}|nw:{}|space:{}", options.lowercase ? "lc" : "mixed",
                                  options.epsilon_smoothing ? "no" : "yes", options.character_order, options.word_order,
                                  options.whitespace ? "yes" : "no"),
          .width = 3 * static_cast<size_t>(options.character_order + options.word_order),
          .count = count,
          .score = [options](std::span<const int64_t> counts) { return chrf_of_counts(counts, options); }};
}

}  // namespace plumb
