#include "plumb/base/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "plumb/base/contains.h"
#include "plumb/base/glossary.h"
#include "plumb/base/terminal.h"
#include "plumb/base/utf8.h"

namespace plumb {
namespace {

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

/// Insertions, deletions, substitutions and exchanges of neighbors that turn one word into the other, whatever the
/// case.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before, last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      const bool exchanged = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]);
      if (exchanged) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = std::exchange(last, row);
  }
  return last.back();
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string_view known = name_in_plumb(word);
  if (!known.empty() && contains(candidates, known)) return std::string(known);
  constexpr size_t kShortestBeginning = 3, kLongest = 200, kMost = 10'000;  // comparing takes quadratic time
  if (word.size() > kLongest) return {};
  std::string best;
  size_t best_distance = std::max<size_t>(2, word.size() / 2) + 1;
  for (const std::string& candidate : std::span(candidates).first(std::min(candidates.size(), kMost))) {
    if (candidate.size() > kLongest) continue;
    size_t distance = edit_distance(word, candidate);
    if (word.size() >= kShortestBeginning && candidate.starts_with(word)) distance = std::min<size_t>(distance, 1);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates, std::string otherwise) {
  const std::string guess = nearest(word, candidates);
  return guess.empty() ? otherwise : fmt::format("did you mean '{}'?", guess);
}

std::string join(const std::vector<std::string>& words, std::string_view separator) {
  return fmt::format("{}", fmt::join(words, separator));
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> pieces;
  while (true) {
    const size_t end = text.find(separator);
    pieces.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return pieces;
    text.remove_prefix(end + 1);
  }
}

std::string wrapped(std::string_view text, size_t width, const std::string& begin) {
  std::string lines;
  size_t column = width;
  for (const std::string& word : split(text, ' ')) {
    const size_t length = characters_in(word);
    if (column + 1 + length > width) {
      lines += (lines.empty() ? "" : "\n") + begin;
      column = begin.size();
    } else {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += length;
  }
  return lines + '\n';
}

std::string aligned(std::vector<std::vector<std::string>> rows, size_t left) {
  std::vector<size_t> widths;
  for (auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] = printable(row[i]);
      widths[i] = std::max(widths[i], characters_in(row[i]));
    }
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - characters_in(row[i]), ' ');
      line += (i > 0 ? "  " : "") + (i < left ? row[i] + space : space + row[i]);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }
  return text;
}

std::string with_thousands(int64_t value) {
  const std::string digits = std::to_string(std::abs(value));
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text.push_back(',');
    text.push_back(digits[i]);
  }
  if (value < 0) text.insert(text.begin(), '-');
  return text;
}

std::string duration(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{}:{:02} min", whole / 60, whole % 60);
  return fmt::format("{}:{:02} h", whole / 3600, whole / 60 % 60);
}

}  // namespace plumb
