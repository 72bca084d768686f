#include "plumb/metrics/ter_edits.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace plumb {
namespace {

constexpr int kLongestShift = 10;
constexpr int kFarthestShift = 50;
constexpr int kBeam = 25;
constexpr int kMostShiftsTried = 1000;
constexpr int kUnreached = std::numeric_limits<int>::max() / 2;

using NumberedWords = std::u32string;

// Which words correspond in the cheapest sequence of edits, and which are wrong.
struct EditAlignment {
  std::vector<int> hypothesis_position;  // of each word of the reference: the last word before or at it; -1: none
  std::vector<int> hypothesis_errors;    // number of wrong words before each position, and in all
  std::vector<int> reference_errors;
};

// Edit distances from a hypothesis to a reference, near the diagonal. The hypotheses to compare all have the same
// length.
class EditDistance {
 public:
  EditDistance(std::u32string_view hypothesis, std::u32string_view reference)
      : reference_(reference),
        rows_(static_cast<int>(hypothesis.size())),
        columns_(static_cast<int>(reference.size())),
        ratio_(rows_ > 0 ? static_cast<double>(columns_) / rows_ : 1),
        beam_(kBeam < ratio_ / 2 ? static_cast<int>(std::ceil(ratio_ / 2 + kBeam)) : kBeam),
        distances_(static_cast<size_t>(rows_ + 1) * width()) {
    for (int j = 0; j <= columns_; ++j) row(0)[j] = j;
    set(NumberedWords(hypothesis));
  }

  void set(NumberedWords hypothesis) {
    hypothesis_ = std::move(hypothesis);
    for (int i = 1; i <= rows_; ++i) fill(i, word(i), row(i - 1), row(i));
  }

  [[nodiscard]] const NumberedWords& hypothesis() const { return hypothesis_; }
  [[nodiscard]] int distance() const { return at(rows_, columns_); }

  // The distance of another hypothesis: rows before the first difference are the same.
  [[nodiscard]] int distance_of(const NumberedWords& other) const {
    const auto difference = std::mismatch(other.begin(), other.end(), hypothesis_.begin()).first - other.begin();
    const int same = static_cast<int>(difference);
    if (same == rows_) return distance();
    std::vector<int> before(distances_.begin() + same * static_cast<std::ptrdiff_t>(width()),
                            distances_.begin() + (same + 1) * static_cast<std::ptrdiff_t>(width()));
    std::vector<int> current(width());
    for (int i = same + 1; i <= rows_; ++i) {
      fill(i, other[static_cast<size_t>(i - 1)], before.data(), current.data());
      std::swap(before, current);
    }
    return before.back();
  }

  // Of equally cheap edits, matching or substituting is preferred, then deleting.
  [[nodiscard]] EditAlignment alignment() const {
    EditAlignment result{.hypothesis_position = std::vector<int>(static_cast<size_t>(columns_)),
                         .hypothesis_errors = std::vector<int>(static_cast<size_t>(rows_) + 1),
                         .reference_errors = std::vector<int>(static_cast<size_t>(columns_) + 1)};
    for (int i = rows_, j = columns_; i > 0 || j > 0;) {
      const bool wrong = i == 0 || j == 0 || word(i) != reference_[static_cast<size_t>(j - 1)];
      const bool paired = i > 0 && j > 0 && at(i - 1, j - 1) + (wrong ? 1 : 0) == at(i, j);
      const bool deleted = !paired && i > 0 && at(i - 1, j) + 1 == at(i, j);
      if (!deleted) {
        result.hypothesis_position[static_cast<size_t>(j - 1)] = i - 1;
        result.reference_errors[static_cast<size_t>(j)] = paired && !wrong ? 0 : 1;
        --j;
      }
      if (paired || deleted) {
        result.hypothesis_errors[static_cast<size_t>(i)] = paired && !wrong ? 0 : 1;
        --i;
      }
    }
    for (std::vector<int>* errors : {&result.hypothesis_errors, &result.reference_errors}) {
      for (size_t k = 1; k < errors->size(); ++k) (*errors)[k] += (*errors)[k - 1];
    }
    return result;
  }

 private:
  [[nodiscard]] size_t width() const { return static_cast<size_t>(columns_) + 1; }
  [[nodiscard]] int* row(int i) { return distances_.data() + static_cast<size_t>(i) * width(); }
  [[nodiscard]] int at(int i, int j) const {
    return distances_[static_cast<size_t>(i) * width() + static_cast<size_t>(j)];
  }
  [[nodiscard]] char32_t word(int i) const { return hypothesis_[static_cast<size_t>(i - 1)]; }

