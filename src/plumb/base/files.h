// Atomic file output, and output directories that never overwrite anything else.
#pragma once

#include <filesystem>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>

namespace plumb {

/// The name of a file or directory that is being written beside `path`, which nobody can guess:
/// NAME.plumb-tmp-0123456789abcdef.
std::filesystem::path temporary_beside(const std::filesystem::path& path);

/// A new directory for files that nobody keeps, in TMPDIR or else /tmp; it goes with the object.
class ScratchDirectory {
 public:
  /// Throws Error if it cannot be made.
  ScratchDirectory();
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Changes whenever somebody writes into a file or replaces it; empty if there is no file.
std::string file_stamp(const std::filesystem::path& path);

/// Calls `write` with a stream to a temporary file next to `path`, then syncs and renames it to `path`. If anything
/// throws, the temporary file is removed and `path` is unchanged. A symbolic link is replaced, never followed; a file
/// that is replaced hands on its permissions. Throws Error if a device or a pipe is there.
void write_file_atomic(const std::filesystem::path& path, const std::function<void(std::ostream&)>& write);
void write_file_atomic(const std::filesystem::path& path, std::string_view content);

/// The same for a file that somebody named on the command line: a symbolic link stays, and what it leads to is
/// replaced; devices and pipes are written to directly.
void write_output_file(const std::filesystem::path& path, const std::function<void(std::ostream&)>& write);
void write_output_file(const std::filesystem::path& path, std::string_view content);

/// Throws Error if no output file can be written at `path`. Call it before a long computation whose result goes there;
/// leaves no files.
void check_output_file(const std::filesystem::path& path);

/// What a symbolic link at the path of an output is: the user's own, named on the command line, or, within a directory
/// that may have come from elsewhere, an error.
enum class Links { refused, followed };

/// Calls `fill` with a new temporary directory next to `path`, then renames it to `path`, replacing a previous
/// directory that carries the mark of the same `kind` (see claim_output_directory), or is empty. Killing the process at
/// any time leaves either the old or the new directory; on file systems that cannot exchange two names (NFS, 9p, FUSE),
/// a kill between two renames leaves the old one under a temporary name, and the next call, or `clear_unfinished`,
/// restores it. The next call also removes the temporary directories that killed calls for the same path have left (see
/// `is_unfinished`). An empty mount point, or the empty current directory, cannot be replaced: what was filled is moved
/// into it. Throws Error, before it calls `fill`, if there is anything else at `path`.
void write_directory_atomic(const std::filesystem::path& path, std::string_view kind,
                            const std::function<void(const std::filesystem::path&)>& fill,
                            Links links = Links::refused);

/// Removes a directory that Plumb has made; a kill leaves it intact or under a temporary name, which
/// `clear_unfinished` removes. A symbolic link is removed itself.
void remove_directory_atomic(const std::filesystem::path& path);

/// Whether a directory is a temporary one that `write_directory_atomic` is filling or removing, or has left behind when
/// it was killed. A file in it says so.
bool is_unfinished(const std::filesystem::path& directory);

/// Removes the temporary files and directories that killed processes left in `directory`, by their exact names, and
/// restores a directory that one of them was replacing. No other process may be writing there.
void clear_unfinished(const std::filesystem::path& directory);

/// Makes `path` ready for output of a `kind` ("data", "run", "study"): creates it, or accepts a directory that an
/// earlier call marked with the same kind (file `plumb.json`). Returns true if it was already marked.
/// Throws Error if `path` is a file, a directory that holds something else, or is not valid UTF-8.
bool claim_output_directory(const std::filesystem::path& path, std::string_view kind);

/// Throws Error if a directory of this `kind` cannot be created or claimed at `path`: the path is empty or not valid
/// UTF-8, or is a file or a directory that holds something else. Creates nothing.
void check_output_directory(const std::filesystem::path& path, std::string_view kind);

/// Throws Error unless `path` was claimed as a directory of this `kind`.
void require_directory(const std::filesystem::path& path, std::string_view kind);

}  // namespace plumb
