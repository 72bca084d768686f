#include "plumb/base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/stat.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <streambuf>
#include <utility>
#include <vector>

#include "plumb/base/error.h"
#include "plumb/base/input.h"
#include "plumb/base/json.h"
#include "plumb/base/machine.h"

namespace plumb {
namespace fs = std::filesystem;
namespace {

constexpr const char* kMarker = "plumb.json";
constexpr std::string_view kTemporary = ".plumb-tmp-";  // before the digits of a temporary name
constexpr size_t kTemporaryDigits = 16;
constexpr const char* kUnfinished = ".plumb-unfinished";  // in a directory that is being filled or removed
constexpr const char* kReplaced = ".plumb-replaced";      // in a directory whose replacement is ready

std::string reason() { return std::strerror(errno); }

fs::path parent_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

/// NAME, if this is a temporary name beside NAME.
std::optional<std::string> name_before(const std::string& temporary) {
  const size_t end = temporary.size() - std::min(temporary.size(), kTemporary.size() + kTemporaryDigits);
  const std::string_view ending = std::string_view(temporary).substr(end);
  const bool exact = end > 0 && ending.starts_with(kTemporary) &&
                     ending.substr(kTemporary.size()).find_first_not_of("0123456789abcdef") == std::string_view::npos;
  return exact ? std::optional(temporary.substr(0, end)) : std::nullopt;
}

/// The entries of a directory with temporary names, and the names that these stand for.
std::vector<std::pair<fs::path, std::string>> temporaries_in(const fs::path& directory) {
  std::vector<std::pair<fs::path, std::string>> temporaries;
  if (!fs::is_directory(directory)) return temporaries;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (const auto name = name_before(entry.path().filename().string())) temporaries.emplace_back(entry.path(), *name);
  }
  return temporaries;
}

/// The target of a symbolic link, whether or not it exists; any other path unchanged.
fs::path followed(fs::path path) {
  for (int links = 0; fs::is_symlink(path); ++links) {
    if (links == 40) throw Error(fmt::format("{}: too many levels of symbolic links", path.string()));
    path = path.parent_path() / fs::read_symlink(path);
  }
  return path;
}

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
    const std::string_view text(pbase(), static_cast<size_t>(pptr() - pbase()));
    if (failure_ == 0 && !write_all(descriptor_, text)) failure_ = errno;
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
void write_checked(const fs::path& path, int flags, mode_t mode, const std::string& name,
                   const std::function<void(std::ostream&)>& write) {
  Descriptor file(::open(path.c_str(), flags | O_WRONLY | O_CLOEXEC | O_NOCTTY, 0666));  // minus the umask
  if (!file.is_open() || (mode != 0 && ::fchmod(file.get(), mode) != 0))
    throw Error(fmt::format("{}: cannot be written: {}", name, reason()), "check the directory's permissions");
  DescriptorBuffer buffer(file.get());
  std::ostream out(&buffer);
  write(out);
  out.flush();
  if (buffer.failure() != 0) errno = buffer.failure();
  if (!out || !file.sync() || !file.close()) throw write_failure(name);
}

/// Makes the names in a directory survive a power failure. Throws Error on failure.
void sync_directory(const fs::path& path) {
  Descriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.is_open() || !directory.sync() || !directory.close())
    throw Error(fmt::format("{}: cannot be synced: {}", path.string(), reason()));
}

/// Creates a directory and those above it that are missing, all of which then survive a power failure.
void make_directories(const fs::path& path) {
  std::vector<fs::path> parents;
  for (fs::path each = path; !each.empty() && !fs::is_directory(each); each = each.parent_path())
    parents.push_back(parent_of(each));
  if (parents.empty()) return;
  fs::create_directories(path);
  for (const fs::path& parent : parents) sync_directory(parent);
}

/// The kind given in `plumb.json`; empty if the file is missing or was not written by Plumb.
std::string marked_kind(const fs::path& path) {
  if (!fs::exists(path / kMarker)) return {};
  const Json marker = read_json(path / kMarker, kSettingsFile);
  const bool is_ours = marker.is_object() && marker.contains("kind") && marker["kind"].is_string();
  return is_ours ? marker["kind"].get<std::string>() : std::string();
}

/// "a run directory", "an export directory".
std::string directory_of(std::string_view kind) {
  const bool vowel = !kind.empty() && std::string_view("aeiou").find(kind.front()) != std::string_view::npos;
  return fmt::format("{} {} directory", vowel ? "an" : "a", kind);
}

