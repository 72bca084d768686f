#include "plumb/judge/log_lines.h"

#include <fmt/format.h>

#include <algorithm>

#include "plumb/base/error.h"
#include "plumb/judge/log_table.h"

namespace plumb {
namespace {

constexpr std::string_view kBlanks = " \t\r";

/// The text with one blank for each run of them, and none at its ends.
std::string with_single_blanks(std::string_view text) {
  std::string single;
  for (const char c : text) {
    if (kBlanks.find(c) == std::string_view::npos)
      single += c;
    else if (!single.empty() && single.back() != ' ')
      single += ' ';
  }
  if (!single.empty() && single.back() == ' ') single.pop_back();
  return single;
}

}  // namespace

LinePattern::LinePattern(const std::string& pattern) {
  const std::string text = with_single_blanks(pattern);
  size_t at = 0;
  for (size_t open = text.find('{'); open != std::string::npos; open = text.find('{', at)) {
    const size_t close = text.find('}', open);
    if (close == std::string::npos) throw UsageError(fmt::format("--line '{}': a brace is not closed", pattern));
    if (open == at && !parts_.empty())
      throw UsageError(fmt::format("--line '{}': nothing stands between two values", pattern));
    parts_.push_back({text.substr(at, open - at), text.substr(open + 1, close - open - 1)});
    at = close + 1;
  }
  after_ = text.substr(at);
  if (std::all_of(parts_.begin(), parts_.end(), [](const Part& part) { return part.name.empty(); }))
    throw UsageError(fmt::format("--line '{}': names no value", pattern),
                     "such as 'step {step}: train loss {train_loss}, val loss {val_loss}'");
}

std::optional<Row> LinePattern::match(std::string_view line) const {
  const std::string text = with_single_blanks(line);
  size_t at = text.find(parts_.front().before);
  if (at == std::string::npos) return {};
  at += parts_.front().before.size();
  Row row;
  for (size_t i = 0; i < parts_.size(); ++i) {
    const std::string& next = i + 1 < parts_.size() ? parts_[i + 1].before : after_;
    const size_t end = next.empty() ? std::min(text.find_first_of(" ,", at), text.size()) : text.find(next, at);
    if (end == std::string::npos) return {};
    const std::string value = text.substr(at, end - at);
    if (!parts_[i].name.empty() && !is_missing(value)) row.emplace_back(parts_[i].name, value);
    at = end + next.size();
  }
  return row;
}

}  // namespace plumb
