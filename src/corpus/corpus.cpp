#include "corpus/corpus.h"

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "corpus/sentences.h"
#include "plumb/base/error.h"

namespace plumb::corpus {
namespace {

/// Longer sentences are not written; the corpus is for models that train in minutes.
constexpr int64_t kMaximumWords = 26;

struct WeightedKind {
  SentenceKind write;
  size_t weight;
};

const std::vector<WeightedKind>& sentence_kinds() {
  static const std::vector<WeightedKind> table = {
      {caption, 16},
      {caption_with_time, 14},
      {thing_at_spot, 5},
      {vehicle_scene, 4},
      {travel, 4},
      {passive_scene, 4},
      {existence, 3},
      {description, 5},
      {comparison, 3},
      {price, 2},
      {ability, 6},
      {denial, 4},
      {perfect_statement, 5},
      {frequency_statement, 4},
      {relative_subject, 6},
      {relative_object, 4},
      {reason, 6},
      {meanwhile, 5},
      {content_clause, 5},
      {condition, 4},
      {purpose, 5},
      {concession, 3},
      {yes_no_question, 3},
      {open_question, 4},
      {counting_question, 1},
      {request, 2},
      {shared_subject, 5},
      {two_sentences, 6},
      {same_object, 6},
      {after_that, 3},
      {before_that, 3},
      {two_scenes, 4},
  };
  return table;
}

SentenceKind choose_kind(Author& author) {
  static const size_t total = std::accumulate(sentence_kinds().begin(), sentence_kinds().end(), size_t{0},
                                              [](size_t sum, const WeightedKind& kind) { return sum + kind.weight; });
  size_t draw = author.below(total);
  for (const WeightedKind& kind : sentence_kinds()) {
    if (draw < kind.weight) return kind.write;
    draw -= kind.weight;
  }
  return caption;
}

int64_t count_words(const std::string& text) { return std::count(text.begin(), text.end(), ' ') + 1; }

}  // namespace

std::vector<SentencePair> synthesize(int64_t count, uint64_t seed) {
  if (count < 0 || count > kMaximumPairs) {
    throw Error("a synthetic corpus of " + std::to_string(count) + " pairs cannot be written",
                "ask for at most " + std::to_string(kMaximumPairs));
  }
  Author author(Random(seed, "synthetic corpus"));
  std::vector<SentencePair> pairs;
  pairs.reserve(static_cast<size_t>(count));
  std::unordered_set<std::string> seen;
  seen.reserve(static_cast<size_t>(count));
  while (static_cast<int64_t>(pairs.size()) < count) {
    SentencePair pair = choose_kind(author)(author);
    if (std::max(count_words(pair.source), count_words(pair.target)) > kMaximumWords) continue;
    if (seen.insert(pair.source).second) pairs.push_back(std::move(pair));
  }
  return pairs;
}

}  // namespace plumb::corpus
