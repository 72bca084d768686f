#include "plumb/analysis/holm.h"

#include <algorithm>
#include <numeric>

namespace plumb {

std::vector<bool> holm_standing(size_t count, const std::function<bool(size_t i, size_t n)>& decided) {
  std::vector<bool> stands(count, false);
  for (size_t left = count, more = 1; left > 0 && more > 0; left -= more) {
    more = 0;
    for (size_t i = 0; i < count; ++i) {
      if (stands[i] || !decided(i, left)) continue;
      stands[i] = true;
      ++more;
    }
  }
  return stands;
}

std::vector<double> holm_adjusted(const std::vector<double>& p_values) {
  std::vector<size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p_values[a] < p_values[b]; });
  std::vector<double> adjusted(p_values.size());
  double largest = 0;
  for (size_t rank = 0; rank < order.size(); ++rank) {
    const auto left = static_cast<double>(order.size() - rank);
    largest = std::max(largest, std::min(1.0, left * p_values[order[rank]]));
    adjusted[order[rank]] = largest;
  }
  return adjusted;
}

}  // namespace plumb
