// The embedded corpus: German–English sentence pairs written by a grammar of our own, so that a translation model can
// be trained, tested and demonstrated anywhere without downloading anything. The words are in lexicon.h, the grammar in
// clause.h, the kinds of sentences in sentences.h.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace plumb::corpus {

/// One sentence (or two linked ones) in German and its translation: raw text, cased, punctuated, not tokenized, UTF-8.
struct SentencePair {
  std::string source;
  std::string target;
};

/// The largest `count` that synthesize accepts; the grammar itself gives far more.
inline constexpr int64_t kMaximumPairs = 1'000'000;

/// `count` pairs, no German sentence twice. The same seed gives the same bytes on every machine, and a smaller count is
/// a prefix of a larger one. Throws Error for a count below 0 or above kMaximumPairs.
std::vector<SentencePair> synthesize(int64_t count, uint64_t seed);

/// The largest `count` of `synthesize_each`.
inline constexpr int64_t kMaximumStreamedPairs = 100'000'000;

/// The pairs of `synthesize` one after another, without holding them: 16 to 32 bytes per pair remember which sentences
/// there were. Throws Error for a count below 0 or above kMaximumStreamedPairs.
void synthesize_each(int64_t count, uint64_t seed, const std::function<void(SentencePair&&)>& take);

}  // namespace plumb::corpus
