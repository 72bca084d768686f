// n-grams as sorted multisets. For two such lists, std::set_intersection keeps the smaller count of each n-gram and
// std::set_union the larger one, which is the clipping of BLEU and chrF, so no table of counts is needed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace plumb {

/// All n-grams of one order, in lexicographic order, with repetitions. The views point into the sequence.
using Ngrams = std::vector<std::u32string_view>;

/// The n-grams of `sequence` (characters, or words numbered by WordNumbers). `order` >= 1; none if the sequence is
/// shorter.
Ngrams ngrams(std::u32string_view sequence, int order);

/// Σ over n-grams of min(count in a, count in b).
int64_t count_common(const Ngrams& a, const Ngrams& b);

/// Each n-gram, max(count in a, count in b) times.
Ngrams merge_larger_counts(const Ngrams& a, const Ngrams& b);

/// Maps equal words to equal numbers, so that a sentence becomes a string of numbers.
class WordNumbers {
 public:
  template <typename Words>
  std::u32string operator()(const Words& words) {
    std::u32string numbers;
    for (const auto& word : words) {
      numbers += numbers_.try_emplace(std::string(word), static_cast<char32_t>(numbers_.size())).first->second;
    }
    return numbers;
  }

 private:
  std::unordered_map<std::string, char32_t> numbers_;
};

}  // namespace plumb
