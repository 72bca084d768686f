#include "plumb/base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <utility>

#include "plumb/base/error.h"
#include "plumb/base/json.h"

namespace plumb {
namespace fs = std::filesystem;
namespace {

constexpr const char* kMarker = "plumb.json";

std::string reason() { return std::strerror(errno); }

fs::path temporary_name(const fs::path& path) {
  fs::path name = path;
  if (!name.has_filename()) name = name.parent_path();
  return name.concat(fmt::format(".tmp-{}", ::getpid()));
}

void sync(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY);
  if (descriptor < 0) throw Error(fmt::format("{}: {}", path.string(), reason()));
  ::fsync(descriptor);
  ::close(descriptor);
}

void sync_parent(const fs::path& path) {
  const fs::path parent = path.parent_path();
  sync(parent.empty() ? fs::path(".") : parent);
}

std::string marked_kind(const fs::path& path) {
  if (!fs::exists(path / kMarker)) return {};
  return read_json(path / kMarker).value("kind", std::string());
}

}  // namespace

std::string read_file(const fs::path& path) {
  if (fs::is_directory(path)) throw Error(fmt::format("{}: is a directory, not a file", path.string()));
  std::ifstream in(path, std::ios::binary);
  if (!in) throw Error(fmt::format("{}: cannot be read: {}", path.string(), reason()), "check the path");
  std::ostringstream content;
  content << in.rdbuf();
  return std::move(content).str();
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
    if (!is_valid_utf8(line)) {
      throw Error(fmt::format("{}:{}: not valid UTF-8", name, lines.size() + 1),
                  "convert it, for example with `iconv -f latin1 -t utf8`");
    }
    lines.emplace_back(line);
  }
  return lines;
}

}  // namespace

std::vector<std::string> read_lines(const fs::path& path) { return lines_of(read_file(path), path.string()); }

std::vector<std::string> read_standard_input() {
  return lines_of(std::string{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()},
                  "standard input");
}

void write_file_atomic(const fs::path& given, const std::function<void(std::ostream&)>& write) {
  if (fs::is_directory(given)) throw Error(fmt::format("{}: is a directory, not a file name", given.string()));
  const fs::path path =
      fs::is_symlink(given) ? fs::weakly_canonical(given) : given;  // the link stays, its target changes
  if (fs::exists(path) && !fs::is_regular_file(path)) {             // a device or a pipe is written to, never replaced
    std::ofstream out(path, std::ios::binary);
    write(out);
    if (!out.flush()) throw Error(fmt::format("{}: writing failed: {}", path.string(), reason()));
    return;
  }
  if (path.has_parent_path()) fs::create_directories(path.parent_path());
  const fs::path temporary = temporary_name(path);
  try {
    std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
    if (!out)
      throw Error(fmt::format("{}: cannot be written: {}", path.string(), reason()),
                  "check the directory's permissions");
    write(out);
    out.flush();
    if (!out) throw Error(fmt::format("{}: writing failed: {}", path.string(), reason()), "is the disk full?");
    out.close();
    sync(temporary);
    fs::rename(temporary, path);
    sync_parent(path);
  } catch (...) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    throw;
  }
}

void write_file_atomic(const fs::path& path, std::string_view content) {
  write_file_atomic(
      path, [content](std::ostream& out) { out.write(content.data(), static_cast<std::streamsize>(content.size())); });
}

void write_directory_atomic(const fs::path& given, const std::function<void(const fs::path&)>& fill) {
  const fs::path path = given.has_filename() ? given : given.parent_path();  // "dir/" is "dir"
  const fs::path temporary = temporary_name(path);
  fs::remove_all(temporary);
  fs::create_directories(temporary);
  try {
    fill(temporary);
    sync(temporary);
    if (fs::exists(path)) {
      // rename() cannot replace a directory that holds files: the two change places in one step.
      if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) != 0) {
        throw Error(fmt::format("{}: cannot be replaced: {}", path.string(), reason()));
      }
      fs::remove_all(temporary);
    } else {
      fs::rename(temporary, path);
    }
    sync_parent(path);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(temporary, ignored);
    throw;
  }
}

bool claim_output_directory(const fs::path& path, std::string_view kind) {
  if (fs::exists(path) && !fs::is_directory(path)) {
    throw Error(fmt::format("{}: is a file, not an output directory", path.string()), "choose another --out");
  }
  if (fs::exists(path) && !fs::is_empty(path)) {
    const std::string found = marked_kind(path);
    if (found == kind) return true;
    throw Error(found.empty() ? fmt::format("{}: exists and was not created by Plumb", path.string())
                              : fmt::format("{}: is a {} directory, not a {} directory", path.string(), found, kind),
                "choose another --out; nothing was changed");
  }
  fs::create_directories(path);
  Json marker = make_document("directory", 1);
  marker["kind"] = kind;
  write_json(path / kMarker, marker);
  return false;
}

void check_output_directory(const fs::path& path, std::string_view kind) {
  if (path.empty()) throw Error("no output directory given", "give --out DIR");
  // Claiming what is there already changes nothing; claiming an absent or empty directory would write to it.
  if (fs::exists(path) && !(fs::is_directory(path) && fs::is_empty(path))) claim_output_directory(path, kind);
}

void require_directory(const fs::path& path, std::string_view kind) {
  if (!fs::is_directory(path)) throw Error(fmt::format("{}: no such directory", path.string()), "check the path");
  const std::string found = marked_kind(path);
  if (found == kind) return;
  throw Error(fmt::format("{}: is not a {} directory{}", path.string(), kind,
                          found.empty() ? "" : "; it is a " + found + " directory"),
              kind == "data"  ? "create one with `plumb data`"
              : kind == "run" ? "create one with `plumb train`"
                              : "");
}

MappedFile::MappedFile(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY);
  struct stat status {};
  if (descriptor < 0 || ::fstat(descriptor, &status) != 0) {
    if (descriptor >= 0) ::close(descriptor);
    throw Error(fmt::format("{}: cannot be read: {}", path.string(), reason()), "check the path");
  }
  const auto size = static_cast<size_t>(status.st_size);
  void* address = size == 0 ? nullptr : ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  ::close(descriptor);
  if (address == MAP_FAILED) throw Error(fmt::format("{}: cannot be mapped: {}", path.string(), reason()));
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
