#include "plumb/base/input.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstring>
#include <limits>

#include "plumb/base/error.h"
#include "plumb/base/text_encoding.h"

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
    if (size > most)
      throw Error(fmt::format("{}: has more than {} bytes", name, most), "check that it is the right file");
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

bool is_valid_utf8(std::string_view text) {
  const auto* p = reinterpret_cast<const unsigned char*>(text.data());
  const auto* end = p + text.size();
  while (p < end) {
    if (*p < 0x80) {
      ++p;
      continue;
    }
    int length = 0;
    uint32_t code = 0;
    if ((*p & 0xE0) == 0xC0) {
      length = 2;
      code = *p & 0x1FU;
    } else if ((*p & 0xF0) == 0xE0) {
      length = 3;
      code = *p & 0x0FU;
    } else if ((*p & 0xF8) == 0xF0) {
      length = 4;
      code = *p & 0x07U;
    } else {
      return false;
    }
    if (end - p < length) return false;
    for (int i = 1; i < length; ++i) {
      if ((p[i] & 0xC0) != 0x80) return false;
      code = code << 6 | (p[i] & 0x3FU);
    }
    constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
    if (code < kSmallest[length] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return false;
    p += length;
  }
  return true;
}

namespace {

std::vector<std::string> lines_of(std::string_view rest, const std::string& name) {
  if (rest.starts_with("\xEF\xBB\xBF")) rest.remove_prefix(3);
  std::vector<std::string> lines;
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    require_utf8_line(name, lines.size() + 1, line);
    lines.emplace_back(line);
  }
  return lines;
}

}  // namespace

std::vector<std::string> read_lines(const fs::path& path, const InputLimits& limits) {
  return lines_of(read_file(path, limits), path.string());
}

std::vector<std::string> read_standard_input() {
  return lines_of(read_all(STDIN_FILENO, "standard input", kNamedInput.bytes), "standard input");
}

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
