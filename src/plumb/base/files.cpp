#include "plumb/base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <streambuf>
#include <utility>

#include "plumb/base/error.h"
#include "plumb/base/json.h"
#include "plumb/base/parse_number.h"
#include "plumb/base/text_encoding.h"

namespace plumb {
namespace fs = std::filesystem;
namespace {

constexpr const char* kMarker = "plumb.json";
constexpr std::string_view kTemporary = ".tmp-";  // in the names of unfinished files and directories
constexpr std::string_view kOld = ".old-";        // in the names of directories being replaced
constexpr const char* kUnfinished = ".plumb-unfinished";

std::string reason() { return std::strerror(errno); }

/// A name next to `path` that is unique to this process.
fs::path name_beside(const fs::path& path, std::string_view ending) {
  fs::path name = path.has_filename() ? path : path.parent_path();
  return name.concat(fmt::format("{}{}", ending, ::getpid()));
}

fs::path parent_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

/// The target of a symbolic link, whether or not it exists; any other path unchanged.
fs::path followed(fs::path path) {
  for (int links = 0; fs::is_symlink(path); ++links) {
    if (links == 40) throw Error(fmt::format("{}: too many levels of symbolic links", path.string()));
    path = path.parent_path() / fs::read_symlink(path);
  }
  return path;
}

/// An open file, closed at the end of the scope.
class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  ~Descriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  [[nodiscard]] bool is_open() const { return descriptor_ >= 0; }
  [[nodiscard]] int get() const { return descriptor_; }

  /// Makes the data survive a power failure. Returns true on file systems that do not support this.
  [[nodiscard]] bool sync() const { return ::fsync(descriptor_) == 0 || errno == EINVAL || errno == ENOTSUP; }
  /// Some file systems report lost data only here.
  [[nodiscard]] bool close() { return ::close(std::exchange(descriptor_, -1)) == 0; }

 private:
  int descriptor_;
};

/// A stream buffer that writes to a descriptor. Unlike that of std::ofstream, it keeps the errno of a failure.
class DescriptorBuffer final : public std::streambuf {
 public:
  explicit DescriptorBuffer(int descriptor) : descriptor_(descriptor), buffer_(size_t{1} << 16) { restart(); }
  /// The errno of the first write that failed, or 0.
  [[nodiscard]] int failure() const { return failure_; }

 protected:
  int_type overflow(int_type c) override {
    if (sync() != 0) return traits_type::eof();
    return traits_type::eq_int_type(c, traits_type::eof()) ? traits_type::not_eof(c) : sputc(static_cast<char>(c));
  }
  int sync() override {
    for (const char* next = pbase(); next < pptr() && failure_ == 0;) {
      const ssize_t count = ::write(descriptor_, next, static_cast<size_t>(pptr() - next));
      if (count > 0) next += count;
      if (count < 0 && errno != EINTR) failure_ = errno;
    }
    restart();
    return failure_ == 0 ? 0 : -1;
  }

 private:
  void restart() { setp(buffer_.data(), buffer_.data() + buffer_.size()); }

  int descriptor_;
  int failure_ = 0;
  std::vector<char> buffer_;
};

/// Opens `path` with `flags`, lets `write` fill it, and makes sure that everything was written.
void write_checked(const fs::path& path, int flags, const std::string& name,
                   const std::function<void(std::ostream&)>& write) {
  constexpr mode_t kMode = 0666;  // minus the umask
  Descriptor file(::open(path.c_str(), flags | O_WRONLY | O_CLOEXEC, kMode));
  if (!file.is_open())
    throw Error(fmt::format("{}: cannot be written: {}", name, reason()), "check the directory's permissions");
  DescriptorBuffer buffer(file.get());
  std::ostream out(&buffer);
  write(out);
  out.flush();
  if (buffer.failure() != 0) errno = buffer.failure();
  if (!out || !file.sync() || !file.close())
    throw Error(fmt::format("{}: writing failed: {}", name, reason()), "is the disk full?");
}

/// Makes the names in a directory survive a power failure. Throws Error on failure.
void sync_directory(const fs::path& path) {
  Descriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.is_open() || !directory.sync() || !directory.close())
    throw Error(fmt::format("{}: cannot be synced: {}", path.string(), reason()));
}

/// Reads a file or a pipe to its end. Throws Error if reading fails.
std::string read_all(int descriptor, const std::string& name) {
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
    if (count < 0 && errno != EINTR) throw Error(fmt::format("{}: cannot be read: {}", name, reason()));
  }
  content.resize(size);
  return content;
}

