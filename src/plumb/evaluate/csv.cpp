#include "plumb/evaluate/csv.h"

#include <fmt/format.h>

#include "plumb/base/error.h"
#include "plumb/base/files.h"

namespace plumb {
namespace {

/// Divides text into records, byte by byte.
class CsvParser {
 public:
  void add(char byte) {
    if (byte == '"') {
      // Within quotes, two of them are one; between two, the field is open again.
      if (!quoted_ && closed_) field_ += '"';
      quoted_ = !quoted_;
      closed_ = !quoted_;
      return;
    }
    closed_ = false;
    if (quoted_) {
      field_ += byte;
    } else if (byte == ',') {
      end_field();
    } else if (byte == '\n') {
      end_record();
    } else if (byte != '\r') {
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
  }

  void end_record() {
    end_field();
    if (record_.size() > 1 || !record_[0].empty()) records_.push_back(std::move(record_));
    record_.clear();
  }

  std::vector<std::vector<std::string>> records_;
  std::vector<std::string> record_;
  std::string field_;
  bool quoted_ = false;
  bool closed_ = false;  // whether the last byte ended quotes
};

}  // namespace

std::vector<std::vector<std::string>> read_csv(const std::filesystem::path& file) {
  const std::string text = read_file(file);
  if (!is_valid_utf8(text)) throw Error(fmt::format("{}: is not valid UTF-8", file.string()));
  CsvParser parser;
  for (const char byte : text) parser.add(byte);
  return parser.finish(file);
}

}  // namespace plumb