/// Throws Error that says what a directory is, where one of this kind belongs.
[[noreturn]] void refuse_directory(const fs::path& path, std::string_view kind) {
  const std::string found = marked_kind(path);
  throw Error(found.empty() ? fmt::format("{}: exists and was not created by Plumb", path.string())
                            : fmt::format("{}: is {}, not {}", path.string(), directory_of(found), directory_of(kind)),
              "choose another --out; nothing was changed");
}

/// True if a directory is empty, or holds only an unfinished mark that a killed process has left, or the file that says
/// that it is a temporary one.
bool is_unused(const fs::path& path) {
  return std::all_of(fs::directory_iterator(path), fs::directory_iterator(), [](const fs::directory_entry& entry) {
    const std::string name = entry.path().filename().string();
    return name_before(name) == kMarker || name == kUnfinished;
  });
}

/// Whether a directory may be replaced by a new one of this kind.
bool is_replaceable(const fs::path& path, std::string_view kind) {
  if (is_unused(path) || marked_kind(path) == kind) return true;
  return kind == "checkpoint" && (fs::is_regular_file(path / "state.json") || fs::exists(path / "model.safetensors"));
}

/// Where this machine has been running since its start, which other machines have not.
std::string boot_id() {
  std::string id;
  try {
    id = read_file("/proc/sys/kernel/random/boot_id", kSettingsFile);
  } catch (const Error&) {  // without /proc, all machines look alike
  }
  return fmt::format("plumb {}\n", id);
}

/// Opens the mark of a directory, which is created if it is missing.
Descriptor open_mark(const fs::path& mark) {
  Descriptor file(::open(mark.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666));
  if (!file.is_open())
    throw Error(fmt::format("{}: cannot be written: {}", mark.string(), reason()), "is the disk full?");
  return file;
}

/// Makes is_unfinished() true. Whoever holds the result is alive and at work in the directory.
Descriptor mark_unfinished(const fs::path& directory) {
  Descriptor mark = open_mark(directory / kUnfinished);
  (void)mark.lock();  // without locks, the directory counts as abandoned after a day
  const std::string id = boot_id();
  if (::pwrite(mark.get(), id.data(), id.size(), 0) != std::ssize(id))
    throw write_failure((directory / kUnfinished).string());
  return mark;
}

bool has_mark(const fs::path& directory, const char* mark) {
  std::error_code ignored;
  return fs::is_directory(fs::symlink_status(directory, ignored)) &&
         fs::is_regular_file(fs::symlink_status(directory / mark, ignored));
}

/// Removes a directory so that a kill leaves it unfinished.
void remove_unfinished(const fs::path& directory) {
  const Descriptor mark = mark_unfinished(directory);
  std::vector<fs::path> contents;
  for (const auto& entry : fs::directory_iterator(directory))
    if (entry.path().filename() != kUnfinished) contents.push_back(entry.path());
  for (const fs::path& each : contents) fs::remove_all(each);
  fs::remove_all(directory);
}

