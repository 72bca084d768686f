#include "corpus/corpus.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "corpus/author.h"
#include "plumb/base/error.h"
#include "plumb/base/random.h"

namespace plumb::corpus {
namespace {

/// Longer sentences are discarded: the corpus is for models that train in minutes.
constexpr int64_t kMaximumWords = 26;

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
  Random random(seed, "synthetic corpus");
  NumberSet seen(count);  // hashes of the German sentences; a collision counts as a repetition
  for (int64_t made = 0; made < count;) {
    Words pair = write_sentence(random);
    if (std::max(count_words(pair.german), count_words(pair.english)) > kMaximumWords) continue;
    if (!seen.insert(stream_of(pair.german))) continue;
    take({std::move(pair.german), std::move(pair.english)});
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
