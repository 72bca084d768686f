#include "plumb/base/line_reader.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "plumb/base/error.h"
#include "plumb/base/text_encoding.h"

namespace plumb {

/// Appends a block of the file to the lines that have not been taken; false at its end.
bool LineReader::read_more() {
  constexpr size_t kBlock = size_t{1} << 17;
  buffer_.erase(0, std::exchange(begin_, 0));
  const size_t before = buffer_.size();
  buffer_.resize(before + kBlock);
  const ssize_t count = file_.read(buffer_.data() + before, kBlock);
  if (count < 0) throw Error(fmt::format("{}: cannot be read: {}", name_, std::strerror(errno)));
  buffer_.resize(before + static_cast<size_t>(count));
  read_ += static_cast<uint64_t>(count);
  if (read_ > most_) throw Error(fmt::format("{}: has more than {} bytes", name_, most_));
  return count > 0;
}

std::optional<std::string_view> LineReader::next() {
  size_t length = 0;  // of the line, as far as it is in the buffer
  bool ended = false;
  do {
    const size_t end = buffer_.find('\n', begin_ + length);
    ended = end != std::string::npos;
    length = (ended ? end : buffer_.size()) - begin_;
    if (length > kLongestLine) throw Error(fmt::format("{}:{}: is longer than 64 MiB", name_, count_ + 1));
  } while (!ended && read_more());
  std::string_view line = std::string_view(buffer_).substr(begin_, length);
  begin_ += length + (ended ? 1 : 0);
  if (count_ == 0 && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
  if (line.empty() && !ended) return std::nullopt;
  ++count_;
  ended_with_cr_ = line.ends_with('\r');
  if (ended_with_cr_) line.remove_suffix(1);
  require_utf8_line(name_, static_cast<size_t>(count_), line);
  return line;
}

}  // namespace plumb