/// Whether nobody is at work any more in an unfinished directory. Its lock tells on one machine, in all of its
/// containers; of other machines that share the file system it may not, so theirs count after a day.
bool is_abandoned(const fs::path& directory) {
  const fs::path path = directory / kUnfinished;
  const Descriptor mark(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (!mark.is_open() || ::fstat(mark.get(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  const auto age = std::chrono::system_clock::now() - std::chrono::system_clock::from_time_t(status.st_mtime);
  const bool old = age > std::chrono::hours(24);
  if (!mark.lock()) return errno != EWOULDBLOCK && old;
  return old || status.st_size == 0 || read_file(path, kSettingsFile) == boot_id();
}

/// Removes the unfinished directories that killed calls for `path` have left, and completes or undoes a replacement
/// that was interrupted.
void settle(const fs::path& path) {
  for (const auto& [temporary, name] : temporaries_in(parent_of(path))) {
    if (name != path.filename()) continue;
    if (has_mark(temporary, kUnfinished) && is_abandoned(temporary)) {
      remove_unfinished(temporary);
    } else if (has_mark(temporary, kReplaced) && fs::exists(fs::symlink_status(path))) {
      remove_unfinished(temporary);
    } else if (has_mark(temporary, kReplaced)) {
      fs::rename(temporary, path);
    }
  }
  if (has_mark(path, kReplaced)) fs::remove(path / kReplaced);
}

/// Renames the directory `fresh` to `path`, and removes the one that was there.
void replace_directory(const fs::path& path, const fs::path& fresh) {
  (void)open_mark(path / kReplaced);
  // rename() cannot replace a directory that contains files, so the two directories are exchanged atomically.
  if (::renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0)
    return remove_unfinished(fresh);
  // NFS, 9p, FUSE and others do not support this.
  const fs::path old = temporary_beside(path);
  fs::rename(path, old);
  std::error_code failure;
  fs::rename(fresh, path, failure);
  if (!failure) return remove_unfinished(old);
  std::error_code ignored;
  fs::rename(old, path, ignored);
  fs::remove(path / kReplaced, ignored);
  throw Error(fmt::format("{}: cannot be replaced: {}", path.string(), failure.message()));
}

/// Whether a directory cannot be renamed, being a mount point, or should not be, being where somebody works.
bool stays_in_place(const fs::path& path) {
  struct statx status {};
  if (::statx(AT_FDCWD, path.c_str(), 0, STATX_BASIC_STATS, &status) == 0 &&
      (status.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0)
    return true;
  std::error_code ignored;
  return fs::equivalent(path, ".", ignored);
}

/// Moves what is in `fresh` into the empty directory `path`, the mark last.
void move_into(const fs::path& path, const fs::path& fresh) {
  const Descriptor mark = mark_unfinished(path);
  std::vector<fs::path> names;
  for (const auto& entry : fs::directory_iterator(fresh)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end(), [](const fs::path& a, const fs::path& b) {
    return std::pair(a == kMarker, a) < std::pair(b == kMarker, b);
  });
  for (const fs::path& name : names) fs::rename(fresh / name, path / name);
  fs::remove(fresh);
  fs::remove(path / kUnfinished);
}

/// The path of a directory as its parent has it: "dir/" is "dir", and "." has a name.
fs::path named(const fs::path& given) {
  const fs::path path = given.has_filename() ? given : given.parent_path();
  return path.filename() == "." || path.filename() == ".." ? fs::canonical(path) : path;
}

/// Throws Error unless a directory of this kind can be written at `path`.
void require_replaceable(const fs::path& path, std::string_view kind) {
  if (!fs::exists(fs::symlink_status(path))) return;
  if (fs::is_symlink(path))
    throw Error(fmt::format("{}: is a symbolic link, which is not followed here", path.string()), "remove the link");
  if (!fs::is_directory(path)) throw Error(fmt::format("{}: is a file, not a directory", path.string()));
  // A checkpoint with this mark was about to be removed when the process was killed.
  if (kind != "checkpoint" && has_mark(path, kUnfinished) && !is_unused(path))
    throw Error(fmt::format("{}: holds what a killed command had begun to move there", path.string()),
                "empty it, and start again");
  if (!is_replaceable(path, kind)) refuse_directory(path, kind);
  if (stays_in_place(path) && !is_unused(path))
    throw Error(
        fmt::format("{}: cannot be replaced, since it is a mount point or the current directory", path.string()),
        "empty it, or choose a directory in it");
}

}  // namespace

std::string file_stamp(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  return fmt::format("{}.{}.{}.{}", status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ino);
}

fs::path temporary_beside(const fs::path& path) {
  fs::path name = path.has_filename() ? path : path.parent_path();
  return name.concat(kTemporary).concat(random_token().substr(0, kTemporaryDigits));
}

ScratchDirectory::ScratchDirectory() {
  std::string name = (fs::temp_directory_path() / "plumb-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    throw Error(fmt::format("{}: no directory can be made there", fs::temp_directory_path().string()),
                "set TMPDIR to a directory that can be written");
  path_ = name;
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void write_file_atomic(const fs::path& path, const std::function<void(std::ostream&)>& write) {
  if (fs::is_directory(path)) throw Error(fmt::format("{}: is a directory, not a file name", path.string()));
  make_directories(path.parent_path());
  struct stat status {};
  const bool exists = ::lstat(path.c_str(), &status) == 0, replaces = exists && S_ISREG(status.st_mode);
  if (exists && !replaces && !S_ISLNK(status.st_mode))
    throw Error(fmt::format("{}: is a device or a pipe, which is not replaced by a file", path.string()), "remove it");
  const fs::path temporary = temporary_beside(path);
  try {
    write_checked(temporary, O_CREAT | O_EXCL | O_NOFOLLOW, replaces ? status.st_mode & 07777U : 0, path.string(),
                  write);
    fs::rename(temporary, path);
    sync_directory(parent_of(path));
  } catch (...) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    throw;
  }
}

namespace {

std::function<void(std::ostream&)> writes(std::string_view content) {
  return [content](std::ostream& out) { out.write(content.data(), static_cast<std::streamsize>(content.size())); };
}

/// Whether something that is no file, such as a device or a pipe, is at `path`, possibly behind links.
bool is_special(const fs::path& path) {
  return fs::exists(path) && !fs::is_regular_file(path) && !fs::is_directory(path);
}

}  // namespace

void write_file_atomic(const fs::path& path, std::string_view content) { write_file_atomic(path, writes(content)); }

void write_output_file(const fs::path& path, const std::function<void(std::ostream&)>& write) {
  if (is_special(path)) return write_checked(path, 0, 0, path.string(), write);
  write_file_atomic(followed(path), write);
}

void write_output_file(const fs::path& path, std::string_view content) { write_output_file(path, writes(content)); }

void check_output_file(const fs::path& given) {
  if (fs::is_directory(given)) throw Error(fmt::format("{}: is a directory, not a file name", given.string()));
  const auto refuse = [&] {
    throw Error(fmt::format("{}: cannot be written: {}", given.string(), reason()), "choose another file");
  };
  if (fs::exists(given) && ::access(given.c_str(), W_OK) != 0) refuse();
  if (is_special(given)) return;
  const fs::path path = followed(given);
  // Missing folders will be created; a file must be creatable in the first one that exists.
  fs::path folder = parent_of(path);
  while (!fs::exists(folder) && folder.has_parent_path() && folder != folder.parent_path())
    folder = folder.parent_path();
  if (!fs::exists(folder)) folder = ".";
  const fs::path trial = temporary_beside(folder / path.filename());
  const Descriptor file(::open(trial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.is_open()) refuse();
  ::unlink(trial.c_str());
}

void write_directory_atomic(const fs::path& given, std::string_view kind,
                            const std::function<void(const fs::path&)>& fill, Links links) {
  const fs::path path = links == Links::followed ? named(followed(named(given))) : named(given);
  settle(path);
  settle(path / "contents");
  require_replaceable(path, kind);
  const bool in_place = fs::exists(path) && stays_in_place(path);
  const fs::path temporary = temporary_beside(in_place ? path / "contents" : path);
  make_directories(temporary.parent_path());
  fs::create_directory(temporary);
  try {
    const Descriptor mark = mark_unfinished(temporary);
    fill(temporary);
    fs::remove(temporary / kUnfinished);
    sync_directory(temporary);
    if (in_place) {
      move_into(path, temporary);
      sync_directory(path);
    } else if (fs::exists(path)) {
      replace_directory(path, temporary);
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

void remove_directory_atomic(const fs::path& path) {
  if (fs::is_symlink(path)) return void(fs::remove(path));
  const Descriptor mark = mark_unfinished(path);
  const fs::path doomed = temporary_beside(path);
  fs::rename(path, doomed);
  remove_unfinished(doomed);
}

bool is_unfinished(const fs::path& directory) { return has_mark(directory, kUnfinished); }

void clear_unfinished(const fs::path& directory) {
  for (const auto& [temporary, name] : temporaries_in(directory)) {
    if (has_mark(temporary, kUnfinished)) remove_unfinished(temporary);
  }
  for (const auto& [temporary, name] : temporaries_in(directory)) settle(directory / name);
  // The rest are files, and directories whose process was killed before it made the mark, or after it removed the mark
  // and before the rename.
  for (const auto& [temporary, name] : temporaries_in(directory)) {
    const auto status = fs::symlink_status(temporary);
    if (fs::is_directory(status)) remove_unfinished(temporary);
    if (fs::is_regular_file(status)) fs::remove(temporary);
  }
}

bool claim_output_directory(const fs::path& path, std::string_view kind) {
  require_utf8(path);
  if (fs::exists(path) && !fs::is_directory(path)) {
    throw Error(fmt::format("{}: is a file, not an output directory", path.string()), "choose another --out");
  }
  if (fs::exists(path) && !is_unused(path)) {
    if (marked_kind(path) == kind) return true;
    refuse_directory(path, kind);
  }
  make_directories(followed(path));
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

}  // namespace plumb
