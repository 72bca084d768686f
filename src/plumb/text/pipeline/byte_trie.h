// A trie over bytes.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "plumb/base/error.h"
#include "plumb/text/pipeline/pair_table.h"

namespace plumb::tokenization {

/// Finds all strings of a set that are prefixes of a text. Filled once, then only read.
class ByteTrie {
 public:
  ByteTrie() { roots_.fill(0); }

  /// `value` must be at least 0; it replaces that of an equal string. Empty strings are ignored. Throws Error if
  /// the string has more than 1,024 bytes: every place of a text may be compared with all of it.
  void insert(std::string_view text, int32_t value) {
    if (text.empty()) return;
    constexpr size_t kLongest = 1024;
    if (text.size() > kLongest)
      throw Error(fmt::format("a token has {} bytes; at most {} are supported", text.size(), kLongest));
    uint32_t& root = roots_[static_cast<unsigned char>(text[0])];
    if (root == 0) root = new_node();
    uint32_t node = root;
    for (const char c : text.substr(1)) {
      const auto byte = static_cast<unsigned char>(c);
      const auto* child = children_.find(node, byte);
      if (child != nullptr) {
        node = static_cast<uint32_t>(child->first);
      } else {
        const uint32_t made = new_node();
        children_.insert(node, byte, static_cast<int32_t>(made), 0);
        node = made;
      }
    }
    values_[node] = value;
  }

  /// Calls `take(length, value)` for every string of the set that is a prefix of `text`, from short to long.
  template <typename Take>
  void for_each_prefix(std::string_view text, const Take& take) const {
    if (text.empty()) return;
    uint32_t node = roots_[static_cast<unsigned char>(text[0])];
    for (size_t length = 1; node != 0; ++length) {
      if (values_[node] >= 0) take(length, values_[node]);
      if (length == text.size()) return;
      const auto* child = children_.find(node, static_cast<unsigned char>(text[length]));
      node = child == nullptr ? 0 : static_cast<uint32_t>(child->first);
    }
  }

  [[nodiscard]] bool begins_with(char c) const { return roots_[static_cast<unsigned char>(c)] != 0; }
  [[nodiscard]] bool empty() const { return values_.size() == 1; }

 private:
  uint32_t new_node() {
    values_.push_back(-1);
    return static_cast<uint32_t>(values_.size() - 1);
  }

  std::array<uint32_t, 256> roots_;
  PairTable children_;
  std::vector<int32_t> values_ = {-1};  // by node; node 0 means none
};

}  // namespace plumb::tokenization
