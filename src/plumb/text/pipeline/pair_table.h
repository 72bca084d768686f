// A hash table from pairs of small numbers to two numbers, for the inner loops of tokenizers.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace plumb::tokenization {

/// Filled once, then only read. Open addressing: a lookup usually touches one cache line.
class PairTable {
 public:
  struct Entry {
    uint64_t key = kEmpty;
    int32_t first = 0;
    int32_t second = 0;
  };

  /// Reserves space for `count` pairs.
  explicit PairTable(size_t count = 0)
      : entries_(std::bit_ceil(count * 2 + 2)), shift_(64 - std::countr_zero(entries_.size())) {}

  /// Replaces any entry with the same pair.
  void insert(uint32_t left, uint32_t right, int32_t first, int32_t second) {
    if ((used_ + 1) * 2 > entries_.size()) grow();
    Entry& entry = entries_[place(key_of(left, right))];
    if (entry.key == kEmpty) ++used_;
    entry = {key_of(left, right), first, second};
  }

  /// The entry of a pair, or null.
  [[nodiscard]] const Entry* find(uint32_t left, uint32_t right) const {
    const Entry& entry = entries_[place(key_of(left, right))];
    return entry.key == kEmpty ? nullptr : &entry;
  }

  [[nodiscard]] size_t size() const { return used_; }

 private:
  static constexpr uint64_t kEmpty = ~uint64_t{0};
  static uint64_t key_of(uint32_t left, uint32_t right) { return (uint64_t{left} << 32) | right; }

  [[nodiscard]] size_t place(uint64_t key) const {
    size_t at = (key * 0x9E3779B97F4A7C15U) >> shift_;
    while (entries_[at].key != kEmpty && entries_[at].key != key) at = (at + 1) & (entries_.size() - 1);
    return at;
  }
  void grow() {
    PairTable larger(entries_.size());
    for (const Entry& entry : entries_) {
      if (entry.key != kEmpty) larger.entries_[larger.place(entry.key)] = entry;
    }
    larger.used_ = used_;
    *this = std::move(larger);
  }

  std::vector<Entry> entries_;
  int shift_;
  size_t used_ = 0;
};

}  // namespace plumb::tokenization
