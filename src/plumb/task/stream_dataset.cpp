#include "plumb/task/stream_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "plumb/base/error.h"

namespace plumb {

StreamDataset::StreamDataset(Split split, const Specials& specials, int64_t rows, const StreamCut& cut, bool backward)
    : split_(std::move(split)),
      specials_(specials),
      cut_(cut),
      tokens_(split_.target_tokens() + (split_.running_text() ? 0 : split_.size())),
      rows_(std::min(rows, std::max<int64_t>(tokens_, 1))),
      backward_(backward) {
  if (rows < 1) throw Error(fmt::format("a stream must have at least 1 row, not {}", rows));
  if (!split_.running_text()) require_special(specials.eos, "end of a line");
}

int64_t StreamDataset::begin_of_row(int64_t row) const {
  return row * (tokens_ / rows_) + std::min(row, tokens_ % rows_);
}

int64_t StreamDataset::begin_of_line(int64_t line) const {
  return split_.target(line).data() - split_.target(0).data() + (split_.running_text() ? 0 : line);
}

ExampleCost StreamDataset::cost(int64_t i) const { return {0, i < tokens_ / rows_ ? rows_ : tokens_ % rows_}; }

std::vector<int32_t> StreamDataset::read(int64_t begin, int64_t count) const {
  if (!backward_) return read_text(begin, count);
  std::vector<int32_t> ids = read_text(tokens_ - begin - count, count);
  std::reverse(ids.begin(), ids.end());
  return ids;
}

std::vector<int32_t> StreamDataset::read_text(int64_t begin, int64_t count) const {
  std::vector<int32_t> ids;
  if (count == 0) return ids;
  ids.reserve(static_cast<size_t>(count));
  int64_t line = 0;  // the last line that begins at or before `begin`
  for (int64_t after = split_.size(); after - line > 1;) {
    const int64_t middle = line + (after - line) / 2;
    (begin_of_line(middle) <= begin ? line : after) = middle;
  }
  for (int64_t skipped = begin - begin_of_line(line); std::ssize(ids) < count; ++line, skipped = 0) {
    const auto of_line = split_.target(line);
    const int64_t missing = count - std::ssize(ids);
    const int64_t taken = std::min(missing, std::max<int64_t>(std::ssize(of_line) - skipped, 0));
    const auto first = of_line.begin() + std::min(skipped, std::ssize(of_line));
    ids.insert(ids.end(), first, first + taken);
    if (taken < missing && !split_.running_text()) ids.push_back(specials_.eos);
  }
  return ids;
}

void StreamDataset::append(Batch& batch, int64_t begin, int64_t end) const {
  for (int64_t row = 0; row < rows_; ++row) {
    const int64_t first = begin_of_row(row) + begin;
    const int64_t count = std::max<int64_t>(std::min(begin_of_row(row) + end, begin_of_row(row + 1)) - first, 0);
    batch.target_layout.append(count);
    batch.examples.push_back(begin);
    if (count == 0) continue;
    const bool at_start = first == 0;
    const std::vector<int32_t> ids = read(at_start ? 0 : first - 1, at_start ? count : count + 1);
    if (at_start) batch.target_input.push_back(token_before_text(specials_));
    batch.target_input.insert(batch.target_input.end(), ids.begin(), ids.end() - 1);
    batch.labels.insert(batch.labels.end(), ids.begin() + (at_start ? 0 : 1), ids.end());
  }
}

Batch StreamDataset::batch(std::span<const int64_t> examples) const {
  Batch batch;
  for (const int64_t column : examples) require(column);
  for (size_t first = 0; first < examples.size();) {
    size_t after = first + 1;
    while (after < examples.size() && examples[after] == examples[after - 1] + 1) ++after;
    append(batch, examples[first], examples[after - 1] + 1);
    first = after;
  }
  return batch;
}

}  // namespace plumb
