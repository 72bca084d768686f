#include "plumb/report/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "plumb/base/contains.h"
#include "plumb/base/utf8.h"
#include "plumb/report/svg_axis.h"
#include "plumb/report/svg_marks.h"

namespace plumb {
namespace {

constexpr std::array<const char*, 3> kDashes = {"6 4", "2 3", "9 3 2 3"};
constexpr double kWidth = 600, kPlotHeight = 300, kRow = 18;
constexpr size_t kMostMarked = 30;  // lines of more points have no markers

double width_of(std::string_view text) {
  constexpr double kLetter = 7;  // on average, at 12 pixels
  return kLetter * static_cast<double>(characters_in(text));
}

class Drawing {
 public:
  Drawing(const Json& figure, const std::vector<std::string>& groups);
  [[nodiscard]] std::string svg() const;

 private:
  /// A point that the axes have a place for, in pixels.
  struct Place {
    size_t index;  // in its series
    double x;
    std::optional<double> y, low, high;
  };
  struct Curve {
    std::string name, color, style, dash;  // dash: "" if solid
    size_t shape = 0;
    std::vector<Place> places;
    std::vector<size_t> hollow;
    bool ended = false, companion = false;
    size_t length = 0;
  };

  void read_categories();
  void read_axes();
  void read_curves(const std::vector<std::string>& groups);
  [[nodiscard]] std::string text_of(const char* key) const { return figure_.value(key, ""); }
  [[nodiscard]] static std::optional<double> number(const Json& list, size_t i) {
    return i < list.size() && list[i].is_number() ? std::optional(list[i].get<double>()) : std::nullopt;
  }
  static bool ends(const Json& y) {
    return std::any_of(y.begin(), y.end(), [](const Json& v) { return !v.is_null(); }) && y.back().is_null();
  }
  [[nodiscard]] std::string legend_name(const Json& series) const;
  [[nodiscard]] std::optional<double> vertical(std::optional<double> value) const {
    const std::optional<double> share = value ? y_->at(*value) : std::nullopt;
    return share ? std::optional(top_ + (1 - *share) * kPlotHeight) : std::nullopt;
  }
  [[nodiscard]] double right() const { return kWidth - 20; }
  [[nodiscard]] double bottom() const { return top_ + kPlotHeight; }
  [[nodiscard]] std::string legend() const;
  [[nodiscard]] std::string swatch(const Curve& curve, double x, double y) const;
  [[nodiscard]] std::string axes() const;
  [[nodiscard]] std::string curve(const Curve& one) const;
  [[nodiscard]] std::string bars(const Curve& one, size_t k) const;
  [[nodiscard]] static std::string whiskers(const Place& place, double x, const std::string& color);

