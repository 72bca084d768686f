// The lines of a log by column, and what programs call their columns.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plumb/base/json.h"

namespace plumb {

/// The number that a text stands for, "nan" and "-Infinity" among them; empty if the text is not a number.
std::optional<double> number_in(std::string_view text);

/// Whether a cell has no value, as programs write it: nothing, "None", "N/A", "-".
bool is_missing(std::string_view text);

/// JSON in which numbers may be NaN or infinite, as Python and C write them, or too large: such a number becomes a
/// text. Discarded if the text is no JSON.
Json parse_log(std::string_view text);

std::string lower(std::string_view text);

/// The part of a column's name after the last dot or slash, in lower case.
std::string last_part(std::string_view key);

/// Whether a column, or its part after the last dot, is called as programs call a run's seed, or learning rate.
bool is_seed_key(std::string_view key);
bool is_rate_key(std::string_view key);

/// Whether a column names runs ("Run ID"), or says how they ended ("State", "status").
bool is_run_key(std::string_view key);
bool is_state_key(std::string_view key);

/// How early among the names of steps a column's is, "step" before "epoch"; nothing if it counts none.
std::optional<size_t> rank_of_step(std::string_view key);

/// The lines of a log: numbers as such, and each text once. With a column of steps, a number's text is kept only where
/// it may tell runs apart.
class LogTable {
 public:
  static constexpr size_t kMost = 100'000;  // columns, runs, or texts of a column

  struct Cell {
    uint32_t column : 31;
    uint32_t is_number : 1;
    uint32_t text;  // its place among the texts; 0: not kept
    double number;
  };

  /// `name`: of the log in messages. `keys`: columns that tell runs apart.
  explicit LogTable(std::string name, std::vector<std::string> keys = {})
      : name_(std::move(name)), keys_(std::move(keys)) {}
  LogTable(LogTable&&) = default;
  LogTable& operator=(LogTable&&) = default;

  /// The column with this name, which is added if it is missing. Throws Error on more than 100,000 columns.
  uint32_t column(std::string_view name);

  /// Adds a cell to the line that is being read.
  void add(uint32_t column, std::string_view text) { add(column, text, number_in(text)); }

  /// Throws Error if more than 100,000 lines have no column of steps: each would be a run.
  void end_line();

  /// Adds the leaves of an object as a line, "optimizer.lr" for those of objects within, without null and lists.
  void add_object(const Json& object);
  /// The same for the text of an object, as parse_log() reads it. Returns false, and adds nothing, for any other text.
  bool add_json(std::string_view text);

  /// Leaves out all lines after the first `count`.
  void keep_lines(size_t count);

  /// Throws Error on more columns or runs than are read.
  [[noreturn]] void refuse() const;

  [[nodiscard]] size_t lines() const { return ends_.size(); }
  [[nodiscard]] std::span<const Cell> line(size_t i) const;
  [[nodiscard]] size_t columns() const { return columns_.size(); }
  [[nodiscard]] const std::string& name_of(uint32_t column) const { return columns_[column].name; }
  [[nodiscard]] const std::string& text_at(uint32_t place) const { return texts_[place]; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::vector<std::string>& keys() const { return keys_; }

 private:
  struct Column {
    std::string name;
    bool tells_runs, is_step, is_time;
    size_t texts = 0;        // that were new
    size_t latest_cell = 0;  // which may have been left out
    uint32_t next = 0;       // the column that last followed it in a line
  };

  class ObjectReader;
  void add(uint32_t column, std::string_view text, std::optional<double> number);
  void add_leaves(const std::string& prefix, const Json& object);
  uint32_t place_of(Column& column, std::string_view text);
  [[nodiscard]] bool keeps_text(uint32_t column) const { return !has_steps_ || columns_[column].tells_runs; }
  [[nodiscard]] size_t begin_of_line() const { return ends_.empty() ? 0 : ends_.back(); }

  std::string name_;
  std::vector<std::string> keys_;
  std::vector<Column> columns_;
  std::unordered_map<std::string, uint32_t> by_name_;
  std::deque<std::string> texts_ = {""};
  std::unordered_map<std::string_view, uint32_t> by_text_;
  std::vector<Cell> cells_;
  std::vector<size_t> ends_;  // of the lines, in cells
  uint32_t first_ = 0;        // the column that last began a line
  bool has_steps_ = false;
};

}  // namespace plumb