/// The kind given in `plumb.json`; empty if the file is missing or was not written by Plumb.
std::string marked_kind(const fs::path& path) {
  if (!fs::exists(path / kMarker)) return {};
  const Json marker = read_json(path / kMarker);
  const bool is_ours = marker.is_object() && marker.contains("kind") && marker["kind"].is_string();
  return is_ours ? marker["kind"].get<std::string>() : std::string();
}

/// True if a directory is empty, or holds only an unfinished marker left by a killed process, or the file that says
/// that it is a temporary one.
bool is_unused(const fs::path& path) {
  const std::string unfinished = std::string(kMarker) + std::string(kTemporary);
  return std::all_of(fs::directory_iterator(path), fs::directory_iterator(), [&](const fs::directory_entry& entry) {
    const std::string name = entry.path().filename().string();
    return name.starts_with(unfinished) || name == kUnfinished;
  });
}

/// Makes is_unfinished() true.
void mark_unfinished(const fs::path& directory) {
  const fs::path mark = directory / kUnfinished;
  const Descriptor file(::open(mark.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
  if (!file.is_open())
    throw Error(fmt::format("{}: cannot be written: {}", mark.string(), reason()), "is the disk full?");
}

/// Removes a directory so that a kill leaves it unfinished.
void remove_unfinished(const fs::path& directory) {
  mark_unfinished(directory);
  std::vector<fs::path> contents;
  for (const auto& entry : fs::directory_iterator(directory))
    if (entry.path().filename() != kUnfinished) contents.push_back(entry.path());
  for (const fs::path& each : contents) fs::remove_all(each);
  fs::remove_all(directory);
}

/// Removes the unfinished directories NAME.tmp-PID next to `path` whose processes have died.
void remove_abandoned(const fs::path& path) {
  if (!fs::is_directory(parent_of(path))) return;
  const std::string prefix = path.filename().string() + std::string(kTemporary);
  std::vector<fs::path> abandoned;
  for (const auto& entry : fs::directory_iterator(parent_of(path))) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix) || !is_unfinished(entry.path())) continue;
    const int64_t process = parse_number<int64_t>(std::string_view(name).substr(prefix.size())).value_or(0);
    if (process > 0 && ::kill(static_cast<pid_t>(process), 0) != 0 && errno == ESRCH) abandoned.push_back(entry.path());
  }
  for (const fs::path& each : abandoned) remove_unfinished(each);
}

/// Renames the directory `fresh` to `path`; returns the new location of the replaced one.
fs::path replace_directory(const fs::path& path, const fs::path& fresh) {
  // rename() cannot replace a directory that contains files, so the two directories are exchanged atomically.
  if (::renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0) return fresh;
  // NFS, 9p, FUSE and others do not support this.
  fs::path old = name_beside(path, kOld);
  fs::rename(path, old);
  std::error_code failure;
  fs::rename(fresh, path, failure);
  if (!failure) return old;
  std::error_code ignored;
  fs::rename(old, path, ignored);
  throw Error(fmt::format("{}: cannot be replaced: {}", path.string(), failure.message()));
}

/// Completes or undoes a replacement of `path` that was interrupted within replace_directory.
void settle_replacement(const fs::path& path) {
  if (!fs::is_directory(parent_of(path))) return;
  const std::string prefix = path.filename().string() + std::string(kOld);
  std::vector<fs::path> left;
  for (const auto& entry : fs::directory_iterator(parent_of(path)))
    if (entry.path().filename().string().starts_with(prefix)) left.push_back(entry.path());
  for (const fs::path& old : left) fs::exists(path) ? void(fs::remove_all(old)) : fs::rename(old, path);
}

}  // namespace

std::string read_file(const fs::path& path) {
  if (fs::is_directory(path)) throw Error(fmt::format("{}: is a directory, not a file", path.string()));
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) throw Error(fmt::format("{}: cannot be read: {}", path.string(), reason()), "check the path");
  return read_all(file.get(), path.string());
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

std::vector<std::string> read_lines(const fs::path& path) { return lines_of(read_file(path), path.string()); }

std::vector<std::string> read_standard_input() {
  return lines_of(read_all(STDIN_FILENO, "standard input"), "standard input");
}

