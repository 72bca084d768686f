// Writes a file of token sequences pair by pair.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <span>

namespace plumb {

/// A temporary file for bytes that are appended and then read; removed by the destructor.
class SpillFile {
 public:
  /// Throws Error if the file cannot be created.
  explicit SpillFile(std::filesystem::path path);
  ~SpillFile();
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  /// Throws Error if writing fails.
  void append(std::span<const std::byte> bytes);

  /// Passes everything that was appended to `take`, in blocks. Throws Error if writing or reading fails.
  void read(const std::function<void(std::span<const std::byte>)>& take);

 private:
  std::filesystem::path path_;
  std::ofstream out_;
  uint64_t size_ = 0;
};

/// Writes a split with only one pair in memory at a time: ids and offsets go to temporary files beside it, which
/// `finish` joins. Throws Error if writing fails.
class SplitWriter {
 public:
  /// Creates the parent directory and the temporary files.
  explicit SplitWriter(std::filesystem::path path);

  /// Appends a pair of sequences, without special tokens.
  void add(std::span<const int32_t> source, std::span<const int32_t> target);

  /// The number of pairs so far.
  [[nodiscard]] int64_t size() const { return static_cast<int64_t>(pairs_); }

  /// Writes the file atomically. Called once, after the last pair.
  void finish();

 private:
  /// One side: where each sequence begins, and the ids.
  struct Side {
    explicit Side(const std::filesystem::path& prefix);
    void add(std::span<const int32_t> ids);
    SpillFile offsets, ids;
    uint64_t tokens = 0;
  };

  std::filesystem::path path_;
  Side source_, target_;
  uint64_t pairs_ = 0;
};

}  // namespace plumb
