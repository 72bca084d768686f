// What figures as SVG consist of: lines, texts and markers, in the colors of the page.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "plumb/base/json.h"

namespace plumb {

inline constexpr const char* kSvgText = "#1d2430";
inline constexpr const char* kSvgMuted = "#586273";
inline constexpr const char* kSvgAxis = "#aab2bf";
inline constexpr const char* kSvgGrid = "#e9ecf1";

/// Text with the characters that XML gives a meaning escaped.
std::string xml_text(std::string_view text);

/// A path between two points.
std::string svg_line(double x1, double y1, double x2, double y2, const std::string& stroke, double width = 1);
/// `anchor`: "start", "middle" or "end". `turn`: clockwise, in degrees.
std::string svg_text(double x, double y, const char* anchor, const std::string& text, const char* color = kSvgMuted,
                     double turn = 0);
/// A marker of one of four shapes; a hollow one is a larger outline.
std::string svg_marker(size_t shape, double x, double y, const std::string& color, bool hollow = false);
/// A cross where the values of a line end before its places do.
std::string svg_cross(double x, double y, const std::string& color);

/// "post-ln" for "Post-LN".
std::string group_key(std::string group);
/// The groups of the series of these figures, as keys: Post-LN and Pre-LN, whose colors are fixed, then the others in
/// the order in which they appear.
std::vector<std::string> groups_of(const Json& figures);
/// The index of a group's color; that of gray, if it is not among the groups.
size_t group_color(const std::string& group, const std::vector<std::string>& groups);
/// The color of this index, of the k-th of n series of one group: from strong to faint.
std::string group_shade(size_t index, size_t k = 0, size_t n = 1);

}  // namespace plumb
