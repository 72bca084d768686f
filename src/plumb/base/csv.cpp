#include "plumb/base/csv.h"

#include <fmt/format.h>

#include <utility>

#include "plumb/base/error.h"

namespace plumb {

std::optional<Record> RecordParser::add(std::string_view line, std::string_view line_end) {
  constexpr size_t kLongest = size_t{16} << 20;
  ++lines_;
  size_ += line.size();
  if (size_ > kLongest) throw Error(fmt::format("{}:{}: a record is longer than 16 MiB", file_, lines_));
  for (const char byte : line) {
    if (byte == '"' && separator_ == ',' && (quoted_ || closed_ || !begun_)) {
      // In a quoted field, a doubled quote is one quote: the first closes the field, the second reopens it. In the
      // middle of another field, quotes are text.
      if (closed_) record_.back() += '"';
      quoted_ = !quoted_;
      closed_ = !quoted_;
      begun_ = true;
    } else if (byte == separator_ && !quoted_) {
      record_.emplace_back();
      begun_ = closed_ = false;
    } else if (closed_ && after_ == AfterQuotes::error) {
      throw Error(fmt::format("{}:{}: text after a quoted field", file_, lines_),
                  "double the quotation marks inside a quoted field");
    } else {
      record_.back() += byte;
      begun_ = true;
      closed_ = false;
    }
  }
  if (quoted_ && after_ == AfterQuotes::error)
    throw Error(fmt::format("{}:{}: a quoted field does not end on its line", file_, lines_),
                "multi-line fields are not supported; with --separator tab, quotation marks are ordinary text");
  if (quoted_) {
    record_.back() += line_end;
    return std::nullopt;
  }
  begun_ = closed_ = false;
  size_ = 0;
  return std::exchange(record_, Record(1));
}

void RecordParser::finish() const {
  if (quoted_) throw Error(fmt::format("{}: ends within a field in quotes", file_));
}

}  // namespace plumb
