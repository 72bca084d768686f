// Atomic file output, memory-mapped input, and output directories that never overwrite anything else.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plumb {

/// The whole content of a file. Throws Error if it cannot be read.
std::string read_file(const std::filesystem::path& path);

/// The lines of a text file, without line ends (LF or CRLF); a byte-order mark is dropped.
/// Throws Error naming the first line that is not valid UTF-8.
std::vector<std::string> read_lines(const std::filesystem::path& path);

/// The same for standard input, to its end.
std::vector<std::string> read_standard_input();

/// Throws Error if a path is not valid UTF-8, and so cannot be recorded in Plumb's files.
void require_utf8(const std::filesystem::path& path);

/// True if `text` is well-formed UTF-8 (no overlong forms, no surrogates).
bool is_valid_utf8(std::string_view text);

/// Calls `write` with a stream to a temporary file next to `path`, then syncs and renames it to `path`. If anything
/// throws, the temporary file is removed and `path` is unchanged. Symbolic links are followed; devices and pipes are
/// written to directly.
void write_file_atomic(const std::filesystem::path& path, const std::function<void(std::ostream&)>& write);
void write_file_atomic(const std::filesystem::path& path, std::string_view content);

/// Throws Error if no file can be written at `path`. Call it before a long computation whose result goes there; leaves
/// no files.
void check_output_file(const std::filesystem::path& path);

/// Calls `fill` with a new temporary directory next to `path`, then renames it to `path`, replacing any previous
/// directory. A symbolic link is followed. Killing the process at any time leaves either the old or the new directory;
/// on file systems that cannot exchange two names (NFS, 9p, FUSE), a kill between two renames leaves the old one under
/// a temporary name, and the next call, or `clear_unfinished`, restores it. The next call also removes the temporary
/// directories that killed calls for the same path have left (see `is_unfinished`).
void write_directory_atomic(const std::filesystem::path& path,
                            const std::function<void(const std::filesystem::path&)>& fill);

/// Whether a directory is a temporary one that `write_directory_atomic` is filling or removing, or has left behind when
/// it was killed. A file in it says so.
bool is_unfinished(const std::filesystem::path& directory);

/// Removes the temporary files that killed processes left in `directory`, and restores a directory that one of them was
/// replacing. No other process may be writing there.
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

/// A file mapped read-only into memory for as long as the object lives.
class MappedFile {
 public:
  /// Throws Error if the file cannot be read.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace plumb
