// Points of runs from the lines of a text log, which a pattern describes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plumb {

/// A line of a table: texts, which may be numbers, by column; empty ones are left out.
using Row = std::vector<std::pair<std::string, std::string>>;

/// How a program prints a point of a run: "step {step}: train loss {train_loss}, val loss {val_loss}". A name in braces
/// stands for a value, {} for a text of no interest; blanks of any number match blanks. The pattern may begin anywhere in
/// a line; a value ends where the text after it begins, or at a blank or comma.
class LinePattern {
 public:
  /// Throws UsageError if the pattern names nothing, or if two values have no text between them.
  explicit LinePattern(const std::string& pattern);

  /// The values of a line by their names; nothing if the line is another.
  [[nodiscard]] std::optional<Row> match(std::string_view line) const;

 private:
  struct Part {
    std::string before;  // text
    std::string name;    // of the value after it; empty: of no interest
  };
  std::vector<Part> parts_;
  std::string after_;
};

}  // namespace plumb
