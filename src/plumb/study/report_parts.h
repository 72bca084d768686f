// The pieces of results.json (docs/formats/results.md), built by the parts of a study.
#pragma once

#include <string>
#include <vector>

#include "plumb/base/json.h"

namespace plumb {

/// A number as a figure or table has it: null where there is none.
Json finite_or_null(double value);

struct Axis {
  std::string label;
  bool log = false;
  bool symlog = false;
  double floor = 0;  // the smallest value that a log axis shows; 0: the page decides
};

/// One line of a figure. x holds numbers or words; y may hold null.
struct Series {
  std::string name;
  std::string group;  // decides the color
  Json x = Json::array();
  Json y = Json::array();
  Json low = Json::array();
  Json high = Json::array();
  std::string style = "solid";  // "solid", "dashed", "points"

  void point(const Json& at, double value);
  void point(const Json& at, double value, double lower, double upper);
};

struct Figure {
  std::string id;
  std::string title;
  std::string caption;
  std::string kind;  // "line", "scatter", "bar", "density"
  Axis x;
  Axis y;
  std::vector<Series> series;
  std::vector<std::string> notes;

  [[nodiscard]] Json to_json() const;
};

/// A claim of the literature held against the numbers.
struct Verdict {
  std::string id;
  std::string claim;
  std::string source;
  std::string verdict;  // "confirmed", "contradicted", "unclear"
  std::string evidence;
  std::string figure;

  [[nodiscard]] Json to_json() const;
};

struct Table {
  std::string id;
  std::string title;
  std::string caption;
  std::vector<std::string> columns;
  Json rows = Json::array();

  [[nodiscard]] Json to_json() const;
};

/// What one part of a study adds to the report.
struct PartResult {
  std::vector<Figure> figures;
  std::vector<Verdict> verdicts;
  std::vector<Table> tables;
  std::vector<std::string> summary;  // sentences
  Json measurements = Json::object();
};

/// "confirmed" or "contradicted".
inline std::string confirmed_if(bool condition) { return condition ? "confirmed" : "contradicted"; }

/// A scheme's name as part of a file's: "n+da" for "n/da".
std::string file_name(std::string scheme);

/// "Post-LN" for "post-ln": how a scheme is called in figures.
std::string display_name(const std::string& scheme);

}  // namespace plumb
