// A batch of sequences without padding: an activation is a matrix (tokens, features) plus these offsets.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace plumb {

/// Consecutive rows of a part of a batch that are also consecutive in the whole batch: rows begin, begin + 1, … of the
/// part, up to the next run, are rows origin, origin + 1, … of the whole.
struct RowRun {
  int64_t begin = 0;
  int64_t origin = 0;
  bool operator==(const RowRun&) const = default;
};

/// Where each sequence of a batch begins in the rows of an activation.
class Ragged {
 public:
  Ragged() : offsets_{0} {}
  explicit Ragged(const std::vector<int64_t>& lengths) : offsets_{0} {
    offsets_.reserve(lengths.size() + 1);
    for (const int64_t length : lengths) append(length);
  }

  void append(int64_t length) {
    offsets_.push_back(offsets_.back() + length);
    longest_ = std::max(longest_, length);
  }

  [[nodiscard]] int64_t sequences() const { return static_cast<int64_t>(offsets_.size()) - 1; }
  [[nodiscard]] int64_t tokens() const { return offsets_.back(); }
  [[nodiscard]] int64_t longest() const { return longest_; }
  [[nodiscard]] int64_t begin(int64_t sequence) const { return offsets_[static_cast<size_t>(sequence)]; }
  [[nodiscard]] int64_t length(int64_t sequence) const { return begin(sequence + 1) - begin(sequence); }
  [[nodiscard]] const std::vector<int64_t>& offsets() const { return offsets_; }  // (sequences + 1)

  /// The position of every token within its sequence, (tokens).
  [[nodiscard]] std::vector<int64_t> positions() const {
    std::vector<int64_t> ids;
    ids.reserve(static_cast<size_t>(tokens()));
    for (int64_t s = 0; s < sequences(); ++s) {
      for (int64_t p = 0; p < length(s); ++p) ids.push_back(p);
    }
    return ids;
  }

  /// Declares this batch part of a larger one: `origins` (sequences) holds the row of the whole at which each sequence
  /// begins. Computations that depend on a row's position, such as dropout masks, then use its position in the whole.
  void set_origins(std::vector<int64_t> origins) { origins_ = std::move(origins); }

  /// The row of the whole at which each sequence begins; if this is the whole, offsets(), which has one element more.
  [[nodiscard]] const std::vector<int64_t>& origins() const { return origins_.empty() ? offsets_ : origins_; }
  [[nodiscard]] int64_t origin(int64_t sequence) const { return origins()[static_cast<size_t>(sequence)]; }

  /// The rows as parts of the whole, in as few runs as possible; empty if each row has the same index in the whole.
  [[nodiscard]] std::vector<RowRun> runs() const {
    std::vector<RowRun> found;
    for (size_t s = 0; s < origins_.size(); ++s) {
      const RowRun run{offsets_[s], origins_[s]};
      if (found.empty() || run.origin - run.begin != found.back().origin - found.back().begin) found.push_back(run);
    }
    if (found.size() == 1 && found.front().begin == found.front().origin) found.clear();
    return found;
  }

  bool operator==(const Ragged&) const = default;

 private:
  std::vector<int64_t> offsets_;
  std::vector<int64_t> origins_;
  int64_t longest_ = 0;
};

}  // namespace plumb