  const Json& figure_;
  std::string kind_;
  std::vector<std::string> categories_;       // empty if x are numbers
  std::vector<std::string> category_colors_;  // of a single series of bars that are named after groups
  std::optional<SvgAxis> x_, y_;
  std::vector<Tick> x_ticks_, y_ticks_;
  std::vector<Curve> curves_;
  std::vector<std::pair<double, double>> keys_;  // of the legend: where each curve's is
  double left_ = 0, top_ = 8, below_ = 0;        // of the plot
};

Drawing::Drawing(const Json& figure, const std::vector<std::string>& groups)
    : figure_(figure), kind_(figure.value("kind", "line")) {
  read_categories();
  read_axes();
  double x = 0;
  if (figure.at("series").size() > 1 || kind_ != "bar") {
    for (const Json& series : figure.at("series")) {
      const double width = 52 + width_of(legend_name(series));
      const bool apart = !series.value("companion", false);
      if (apart && x > 0 && x + width > kWidth) x = 0, top_ += kRow;
      keys_.emplace_back(x, top_);
      if (apart) x += width;
    }
    top_ += kRow + 8;
  }
  read_curves(groups);
}

/// "Post-LN (diverged)"
std::string Drawing::legend_name(const Json& series) const {
  const Json& y = series.at("y");
  const std::string name = series.value("name", ""), ended = text_of("ended");
  if (std::none_of(y.begin(), y.end(), [&](const Json& v) { return v.is_number() && y_->at(v.get<double>()); }))
    return name + " (no finite value)";
  return kind_ == "line" && ends(y) ? fmt::format("{} ({})", name, ended.empty() ? "diverged" : ended) : name;
}

void Drawing::read_categories() {
  bool named = kind_ == "bar";
  for (const Json& series : figure_.at("series")) {
    for (const Json& x : series.at("x")) named |= x.is_string();
  }
  for (const Json& series : figure_.at("series")) {
    if (!named) break;
    for (const Json& x : series.at("x")) {
      const std::string name = x.is_string() ? x.get<std::string>() : x.dump();
      if (!contains(categories_, name)) categories_.push_back(name);
    }
  }
}

void Drawing::read_axes() {
  std::vector<double> xs, ys, others;  // others: of lines that do not end early
  for (const Json& series : figure_.at("series")) {
    for (const Json& x : series.at("x")) {
      if (x.is_number()) xs.push_back(x.get<double>());
    }
    for (const char* key : {"y", "low", "high"}) {
      for (const Json& y : series.value(key, Json::array())) {
        if (!y.is_number()) continue;
        ys.push_back(y.get<double>());
        if (kind_ != "line" || !ends(series.at("y"))) others.push_back(y.get<double>());
      }
    }
  }
  // A curve that ended far above all others leaves the chart, rather than squeeze them.
  if (!others.empty() && others.size() < ys.size()) {
    const auto [least, most] = std::minmax_element(others.begin(), others.end());
    const double highest = *std::max_element(ys.begin(), ys.end());
    if (*most > *least && highest - *least > 4 * (*most - *least)) {
      const double limit = *most + (*most - *least) / 4;
      for (double& y : ys) y = std::min(y, limit);
    }
  }
  const bool from_zero = kind_ == "bar" || kind_ == "density";
  x_ = categories_.empty() ? SvgAxis(figure_.at("x"), xs, false) : SvgAxis(categories_.size());
  y_ = SvgAxis(figure_.at("y"), ys, from_zero);
  y_ticks_ = y_->ticks(6);
  double widest = 0;
  for (const Tick& tick : y_ticks_) widest = std::max(widest, width_of(tick.label));
  left_ = 14 + widest + (figure_.at("y").value("label", "").empty() ? 0 : 20);
  below_ = 26;
  if (categories_.empty()) {
    x_ticks_ = x_->ticks(7);
  } else {
    double longest = 0;
    for (const std::string& name : categories_) longest = std::max(longest, width_of(name));
    if (longest > (right() - left_) / static_cast<double>(categories_.size())) below_ += 0.6 * longest;
  }
}

void Drawing::read_curves(const std::vector<std::string>& groups) {
  const Json& all = figure_.at("series");
  const auto look = [&](const Json& series) {
    return std::pair(group_color(series.value("group", series.value("name", "")), groups),
                     series.value("style", "solid"));
  };
  std::map<std::pair<size_t, std::string>, size_t> sizes, seen;
  for (const Json& series : all) ++sizes[look(series)];
  for (const Json& series : all) {
    const auto [color, style] = look(series);
    const size_t k = seen[{color, style}]++;
    Curve one{legend_name(series), group_shade(color, k, sizes[{color, style}]), style, ""};
    if (style == "dashed") one.dash = kDashes[k % kDashes.size()];
    one.shape = color + k;
    one.length = series.at("y").size();
    one.hollow = series.value("hollow", std::vector<size_t>());
    one.companion = series.value("companion", false);
    one.ended = kind_ == "line" && ends(series.at("y"));
    const Json low = series.value("low", Json::array()), high = series.value("high", Json::array());
    for (size_t i = 0; i < one.length; ++i) {
      const Json& x = series.at("x").at(i);
      std::optional<double> share;
      if (categories_.empty()) {
        share = x.is_number() ? x_->at(x.get<double>()) : std::nullopt;
      } else {
        const auto found =
            std::find(categories_.begin(), categories_.end(), x.is_string() ? x.get<std::string>() : x.dump());
        share = x_->at(static_cast<double>(found - categories_.begin()));
      }
      if (!share) continue;
      one.places.push_back({i, left_ + *share * (right() - left_), vertical(number(series.at("y"), i)),
                            vertical(number(low, i)), vertical(number(high, i))});
    }
    curves_.push_back(std::move(one));
  }
  const auto known = [&](const std::string& name) { return contains(groups, group_key(name)); };
  if (kind_ == "bar" && all.size() == 1 && std::any_of(categories_.begin(), categories_.end(), known)) {
    for (const std::string& name : categories_) category_colors_.push_back(group_shade(group_color(name, groups)));
  }
}

std::string Drawing::whiskers(const Place& place, double x, const std::string& color) {
  if (!place.low || !place.high) return "";
  return svg_line(x, *place.low, x, *place.high, color, 1.2) +
         svg_line(x - 4, *place.low, x + 4, *place.low, color, 1.2) +
         svg_line(x - 4, *place.high, x + 4, *place.high, color, 1.2);
}

std::string Drawing::bars(const Curve& one, size_t k) const {
  const double slot = (right() - left_) / static_cast<double>(categories_.size());
  const auto count = static_cast<double>(curves_.size());
  const double width = std::min(0.72 * slot / count, 54.0);
  const double zero = std::clamp(vertical(0).value_or(bottom()), top_, bottom());
  std::string text;
  for (const Place& place : one.places) {
    if (!place.y) continue;
    const double middle = place.x + (static_cast<double>(k) - (count - 1) / 2) * width;
    const std::string& color =
        category_colors_.empty() ? one.color : category_colors_[static_cast<size_t>((place.x - left_) / slot)];
    text +=
        fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\" opacity=\"{}\"/>\n",
                    middle - 0.45 * width, std::min(*place.y, zero), 0.9 * width, std::abs(*place.y - zero), color,
                    one.style == "dashed" ? 0.55 : 1);
    text += whiskers(place, middle, kSvgText);
  }
  return text;
}

std::string Drawing::curve(const Curve& one) const {
  const bool density = kind_ == "density" && one.style == "solid";
  const bool points = one.style == "points" || (kind_ == "scatter" && one.style == "solid");
  const bool marked =
      points || (kind_ != "density" && one.length < kMostMarked && (one.style == "solid" || !one.hollow.empty()));
  std::string path, upper, lower, bands, markers;
  const auto end_band = [&] {
    if (!upper.empty())
      bands += fmt::format("<path d=\"M{}L{}Z\" fill=\"{}\" opacity=\"0.16\"/>\n", upper.substr(1), lower.substr(1),
                           one.color);
    upper = lower = "";
  };
  const Place* last = nullptr;
  bool pen = false;
  for (size_t i = 0; i < one.places.size(); ++i) {
    const Place& place = one.places[i];
    if (place.low && place.high && !points) {
      upper += fmt::format("L{:.1f} {:.1f}", place.x, *place.high);
      lower = fmt::format("L{:.1f} {:.1f}", place.x, *place.low) + lower;
    } else {
      end_band();
    }
    if (!place.y) {
      pen = false;
      continue;
    }
    const bool alone = !pen && (i + 1 == one.places.size() || !one.places[i + 1].y);  // no line reaches it
    path += fmt::format("{}{:.1f} {:.1f}", pen ? "L" : "M", place.x, *place.y);
    pen = true;
    last = &place;
    const bool hollow = contains(one.hollow, place.index);
    if (points) markers += whiskers(place, place.x, one.color);
    if (marked || alone) markers += svg_marker(one.shape, place.x, *place.y, one.color, hollow);
  }
  end_band();
  if (last == nullptr) return bands;
  if (density)
    bands += fmt::format("<path d=\"{0}L{1:.1f} {2:.1f}L{3:.1f} {2:.1f}Z\" fill=\"{4}\" opacity=\"0.15\"/>\n", path,
                         last->x, bottom(), one.places.front().x, one.color);
  if (points) return bands + markers;
  const std::string dash = one.dash.empty() ? "" : fmt::format(" stroke-dasharray=\"{}\"", one.dash);
  return bands +
         fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\" stroke-linejoin=\"round\"{}/>\n",
                     path, one.color, dash) +
         markers + (one.ended ? svg_cross(last->x, *last->y, one.color) : "");
}

