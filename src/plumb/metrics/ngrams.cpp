#include "plumb/metrics/ngrams.h"

#include <algorithm>
#include <iterator>

namespace plumb {

Ngrams ngrams(std::u32string_view sequence, int order) {
  const auto length = static_cast<size_t>(order);
  Ngrams all;
  if (sequence.size() < length) return all;
  all.reserve(sequence.size() - length + 1);
  for (size_t i = 0; i + length <= sequence.size(); ++i) all.push_back(sequence.substr(i, length));
  std::sort(all.begin(), all.end());
  return all;
}

int64_t count_common(const Ngrams& a, const Ngrams& b) {
  int64_t common = 0;
  for (auto i = a.begin(), j = b.begin(); i != a.end() && j != b.end();) {
    const int order = i->compare(*j);
    common += order == 0;
    i += order <= 0;
    j += order >= 0;
  }
  return common;
}

Ngrams merge_larger_counts(const Ngrams& a, const Ngrams& b) {
  Ngrams merged;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(merged));
  return merged;
}

}  // namespace plumb
