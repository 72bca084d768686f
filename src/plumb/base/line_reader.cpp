#include "plumb/base/line_reader.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "plumb/base/error.h"
#include "plumb/base/text_encoding.h"

namespace plumb {

LineReader::LineReader(const std::filesystem::path& path) : name_(path.string()) {
  if (std::filesystem::is_directory(path)) throw Error(fmt::format("{}: is a directory, not a file", name_));
  errno = 0;
  in_.open(path, std::ios::binary);
  if (!in_) throw Error(fmt::format("{}: cannot be read: {}", name_, std::strerror(errno)), "check the path");
}

std::optional<std::string_view> LineReader::next() {
  if (!std::getline(in_, line_)) {
    if (in_.bad()) throw Error(fmt::format("{}: cannot be read: {}", name_, std::strerror(errno)));
    return std::nullopt;
  }
  std::string_view line = line_;
  if (count_ == 0 && line.starts_with("\xEF\xBB\xBF")) {
    line.remove_prefix(3);
    if (line.empty() && in_.eof()) return std::nullopt;  // a byte-order mark and nothing else
  }
  ++count_;
  if (line.ends_with('\r')) line.remove_suffix(1);
  require_utf8_line(name_, static_cast<size_t>(count_), line);
  return line;
}

}  // namespace plumb
