#include "corpus/corpus.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "corpus/sentences.h"
#include "plumb/base/error.h"
#include "plumb/base/random.h"

namespace plumb::corpus {
namespace {

/// Longer sentences are discarded: the corpus is for models that train in minutes.
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

/// A set of 64-bit numbers with open addressing and a fixed capacity of `most`.
class NumberSet {
 public:
  explicit NumberSet(int64_t most) : places_(std::bit_ceil(2 * static_cast<uint64_t>(most) + 1)) {}
  /// Returns false if the number was present already.
  bool insert(uint64_t number) {
    if (number == 0) number = 1;  // 0 marks a free slot
    for (uint64_t place = number;; ++place) {
      uint64_t& found = places_[place & (places_.size() - 1)];
      if (found == number) return false;
      if (found != 0) continue;
      found = number;
      return true;
    }
  }

 private:
  std::vector<uint64_t> places_;
};

void check_count(int64_t count, int64_t most) {
  if (count >= 0 && count <= most) return;
  throw Error("a synthetic corpus of " + std::to_string(count) + " pairs cannot be written",
              "ask for at most " + std::to_string(most));
}

}  // namespace

void synthesize_each(int64_t count, uint64_t seed, const std::function<void(SentencePair&&)>& take) {
  check_count(count, kMaximumStreamedPairs);
  Author author(Random(seed, "synthetic corpus"));
  NumberSet seen(count);  // hashes of the German sentences; a collision counts as a repetition
  for (int64_t made = 0; made < count;) {
    SentencePair pair = choose_kind(author)(author);
    if (std::max(count_words(pair.source), count_words(pair.target)) > kMaximumWords) continue;
    if (!seen.insert(stream_of(pair.source))) continue;
    take(std::move(pair));
    ++made;
  }
}

std::vector<SentencePair> synthesize(int64_t count, uint64_t seed) {
  check_count(count, kMaximumPairs);
  std::vector<SentencePair> pairs;
  pairs.reserve(static_cast<size_t>(count));
  synthesize_each(count, seed, [&](SentencePair&& pair) { pairs.push_back(std::move(pair)); });
  return pairs;
}

}  // namespace plumb::corpus