std::string Drawing::swatch(const Curve& one, double x, double y) const {
  if (kind_ == "bar")
    return fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"11\" height=\"11\" fill=\"{}\" opacity=\"{}\"/>\n",
                       x + 12, y - 5.5, one.color, one.style == "dashed" ? 0.55 : 1);
  const bool points = one.style == "points" || (kind_ == "scatter" && one.style == "solid");
  const std::string dash = one.dash.empty() ? "" : fmt::format(" stroke-dasharray=\"{}\"", one.dash);
  std::string text;
  if (!points)
    text = fmt::format("<path d=\"M{:.1f} {:.1f}H{:.1f}\" stroke=\"{}\" stroke-width=\"2\"{}/>\n", x + 2, y, x + 28,
                       one.color, dash);
  if (points || (kind_ == "line" && one.style == "solid" && one.length < kMostMarked))
    text += svg_marker(one.shape, x + 15, y, one.color);
  return text;
}

std::string Drawing::legend() const {
  std::string text;
  for (size_t i = 0; i < keys_.size(); ++i) {
    const auto [x, y] = keys_[i];
    const Curve& one = curves_[i];
    if (one.companion) continue;
    text += swatch(one, x, y + 5) + svg_text(x + 34, y + 9, "start", one.name, kSvgText);
  }
  return text;
}

