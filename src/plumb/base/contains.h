// Whether a range has a value, and the element that has one.
#pragma once

#include <algorithm>
#include <functional>
#include <iterator>

namespace plumb {

/// Whether an element of `range` equals `value`.
template <typename Range, typename Value>
bool contains(const Range& range, const Value& value) {
  return std::find(std::begin(range), std::end(range), value) != std::end(range);
}

/// The first element of `range` whose `member` equals `value`; null without one.
template <typename Range, typename Member, typename Value>
auto* find_by(Range& range, Member member, const Value& value) {
  const auto entry = std::find_if(std::begin(range), std::end(range),
                                  [&](const auto& element) { return std::invoke(member, element) == value; });
  return entry == std::end(range) ? nullptr : &*entry;
}

/// The value of the first of these pairs that has the key; null without one.
template <typename Pairs, typename Key>
auto* find_value(Pairs& pairs, const Key& key) {
  auto* const entry = find_by(
      pairs, [](const auto& pair) -> const auto& { return pair.first; }, key);
  return entry == nullptr ? nullptr : &entry->second;
}

}  // namespace plumb
