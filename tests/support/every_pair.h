// Selections of test cases in place of whole products.
#pragma once

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace plumb::test {

/// A selection in which every two traits that a case of `all` has are those of one case. Cases with the most new pairs
/// come first. `traits_of(case)` are strings, of which no two aspects of a case may have the same.
template <typename Case, typename TraitsOf>
std::vector<Case> with_every_pair(const std::vector<Case>& all, TraitsOf&& traits_of) {
  using Pairs = std::set<std::pair<std::string, std::string>>;
  std::vector<Pairs> pairs;
  size_t wanted = 0;
  for (const Case& each : all) {
    std::vector<std::string> traits = traits_of(each);
    std::ranges::sort(traits);
    Pairs& own = pairs.emplace_back();
    for (size_t i = 0; i < traits.size(); ++i)
      for (size_t j = i + 1; j < traits.size(); ++j) own.emplace(traits[i], traits[j]);
    wanted = std::max(wanted, own.size());
  }
  std::vector<Case> selection;
  for (Pairs seen; wanted > 0; --wanted) {
    for (size_t i = 0; i < all.size(); ++i) {
      const auto is_new = [&](const auto& pair) { return !seen.contains(pair); };
      if (static_cast<size_t>(std::ranges::count_if(pairs[i], is_new)) < wanted) continue;
      selection.push_back(all[i]);
      seen.insert(pairs[i].begin(), pairs[i].end());
    }
  }
  return selection;
}

}  // namespace plumb::test
