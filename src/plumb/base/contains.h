// Whether a range has a value.
#pragma once

#include <algorithm>
#include <iterator>

namespace plumb {

/// Whether an element of `range` equals `value`.
template <typename Range, typename Value>
bool contains(const Range& range, const Value& value) {
  return std::find(std::begin(range), std::end(range), value) != std::end(range);
}

}  // namespace plumb
