#include "plumb/base/glob.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace plumb {

// Levenshtein's recurrence row by row: row[j] is the distance between the pattern's first i characters and the text's
// first j. A * absorbs any text at no cost, a ? one character.
size_t glob_distance(std::string_view pattern, std::string_view text) {
  std::vector<size_t> row(text.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (const char c : pattern) {
    const bool any = c == '*';
    size_t diagonal = row[0];
    if (!any) ++row[0];
    for (size_t j = 1; j <= text.size(); ++j) {
      const size_t above = row[j];
      if (any) {
        row[j] = std::min(above, row[j - 1]);
      } else {
        const size_t replaced = diagonal + (c == '?' || c == text[j - 1] ? 0 : 1);
        row[j] = std::min({above + 1, row[j - 1] + 1, replaced});
      }
      diagonal = above;
    }
  }
  return row.back();
}

}  // namespace plumb
