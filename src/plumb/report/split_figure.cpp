#include "plumb/report/split_figure.h"

#include <fmt/format.h>

#include <algorithm>

#include "plumb/base/contains.h"
#include "plumb/base/text.h"
#include "plumb/report/display_name.h"

namespace plumb {
namespace {

constexpr size_t kMostSchemes = 8;
constexpr size_t kOthersInPart = 5;

bool shows(const Figure& figure, const std::string& scheme) {
  return std::any_of(figure.series.begin(), figure.series.end(),
                     [&](const Series& series) { return series.group == scheme; });
}

/// The scheme that a note begins with, the longest if several match; "" if none.
std::string scheme_of_note(const std::string& note, const std::vector<std::string>& schemes) {
  std::string found;
  for (const std::string& scheme : schemes) {
    if (note.starts_with(display_name(scheme) + " ") && scheme.size() > found.size()) found = scheme;
  }
  return found;
}

}  // namespace

std::vector<Figure> split_by_scheme(const Figure& figure, const std::vector<std::string>& schemes) {
  std::vector<std::string> in_all;
  std::vector<std::string> others;
  for (const std::string& scheme : schemes) {
    if (shows(figure, scheme)) (scheme == "post-ln" || scheme == "pre-ln" ? in_all : others).push_back(scheme);
  }
  if (in_all.size() + others.size() <= kMostSchemes) return {figure};
  const size_t count = (others.size() + kOthersInPart - 1) / kOthersInPart;
  std::vector<Figure> parts;
  for (size_t k = 0; k < count; ++k) {
    // Sizes differ by at most one.
    const size_t begin = others.size() * k / count;
    const size_t end = others.size() * (k + 1) / count;
    std::vector<std::string> shown = in_all;
    std::vector<std::string> own;
    for (size_t i = begin; i < end; ++i) {
      shown.push_back(others[i]);
      own.push_back(display_name(others[i]));
    }
    const auto belongs = [&](const std::string& scheme) {
      return !contains(schemes, scheme) || contains(shown, scheme);
    };
    Figure part = figure;
    if (k > 0) part.id += fmt::format("_part{}", k + 1);
    part.part_of = figure.id;
    part.part = join(own);
    part.caption +=
        fmt::format(" The {} schemes are shown in {} parts{}; their axes may differ.", in_all.size() + others.size(),
                    count, in_all.empty() ? "" : ", each with Post-LN and Pre-LN for comparison");
    std::erase_if(part.series, [&](const Series& series) { return !belongs(series.group); });
    std::erase_if(part.notes, [&](const std::string& note) { return !belongs(scheme_of_note(note, schemes)); });
    parts.push_back(part);
  }
  return parts;
}

std::string part_with_scheme(const std::vector<Figure>& parts, const std::string& scheme) {
  for (const Figure& part : parts) {
    if (shows(part, scheme)) return part.id;
  }
  return parts.front().id;
}

}  // namespace plumb
