// Tokens and their ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace plumb::tokenization {

/// A vocabulary. Ids need not be contiguous.
class Vocabulary {
 public:
  /// The largest id plus one must not exceed this.
  static constexpr int64_t kLargest = 10'000'000;

  Vocabulary() = default;
  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;

  /// A token that exists already gets the new id. Throws Error if the id is out of range.
  void add(std::string_view token, int64_t id);

  /// The id of a token, or -1.
  [[nodiscard]] int32_t find(std::string_view token) const {
    const auto entry = ids_.find(token);
    return entry == ids_.end() ? -1 : entry->second;
  }
  /// The token of an id, or null.
  [[nodiscard]] const std::string* token(int32_t id) const {
    return id >= 0 && static_cast<size_t>(id) < tokens_.size() ? tokens_[id] : nullptr;
  }
  /// The number of tokens, and the largest id plus one.
  [[nodiscard]] size_t size() const { return ids_.size(); }
  [[nodiscard]] int64_t limit() const { return static_cast<int64_t>(tokens_.size()); }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> ids_;
  std::vector<const std::string*> tokens_;  // by id: keys of ids_, whose addresses are stable
};

}  // namespace plumb::tokenization
