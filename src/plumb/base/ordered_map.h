// The objects of a JSON document.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace plumb {

/// nlohmann::ordered_map, whose keys keep the order of their insertion, with an index once they are many: without it, a
/// document takes time quadratic in the keys of an object.
template <typename Key, typename T, typename Less = std::less<Key>,
          typename Allocator = std::allocator<std::pair<const Key, T>>>
class OrderedMap : public nlohmann::ordered_map<Key, T, Less, Allocator> {
  using Base = nlohmann::ordered_map<Key, T, Less, Allocator>;

 public:
  using Base::Base;
  using typename Base::const_iterator;
  using typename Base::iterator;
  using typename Base::size_type;
  using typename Base::value_type;

  iterator find(std::string_view key) { return this->begin() + position(key); }
  const_iterator find(std::string_view key) const { return this->begin() + position(key); }
  size_type count(std::string_view key) const { return find(key) == this->end() ? 0 : 1; }
  T& at(std::string_view key) {
    const auto place = find(key);
    if (place == this->end()) throw std::out_of_range("key not found");
    return place->second;
  }
  const T& at(std::string_view key) const { return const_cast<OrderedMap*>(this)->at(key); }
  T& operator[](std::string_view key) { return emplace(key, T{}).first->second; }
  const T& operator[](std::string_view key) const { return at(key); }

  std::pair<iterator, bool> emplace(std::string_view key, T&& value) {
    if (const auto place = find(key); place != this->end()) return {place, false};
    this->emplace_back(Key(key), std::move(value));
    if (this->size() > kFew) {
      for (size_t next = index_.size(); next < this->size(); ++next) index_.emplace(this->data()[next].first, next);
    }
    return {std::prev(this->end()), true};
  }
  std::pair<iterator, bool> insert(value_type&& value) { return emplace(value.first, std::move(value.second)); }
  std::pair<iterator, bool> insert(const value_type& value) { return emplace(value.first, T(value.second)); }
  template <std::input_iterator Input>
  void insert(Input first, Input last) {
    for (; first != last; ++first) insert(*first);
  }

  size_type erase(std::string_view key) {
    const auto place = find(key);
    if (place == this->end()) return 0;
    erase(place);
    return 1;
  }
  iterator erase(iterator place) { return erase(place, std::next(place)); }
  iterator erase(iterator first, iterator last) {
    index_.clear();
    return Base::erase(first, last);
  }
  void clear() {
    index_.clear();
    Base::clear();
  }

 private:
  static constexpr size_t kFew = 32;

  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view key) const { return std::hash<std::string_view>()(key); }
  };

  /// The place of a key among the entries; their number if there is none.
  std::ptrdiff_t position(std::string_view key) const {
    size_t place = 0;
    if (index_.size() == this->size() && place < this->size()) {
      const auto entry = index_.find(key);
      return static_cast<std::ptrdiff_t>(entry == index_.end() ? this->size() : entry->second);
    }
    while (place < this->size() && this->data()[place].first != key) ++place;
    return static_cast<std::ptrdiff_t>(place);
  }

  std::unordered_map<Key, size_t, Hash, std::equal_to<>> index_;  // of all entries, or empty
};

}  // namespace plumb
