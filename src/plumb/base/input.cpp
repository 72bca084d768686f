#include "plumb/base/input.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstring>
#include <limits>
#include <utility>

#include "plumb/base/error.h"
#include "plumb/base/text_encoding.h"
#include "plumb/base/utf8.h"

namespace plumb {
namespace fs = std::filesystem;
namespace {

bool is_null_device(const struct stat& status) { return S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3); }

/// Throws Error unless the limits allow what `status` describes.
void check_kind(const std::string& name, const struct stat& status, bool terminal, const InputLimits& limits) {
  if (S_ISDIR(status.st_mode)) throw Error(fmt::format("{}: is a directory, not a file", name));
  const bool pipe = S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode) || terminal;
  if (!S_ISREG(status.st_mode) && !is_null_device(status) && !(pipe && limits.pipes))
    throw Error(fmt::format("{}: is {}, not a file", name, pipe ? "a pipe" : "a device"), "write it to a file first");
  if (S_ISREG(status.st_mode) && static_cast<uint64_t>(status.st_size) > limits.bytes)
    throw Error(fmt::format("{}: has {} bytes; at most {} are read here", name, status.st_size, limits.bytes),
                "check that it is the right file");
}

Error passes_limit(const std::string& name, uint64_t most) {
  return Error(fmt::format("{}: has more than {} bytes", name, most), "check that it is the right file");
}

/// Reads a file or a pipe to its end. Throws Error if reading fails, or does not end within `most` bytes.
std::string read_all(int descriptor, const std::string& name, uint64_t most) {
  struct stat status {};
  const bool sized = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  constexpr size_t kBlock = size_t{1} << 16;
  std::string content(sized ? static_cast<size_t>(status.st_size) + 1 : kBlock, '\0');  // one more, to detect the end
  size_t size = 0;
  while (true) {
    if (size == content.size()) content.resize(2 * size);
    const ssize_t count = ::read(descriptor, content.data() + size, content.size() - size);
    if (count == 0) break;
    if (count > 0) size += static_cast<size_t>(count);
    if (count < 0 && errno != EINTR) throw Error(fmt::format("{}: cannot be read: {}", name, std::strerror(errno)));
    if (size > most) throw passes_limit(name, most);
  }
  content.resize(size);
  return content;
}

}  // namespace

Descriptor open_input(const fs::path& path, const InputLimits& limits) {
  struct stat status {};
  // Opening a pipe waits for whoever writes to it, so this is done only where one is allowed.
  const bool waits = limits.pipes && ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | (waits ? 0 : O_NONBLOCK)));
  if (!file.is_open() || ::fstat(file.get(), &status) != 0)
    throw Error(fmt::format("{}: cannot be read: {}", path.string(), std::strerror(errno)), "check the path");
  check_kind(path.string(), status, ::isatty(file.get()) != 0, limits);
  return file;
}

void require_regular_file(const fs::path& path, const InputLimits& limits) { (void)open_input(path, limits); }

std::string read_file(const fs::path& path, const InputLimits& limits) {
  return read_all(open_input(path, limits).get(), path.string(), limits.bytes);
}

void require_utf8(const fs::path& path) {
  if (is_valid_utf8(path.string())) return;
  throw Error(fmt::format("{}: the path is not valid UTF-8", path.string()), "rename it, or choose another path");
}

LineReader LineReader::standard_input() {
  return {"standard input", Descriptor(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)), kNamedInput.bytes};
}

/// Appends a block of the file to the lines that have not been taken; false at its end.
bool LineReader::read_more() {
  constexpr size_t kBlock = size_t{1} << 17;
  if (at_end_) return false;  // a terminal would be read again
  buffer_.erase(0, std::exchange(begin_, 0));
  const size_t before = buffer_.size();
  buffer_.resize(before + kBlock);
  const ssize_t count = file_.read(buffer_.data() + before, kBlock);
  if (count < 0) throw Error(fmt::format("{}: cannot be read: {}", name_, std::strerror(errno)));
  buffer_.resize(before + static_cast<size_t>(count));
  read_ += static_cast<uint64_t>(count);
  if (read_ > most_) throw passes_limit(name_, most_);
  at_end_ = count == 0;
  return !at_end_;
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
  if (count_ == 0) line = without_byte_order_mark(line);
  if (line.empty() && !ended) return std::nullopt;
  ++count_;
  ended_with_cr_ = line.ends_with('\r');
  if (ended_with_cr_) line.remove_suffix(1);
  require_utf8_line(name_, static_cast<size_t>(count_), line);
  return line;
}

namespace {

std::vector<std::string> rest_of(LineReader reader) {
  std::vector<std::string> lines;
  while (const auto line = reader.next()) lines.emplace_back(*line);
  return lines;
}

}  // namespace

std::vector<std::string> read_lines(const fs::path& path, const InputLimits& limits) {
  return rest_of(LineReader(path, limits));
}

std::vector<std::string> read_standard_input() { return rest_of(LineReader::standard_input()); }

MappedFile::MappedFile(const fs::path& path) {
  const Descriptor file = open_input(path, {.bytes = std::numeric_limits<uint64_t>::max()});
  struct stat status {};
  if (::fstat(file.get(), &status) != 0)
    throw Error(fmt::format("{}: cannot be read: {}", path.string(), std::strerror(errno)), "check the path");
  const auto size = static_cast<size_t>(status.st_size);
  void* address = size == 0 ? nullptr : ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) throw Error(fmt::format("{}: cannot be mapped: {}", path.string(), std::strerror(errno)));
  bytes_ = {static_cast<const std::byte*>(address), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace plumb
