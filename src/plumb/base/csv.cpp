#include "plumb/base/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/text.h"
#include "plumb/base/text_encoding.h"

namespace plumb {
namespace {

/// Splits text into records, byte by byte.
class CsvParser {
 public:
  void add(char byte) {
    if (byte == '"' && (quoted_ || closed_ || !begun_)) {
      // In a quoted field, a doubled quote is one quote: the first closes the field, the second reopens it. In the
      // middle of another field, quotes are text.
      if (closed_) field_ += '"';
      quoted_ = !quoted_;
      closed_ = !quoted_;
      begun_ = true;
      return;
    }
    closed_ = false;
    begun_ = byte != '\r' || begun_;
    if (byte == ',' && !quoted_) {
      end_field();
    } else if (byte == '\n' && !quoted_) {
      end_record();
    } else if (byte != '\r' || quoted_) {
      field_ += byte;
    }
  }

  std::vector<std::vector<std::string>> finish(const std::filesystem::path& file) {
    if (quoted_) throw Error(fmt::format("{}: ends within a field in quotes", file.string()));
    if (!field_.empty() || !record_.empty()) end_record();
    return std::move(records_);
  }

 private:
  void end_field() {
    record_.push_back(std::move(field_));
    field_.clear();
    begun_ = false;
  }

  void end_record() {
    end_field();
    if (record_.size() > 1 || !record_[0].empty()) records_.push_back(std::move(record_));
    record_.clear();
  }

  std::vector<std::vector<std::string>> records_;
  std::vector<std::string> record_;
  std::string field_;
  bool begun_ = false;  // whether anything of the field has been read
  bool quoted_ = false;
  bool closed_ = false;  // whether the last byte was a closing quote
};

}  // namespace

std::vector<std::vector<std::string>> read_csv(const std::filesystem::path& file) {
  const std::string text = read_file(file);
  require_no_other_format(file.string(), text);
  if (!is_valid_utf8(text)) throw Error(fmt::format("{}: is not valid UTF-8", file.string()));
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  CsvParser parser;
  for (const char byte : std::string_view(text).substr(text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0))
    parser.add(byte);
  return parser.finish(file);
}

std::vector<std::vector<std::string>> read_tsv(const std::filesystem::path& file) {
  std::vector<std::vector<std::string>> records;
  for (const std::string& line : read_lines(file)) {
    if (!line.empty()) records.push_back(split(line, '\t'));
  }
  return records;
}

void each_record(const std::filesystem::path& file, const std::vector<std::vector<std::string>>& records,
                 const std::vector<std::string>& names,
                 const std::function<void(const std::vector<std::string>& columns)>& take) {
  constexpr const char* kHint = "docs/evaluation.md describes the files";
  if (records.empty()) throw Error(fmt::format("{}: is empty", file.string()));
  const std::vector<std::string>& header = records.front();
  std::vector<size_t> numbers;
  for (const std::string& name : names) {
    const auto found = std::find(header.begin(), header.end(), name);
    if (found == header.end()) throw Error(fmt::format("{}: has no column '{}'", file.string(), name), kHint);
    numbers.push_back(static_cast<size_t>(found - header.begin()));
  }
  for (size_t i = 1; i < records.size(); ++i) {
    if (records[i].size() != header.size()) {
      throw Error(fmt::format("{}, record {}: has {} fields, the header has {}", file.string(), i + 1,
                              records[i].size(), header.size()));
    }
    std::vector<std::string> columns;
    for (const size_t number : numbers) columns.push_back(records[i][number]);
    try {
      take(columns);
    } catch (const Error& error) {
      throw Error(fmt::format("{}, record {}: {}", file.string(), i + 1, error.what()), kHint);
    }
  }
}

}  // namespace plumb