void write_file_atomic(const fs::path& given, const std::function<void(std::ostream&)>& write) {
  if (fs::is_directory(given)) throw Error(fmt::format("{}: is a directory, not a file name", given.string()));
  const fs::path path = followed(given);                 // the link stays, its target changes
  if (fs::exists(path) && !fs::is_regular_file(path)) {  // a device or a pipe is written to, never replaced
    write_checked(path, 0, path.string(), write);
    return;
  }
  if (path.has_parent_path()) fs::create_directories(path.parent_path());
  const fs::path temporary = name_beside(path, kTemporary);
  try {
    write_checked(temporary, O_CREAT | O_TRUNC, path.string(), write);
    fs::rename(temporary, path);
    sync_directory(parent_of(path));
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

void check_output_file(const fs::path& given) {
  if (fs::is_directory(given)) throw Error(fmt::format("{}: is a directory, not a file name", given.string()));
  const fs::path path = followed(given);
  const auto refuse = [&] {
    throw Error(fmt::format("{}: cannot be written: {}", given.string(), reason()), "choose another file");
  };
  if (fs::exists(path) && ::access(path.c_str(), W_OK) != 0) refuse();
  if (fs::exists(path) && !fs::is_regular_file(path)) return;
  // Missing folders will be created; a file must be creatable in the first one that exists.
  fs::path folder = parent_of(path);
  while (!fs::exists(folder) && folder.has_parent_path() && folder != folder.parent_path())
    folder = folder.parent_path();
  if (!fs::exists(folder)) folder = ".";
  const fs::path trial = name_beside(folder / path.filename(), kTemporary);
  const Descriptor file(::open(trial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.is_open()) refuse();
  ::unlink(trial.c_str());
}

void write_directory_atomic(const fs::path& given, const std::function<void(const fs::path&)>& fill) {
  const fs::path path = followed(given.has_filename() ? given : given.parent_path());  // "dir/" is "dir"
  settle_replacement(path);
  remove_abandoned(path);
  const fs::path temporary = name_beside(path, kTemporary);
  fs::remove_all(temporary);
  fs::create_directories(temporary);
  try {
    mark_unfinished(temporary);
    fill(temporary);
    fs::remove(temporary / kUnfinished);
    sync_directory(temporary);
    if (fs::exists(path)) {
      remove_unfinished(replace_directory(path, temporary));
    } else {
      fs::rename(temporary, path);
    }
    sync_directory(parent_of(path));
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(temporary, ignored);
    throw;
  }
}

bool is_unfinished(const fs::path& directory) {
  std::error_code ignored;
  return fs::is_directory(directory, ignored) && fs::exists(directory / kUnfinished, ignored);
}

void clear_unfinished(const fs::path& directory) {
  if (!fs::is_directory(directory)) return;
  std::vector<fs::path> temporary, replaced;
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (name.find(kTemporary) != std::string::npos) temporary.push_back(entry.path());
    if (const size_t end = name.find(kOld); end != std::string::npos)
      replaced.push_back(directory / name.substr(0, end));
  }
  for (const fs::path& path : temporary) fs::remove_all(path);
  for (const fs::path& path : replaced) settle_replacement(path);
}

namespace {

/// "a run directory", "an export directory".
std::string directory_of(std::string_view kind) {
  const bool vowel = !kind.empty() && std::string_view("aeiou").find(kind.front()) != std::string_view::npos;
  return fmt::format("{} {} directory", vowel ? "an" : "a", kind);
}

}  // namespace

bool claim_output_directory(const fs::path& path, std::string_view kind) {
  require_utf8(path);
  if (fs::exists(path) && !fs::is_directory(path)) {
    throw Error(fmt::format("{}: is a file, not an output directory", path.string()), "choose another --out");
  }
  if (fs::exists(path) && !is_unused(path)) {
    const std::string found = marked_kind(path);
    if (found == kind) return true;
    throw Error(found.empty()
                    ? fmt::format("{}: exists and was not created by Plumb", path.string())
                    : fmt::format("{}: is {}, not {}", path.string(), directory_of(found), directory_of(kind)),
                "choose another --out; nothing was changed");
  }
  fs::create_directories(followed(path));
  Json marker = make_document("directory", 1);
  marker["kind"] = kind;
  write_json(path / kMarker, marker);
  return false;
}

void check_output_directory(const fs::path& path, std::string_view kind) {
  if (path.empty()) throw Error("no output directory given", "give --out DIR");
  require_utf8(path);
  // Claiming an existing output directory changes nothing; claiming an absent or empty one would write to it.
  if (fs::exists(path) && !(fs::is_directory(path) && is_unused(path))) claim_output_directory(path, kind);
}

void require_directory(const fs::path& path, std::string_view kind) {
  if (fs::is_regular_file(path) && kind == "data")
    throw Error(fmt::format("{}: is a file, not a data directory", path.string()),
                "make one from it: `plumb data text --train " + path.string() + " --out DIR`, or another `plumb data`");
  if (!fs::is_directory(path)) throw Error(fmt::format("{}: no such directory", path.string()), "check the path");
  const std::string found = marked_kind(path);
  if (found == kind) return;
  throw Error(fmt::format("{}: is not {}{}", path.string(), directory_of(kind),
                          found.empty() ? "" : "; it is " + directory_of(found)),
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
