// Tables: comma-separated (RFC 4180) and tab-separated values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plumb {

/// A line of a table: its fields.
using Record = std::vector<std::string>;

/// Divides lines into records. Where the separator is a comma, a field in double quotes may contain commas, line breaks
/// and doubled quotes; quotes in a field that does not begin with one are text, as they are where it is a tab.
class RecordParser {
 public:
  /// What follows the closing quote of a field on its line: `text` belongs to the field, as for Python's `csv`.
  /// `error`: neither text nor, within quotes, a line break is accepted.
  enum class AfterQuotes { text, error };

  /// `file`: its name in messages.
  RecordParser(std::string file, char separator, AfterQuotes after = AfterQuotes::text)
      : file_(std::move(file)), separator_(separator), after_(after) {}

  /// Adds a line without its end. Returns the record that ends with it; nullopt if a field in quotes goes on, which it
  /// does not with AfterQuotes::error. Throws Error, naming the line, if a record has more than 16 MiB, or if a field
  /// does not end as it should.
  std::optional<Record> add(std::string_view line, std::string_view line_end = "\n");

  /// Whether a field in quotes goes on.
  [[nodiscard]] bool is_within() const { return quoted_; }

  /// The next line is this one of the file, in messages.
  void at_line(int64_t line) { lines_ = line - 1; }

  /// Throws Error if the latest field in quotes has not ended.
  void finish() const;

 private:
  std::string file_;
  char separator_;
  AfterQuotes after_;
  Record record_ = Record(1);  // its last field is being read
  bool begun_ = false;         // whether anything of the field has been read
  bool quoted_ = false;
  bool closed_ = false;  // whether the last byte was a closing quote
  size_t size_ = 0;      // of the record, in bytes
  int64_t lines_ = 0;
};

}  // namespace plumb