  void fill(int i, char32_t word, const int* before, int* current) const {
    const int diagonal = static_cast<int>(std::floor(i * ratio_));
    const int begin = std::max(0, diagonal - beam_);
    const int end = i == rows_ ? columns_ + 1 : std::min(columns_ + 1, diagonal + beam_);
    std::fill_n(current, width(), kUnreached);
    for (int j = begin; j < end; ++j) {
      int cheapest = before[j] + 1;
      if (j > 0) {
        const int pair = before[j - 1] + (word == reference_[static_cast<size_t>(j - 1)] ? 0 : 1);
        cheapest = std::min({cheapest, pair, current[j - 1] + 1});
      }
      current[j] = std::min(cheapest, kUnreached);
    }
  }

  NumberedWords hypothesis_;
  std::u32string_view reference_;
  int rows_;
  int columns_;
  double ratio_;
  int beam_;
  std::vector<int> distances_;  // (rows + 1, columns + 1)
};

// Moves the block [start, start + length) to before the word at `target`; a target within the block counts from the
// block's end.
NumberedWords shifted(NumberedWords words, int start, int length, int target) {
  const auto block = words.begin() + start;
  const auto block_end = block + length;
  if (target < start) {
    std::rotate(words.begin() + target, block, block_end);
  } else {
    const int end = target > start + length ? target : std::min(target + length, static_cast<int>(words.size()));
    std::rotate(block, block_end, words.begin() + end);
  }
  return words;
}

struct Shift {
  int gain = 0;  // edits saved
  int length = 0;
  int start = 0;
  int target = 0;

  // Prefers larger gains, then longer blocks, then starts and targets further left.
  [[nodiscard]] bool better_than(const Shift& other) const {
    return std::tuple(gain, length, -start, -target) >
           std::tuple(other.gain, other.length, -other.start, -other.target);
  }
};

// The best shift, and the number tried, including the `tried` before.
std::pair<Shift, int> best_shift(const EditDistance& current, std::u32string_view reference, int tried) {
  const NumberedWords& words = current.hypothesis();
  const int rows = static_cast<int>(words.size());
  const int columns = static_cast<int>(reference.size());
  const EditAlignment alignment = current.alignment();
  Shift best{.gain = std::numeric_limits<int>::min()};
  const auto try_to_place = [&](int start, int place, int length) {
    const auto& position = alignment.hypothesis_position;
    const auto wrong = [](const std::vector<int>& errors, int from, int count) {
      return errors[static_cast<size_t>(from) + static_cast<size_t>(count)] > errors[static_cast<size_t>(from)];
    };
    if (!wrong(alignment.hypothesis_errors, start, length) || !wrong(alignment.reference_errors, place, length)) return;
    const int aligned = position[static_cast<size_t>(place)];
    if (start <= aligned && aligned < start + length) return;
    int last_target = -1;
    for (int k = place - 1; k < place + length; ++k) {
      const int target = k < 0 ? 0 : position[static_cast<size_t>(k)] + 1;
      if (target == last_target) continue;
      last_target = target;
      const int gain = current.distance() - current.distance_of(shifted(words, start, length, target));
      const Shift shift{.gain = gain, .length = length, .start = start, .target = target};
      if (shift.better_than(best)) best = shift;
      ++tried;
    }
  };
  for (int start = 0; start < rows; ++start) {
    const int first = std::max(0, start - kFarthestShift);
    const int last = std::min(columns - 1, start + kFarthestShift);
    for (int place = first; place <= last; ++place) {
      const int longest = std::min({kLongestShift, rows - start, columns - place});
      for (int length = 1; length <= longest; ++length) {
        if (words[static_cast<size_t>(start + length - 1)] != reference[static_cast<size_t>(place + length - 1)]) break;
        try_to_place(start, place, length);
        if (tried >= kMostShiftsTried) return {best, tried};
      }
    }
  }
  return {best, tried};
}

}  // namespace

int64_t ter_edits(std::u32string_view hypothesis, std::u32string_view reference) {
  if (reference.empty()) return std::ssize(hypothesis);
  EditDistance current(hypothesis, reference);
  int64_t shifts = 0;
  for (int tried = 0;;) {
    Shift best;
    std::tie(best, tried) = best_shift(current, reference, tried);
    if (tried >= kMostShiftsTried || best.gain <= 0) return shifts + current.distance();
    current.set(shifted(current.hypothesis(), best.start, best.length, best.target));
    ++shifts;
  }
}

}  // namespace plumb
