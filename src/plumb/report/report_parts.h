// The pieces of results.json (docs/formats/results.md), built by the parts of a study.
#pragma once

#include <concepts>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "plumb/analysis/rules.h"
#include "plumb/analysis/statistics.h"
#include "plumb/base/json.h"
#include "plumb/nn/layer_id.h"

namespace plumb {

struct Axis {
  std::string label;
  bool log = false;
  double floor = 0;  // the smallest value shown on a log axis; 0: chosen by the page
};

/// "2.72 (0.54 to 13.7)" with this many significant digits; "2.72" without an interval, as with one seed; "no number"
/// if the mean is not finite.
std::string with_interval(const Interval& interval, int digits = 3);

/// "Post-LN 2.72 (0.54 to 13.7), Pre-LN 1.1 (0.9 to 1.3)".
/// Of more than four, only the smallest and the largest: "from 1.1 (0.9 to 1.3) for Pre-LN to 2.72 (0.54 to 13.7) for
/// Post-LN".
std::string with_intervals(const std::vector<std::pair<std::string, Interval>>& named, int digits = 3);

/// "One seed has no interval." for "one seed has no interval".
std::string as_sentence(std::string text);

/// "3 seeds, 95% intervals"; "one seed, no interval".
std::string seeds_in_words(int64_t seeds);

/// Where a point lies on the horizontal axis: at a number, whole or not, or at a category.
class AxisPlace {
 public:
  template <std::integral Number>
  AxisPlace(Number number) : value_(static_cast<int64_t>(number)) {}  // NOLINT: a number is a place
  AxisPlace(double number) : value_(number) {}                        // NOLINT
  AxisPlace(std::string category) : value_(std::move(category)) {}    // NOLINT
  AxisPlace(const char* category) : value_(category) {}               // NOLINT

  /// As int64_t, double or std::string. Throws std::bad_variant_access if it is another of these.
  template <typename Value>
  [[nodiscard]] const Value& get() const {
    return std::get<Value>(value_);
  }
  [[nodiscard]] Json to_json() const {
    return std::visit([](const auto& value) { return Json(value); }, value_);
  }
  friend bool operator==(const AxisPlace&, const AxisPlace&) = default;

 private:
  std::variant<int64_t, double, std::string> value_;
};

/// One line of a figure. NaN in y, low, high and other_x: no value.
struct Series {
  std::string name;
  std::string group;  // decides the color
  std::vector<AxisPlace> x;
  std::vector<double> y, low, high;
  std::string style = "solid";                  // "solid", "dashed", "points"
  std::vector<std::vector<double>> other_x;     // of each of the figure's other axes, a list as long as x
  std::optional<std::vector<size_t>> hollow{};  // points with hollow markers; the others then have filled ones
  bool companion = false;                       // belongs to the series before it: both are one entry of the legend

  void point(const AxisPlace& at, double value);
  void point(const AxisPlace& at, double value, double lower, double upper);
  void point(const AxisPlace& at, const Interval& interval) { point(at, interval.mean, interval.low, interval.high); }

  /// Values that are not finite become null.
  [[nodiscard]] Json to_json() const;
};

struct Figure {
  std::string id;
  std::string title;
  std::string caption;
  std::string kind;  // "line", "scatter", "bar", "density"
  Axis x;
  Axis y;
  std::deque<Series> series;
  std::vector<std::string> notes;
  std::string ended = "diverged";  // the legend's word for a line whose last values are null
  std::vector<Axis> other_x{};     // horizontal axes that the reader can choose instead of x
  std::string part_of{};           // of a figure in parts: the id of the first
  std::string part{};              // what it alone of them shows

  /// Adds a series, to be filled: the reference stays valid while others are added.
  Series& add(std::string name, std::string group, std::string style = "solid");

  /// Leaves out of the series' names the parts, separated by ", ", that all of them share, and adds these to the
  /// caption: "Post-LN, warm-up 20" and "Pre-LN, warm-up 20" become "Post-LN" and "Pre-LN". Names stay as they are
  /// where nothing would be left of one.
  void shorten_names();

  [[nodiscard]] Json to_json() const;
};

/// A claim from the literature and the measurements' judgment of it, in their setting.
struct Verdict {
  std::string id;
  std::string claim;
  std::string source;
  std::string setting;   // "6+6 layers, d_model 64, synthetic corpus"
  std::string quantity;  // what was judged: "last layer's gradient norm / first layer's"
  Judgment judgment;
  std::string evidence;  // sentences with further numbers; may be empty
  std::string figure;    // its id
  std::string scheme{};  // the claim's scheme, to find its part of a divided figure
  bool told = false;     // whether a sentence tells the quantity of each arm anyway

  [[nodiscard]] Json to_json() const;
};

struct Table {
  std::string id;
  std::string title;
  std::string caption;
  std::vector<std::string> columns;
  Json rows = Json::array();

  /// Adds a row. Numbers that are not finite become null; an interval fills three cells: mean, low and high.
  template <typename... Cells>
  void row(const Cells&... cells) {
    Json& added = rows.emplace_back(Json::array());
    (put_cell(added, cells), ...);
  }

  [[nodiscard]] Json to_json() const;

 private:
  template <typename Cell>
  static void put_cell(Json& row, const Cell& cell) {
    if constexpr (std::is_same_v<Cell, Interval>) {
      for (const double number : {cell.mean, cell.low, cell.high}) row.push_back(finite_or_null(number));
    } else if constexpr (std::is_floating_point_v<Cell>) {
      row.push_back(finite_or_null(cell));
    } else {
      row.push_back(Json(cell));
    }
  }
};

/// The contribution of one part of a study to the report.
struct PartResult {
  std::vector<Figure> figures;
  std::vector<Table> tables;
  std::vector<std::string> summary;  // sentences
  Json measurements = Json::object();
};

/// An arm's name as part of a file name: "n+da" for "n/da", "post-ln-heads-8" for "post-ln, heads 8".
std::string file_name(std::string arm);

/// "Post-LN, warm-up 20" → {"Post-LN", "warm-up 20"}; a comma in parentheses does not separate.
std::vector<std::string> name_parts(const std::string& name);

/// "self-attention"; "attention and feed-forward" for both in parallel.
std::string in_words(SubLayerKind kind);

}  // namespace plumb