std::string Drawing::axes() const {
  std::string text;
  for (const Tick& tick : y_ticks_) {
    const double y = top_ + (1 - tick.at) * kPlotHeight;
    if (!tick.label.empty())
      text += svg_line(left_, y, right(), y, kSvgGrid) + svg_text(left_ - 8, y + 4, "end", tick.label);
    text += svg_line(left_ - (tick.label.empty() ? 3 : 5), y, left_, y, kSvgAxis);
  }
  for (const Tick& tick : x_ticks_) {
    const double x = left_ + tick.at * (right() - left_);
    text += svg_line(x, bottom(), x, bottom() + (tick.label.empty() ? 3 : 5), kSvgAxis);
    if (!tick.label.empty()) text += svg_text(x, bottom() + 19, "middle", tick.label);
  }
  for (size_t i = 0; i < categories_.size(); ++i) {
    const double x = left_ + *x_->at(static_cast<double>(i)) * (right() - left_);
    text += below_ > 26 ? svg_text(x + 4, bottom() + 16, "end", categories_[i], kSvgMuted, -35)
                        : svg_text(x, bottom() + 19, "middle", categories_[i]);
  }
  text += svg_line(left_, top_, left_, bottom(), kSvgAxis) + svg_line(left_, bottom(), right(), bottom(), kSvgAxis);
  const double middle = top_ + kPlotHeight / 2;
  text += svg_text(12, middle, "middle", figure_.at("y").value("label", ""), kSvgMuted, -90);
  return text + svg_text((left_ + right()) / 2, bottom() + below_ + 14, "middle", figure_.at("x").value("label", ""));
}

std::string Drawing::svg() const {
  std::string body;
  for (size_t k = 0; k < curves_.size(); ++k) body += kind_ == "bar" ? bars(curves_[k], k) : curve(curves_[k]);
  const double height = bottom() + below_ + (figure_.at("x").value("label", "").empty() ? 0 : 22);
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:g}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:g} {1:.0f}\" "
      "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\">\n<title>{2}</title>\n"
      "{7}{8}<svg x=\"{3:.1f}\" y=\"{4:.1f}\" width=\"{5:.1f}\" height=\"{6:g}\" viewBox=\"{3:.1f} {4:.1f} {5:.1f} "
      "{6:g}\">\n{9}</svg>\n</svg>\n",  // which shows nothing outside of the plot
      kWidth, height, xml_text(text_of("title")), left_, top_, right() - left_, kPlotHeight, legend(), axes(), body);
}

}  // namespace

std::string figure_svg(const Json& figure, const std::vector<std::string>& groups) {
  return Drawing(figure, groups).svg();
}

}  // namespace plumb
