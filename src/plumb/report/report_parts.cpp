#include "plumb/report/report_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "plumb/base/contains.h"
#include "plumb/base/text.h"

namespace plumb {
namespace {

Json axis_json(const Axis& axis) {
  Json json = {{"label", axis.label}, {"log", axis.log}};
  if (axis.floor > 0) json["floor"] = axis.floor;
  return json;
}

Json numbers_json(const std::vector<double>& numbers) {
  Json json = Json::array();
  for (const double number : numbers) json.push_back(finite_or_null(number));
  return json;
}

}  // namespace

std::string as_sentence(std::string text) {
  if (text.empty()) return text;
  text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  if (text.back() != '.') text += '.';
  return text;
}

std::vector<std::string> name_parts(const std::string& name) {
  std::vector<std::string> parts(1);
  int64_t depth = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    depth += name[i] == '(' ? 1 : name[i] == ')' ? -1 : 0;
    if (depth == 0 && name.compare(i, 2, ", ") == 0) {
      parts.emplace_back();
      ++i;
    } else {
      parts.back() += name[i];
    }
  }
  return parts;
}

std::string with_interval(const Interval& interval, int digits) {
  const auto number = [digits](double value) {
    std::string text = fmt::format("{:.{}g}", value, digits);
    if (text.front() == '-') text.replace(0, 1, "−");
    return text;
  };
  if (!std::isfinite(interval.mean)) return "no number";
  if (!std::isfinite(interval.low)) return number(interval.mean);
  return fmt::format("{} ({} to {})", number(interval.mean), number(interval.low), number(interval.high));
}

std::string with_intervals(const std::vector<std::pair<std::string, Interval>>& named, int digits) {
  constexpr size_t kMostNamed = 4;
  if (named.size() > kMostNamed) {
    const auto [least, most] = std::minmax_element(
        named.begin(), named.end(), [](const auto& a, const auto& b) { return a.second.mean < b.second.mean; });
    const auto end = [&](const auto& of) { return with_interval(of.second, digits) + " for " + of.first; };
    return fmt::format("from {} to {}", end(*least), end(*most));
  }
  std::string text;
  for (const auto& [name, interval] : named)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, with_interval(interval, digits));
  return text;
}

std::string seeds_in_words(int64_t seeds) {
  return seeds == 1 ? "one seed, no interval" : fmt::format("{} seeds, 95% intervals", seeds);
}

void Series::point(const AxisPlace& at, double value) {
  x.push_back(at);
  y.push_back(value);
}

void Series::point(const AxisPlace& at, double value, double lower, double upper) {
  point(at, value);
  low.push_back(lower);
  high.push_back(upper);
}

Json Series::to_json() const {
  Json json = {{"name", name}, {"group", group}, {"x", Json::array()}, {"y", numbers_json(y)}};
  for (const AxisPlace& at : x) json["x"].push_back(at.to_json());
  if (!low.empty()) {
    json["low"] = numbers_json(low);
    json["high"] = numbers_json(high);
  }
  json["style"] = style;
  for (const std::vector<double>& places : other_x) json["other_x"].push_back(numbers_json(places));
  if (hollow) json["hollow"] = *hollow;
  if (companion) json["companion"] = true;
  return json;
}

Series& Figure::add(std::string name, std::string group, std::string style) {
  Series& added = series.emplace_back(Series{std::move(name), std::move(group)});
  added.style = std::move(style);
  return added;
}

void Figure::shorten_names() {
  if (series.size() < 2) return;
  std::vector<std::vector<std::string>> names;
  for (const Series& one : series) names.push_back(name_parts(one.name));
  std::vector<std::string> shared;
  for (const std::string& part : names.front()) {
    if (std::all_of(names.begin(), names.end(), [&](const auto& name) { return contains(name, part); }))
      shared.push_back(part);
  }
  for (std::vector<std::string>& name : names) {
    std::erase_if(name, [&](const std::string& part) { return contains(shared, part); });
    if (name.empty()) return;
  }
  if (shared.empty()) return;
  for (size_t i = 0; i < series.size(); ++i) series[i].name = join(names[i]);
  caption += fmt::format("{}Common to all: {}.", caption.empty() ? "" : " ", join(shared));
}

Json Figure::to_json() const {
  Json json = {{"id", id},     {"title", title},    {"caption", caption},
               {"kind", kind}, {"x", axis_json(x)}, {"y", axis_json(y)}};
  json["series"] = Json::array();
  for (const Series& one : series) json["series"].push_back(one.to_json());
  for (const Axis& axis : other_x) json["other_x"].push_back(axis_json(axis));
  json["notes"] = notes;
  if (ended != Figure{}.ended) json["ended"] = ended;
  if (!part_of.empty()) {
    json["part_of"] = part_of;
    json["part"] = part;
  }
  return json;
}

Json Verdict::to_json() const {
  const Interval& effect = judgment.effect;
  return {{"id", id},
          {"claim", claim},
          {"source", source},
          {"verdict", to_string(judgment.outcome)},
          {"setting", setting},
          {"quantity", quantity},
          {"effect",
           {{"mean", finite_or_null(effect.mean)},
            {"low", finite_or_null(effect.low)},
            {"high", finite_or_null(effect.high)},
            {"seeds", effect.count}}},
          {"rule", judgment.rule},
          {"reason", as_sentence(judgment.reason)},
          {"evidence", evidence},
          {"figure", figure}};
}

Json Table::to_json() const {
  return {{"id", id}, {"title", title}, {"caption", caption}, {"columns", columns}, {"rows", rows}};
}

std::string in_words(SubLayerKind kind) {
  constexpr const char* kWords[] = {"self-attention", "cross-attention", "feed-forward", "attention and feed-forward"};
  return kWords[static_cast<size_t>(kind)];
}

std::string file_name(std::string arm) {
  std::replace(arm.begin(), arm.end(), '/', '+');
  replace_all(arm, ", ", "-");
  std::replace(arm.begin(), arm.end(), ' ', '-');
  return arm;
}

}  // namespace plumb
