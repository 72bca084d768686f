#include "plumb/report/svg_marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <utility>

#include "plumb/base/contains.h"

namespace plumb {
namespace {

/// The page's (web/report/src/palette.ts): Post-LN and Pre-LN have the first two; the eighth is for no group.
constexpr std::array<const char*, 13> kColors = {"#cf4a0a", "#1566c0", "#0b8a65", "#a8468f", "#b07a00",
                                                 "#2f9bc9", "#7c5a3c", "#5d6675", "#5b4bc4", "#8a9400",
                                                 "#d6336c", "#00727a", "#8f2a1a"};
}  // namespace

std::string xml_text(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '&')
      safe += "&amp;";
    else if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else if (c == '"')
      safe += "&quot;";
    else
      safe += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return safe;
}

std::string group_key(std::string group) {
  for (char& c : group) c = c == ' ' || c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return group;
}

size_t group_color(const std::string& group, const std::vector<std::string>& groups) {
  constexpr size_t kReserved = 2;  // no other group ever has these colors
  const auto place = static_cast<size_t>(std::find(groups.begin(), groups.end(), group_key(group)) - groups.begin());
  if (place == groups.size()) return 7;
  return place < kColors.size() ? place : kReserved + (place - kReserved) % (kColors.size() - kReserved);
}

std::string group_shade(size_t index, size_t k, size_t n) {
  const std::string color = kColors.at(index);
  if (n < 2) return color;
  const double position = 2 * static_cast<double>(k) / static_cast<double>(n - 1) - 1;
  const std::string other = position < 0 ? kSvgText : "#ffffff";
  std::string mixed = "#";
  for (const size_t i : {1, 3, 5}) {
    const auto channel = [&](const std::string& of) { return std::stoi(of.substr(i, 2), nullptr, 16); };
    mixed += fmt::format("{:02x}",
                         std::lround(channel(color) + (channel(other) - channel(color)) * 0.5 * std::abs(position)));
  }
  return mixed;
}

std::string svg_line(double x1, double y1, double x2, double y2, const std::string& stroke, double width) {
  return fmt::format("<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\" stroke=\"{}\" stroke-width=\"{}\"/>\n", x1, y1, x2, y2,
                     stroke, width);
}

std::string svg_text(double x, double y, const char* anchor, const std::string& text, const char* color, double turn) {
  const std::string turned = turn == 0 ? "" : fmt::format(" transform=\"rotate({:g} {:.1f} {:.1f})\"", turn, x, y);
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" fill=\"{}\"{}>{}</text>\n", x, y, anchor,
                     color, turned, xml_text(text));
}

std::string svg_marker(size_t shape, double x, double y, const std::string& color, bool hollow) {
  const double r = hollow ? 5 : 3.8;
  const std::string style = hollow ? fmt::format("fill=\"#ffffff\" stroke=\"{}\" stroke-width=\"2\"", color)
                                   : fmt::format("fill=\"{}\" stroke=\"#ffffff\" stroke-width=\"0.8\"", color);
  if (shape % 4 == 0) return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" {}/>\n", x, y, r, style);
  const std::array<std::vector<std::pair<double, double>>, 3> shapes = {{{{-1, -1}, {1, -1}, {1, 1}, {-1, 1}},
                                                                         {{0, -1.3}, {1.3, 0}, {0, 1.3}, {-1.3, 0}},
                                                                         {{0, -1.2}, {1.2, 1}, {-1.2, 1}}}};
  std::string corners;
  for (const auto& [dx, dy] : shapes[shape % 4 - 1]) corners += fmt::format("{:.1f},{:.1f} ", x + r * dx, y + r * dy);
  return fmt::format("<polygon points=\"{}\" {}/>\n", corners, style);
}

std::string svg_cross(double x, double y, const std::string& color) {
  return svg_line(x - 4, y - 4, x + 4, y + 4, color, 2) + svg_line(x - 4, y + 4, x + 4, y - 4, color, 2);
}

std::vector<std::string> groups_of(const Json& figures) {
  std::vector<std::string> groups = {"post-ln", "pre-ln"};
  for (const Json& figure : figures) {
    for (const Json& series : figure.at("series")) {
      const std::string group = group_key(series.value("group", series.value("name", "")));
      if (!contains(groups, group)) groups.push_back(group);
    }
  }
  return groups;
}

}  // namespace plumb
