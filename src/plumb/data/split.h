// One split of a dataset (train, valid, a test set): parallel token sequences in a memory-mapped file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "plumb/base/files.h"

namespace plumb {

/// Pairs of token sequences without special tokens. Copies share one mapping.
class ParallelSplit {
 public:
  /// Maps the file and reads its header. Throws Error if it is missing, does not have the size stated in its header, or
  /// is of another kind. Call `verify` before reading sequences.
  static ParallelSplit open(const std::filesystem::path& path);

  /// Reads the entire file and throws Error if it is damaged: the checksum covers every byte. Copies share the result,
  /// so a file is read once. Safe to call from several threads.
  void verify() const;

  /// The same sequences, treated as blocks cut out of running text: a batch does not end them with EOS.
  [[nodiscard]] ParallelSplit as_running_text() const {
    ParallelSplit copy = *this;
    copy.running_text_ = true;
    return copy;
  }
  [[nodiscard]] bool running_text() const { return running_text_; }

  /// The number of pairs.
  [[nodiscard]] int64_t size() const { return size_; }

  /// The ids of pair i, 0 ≤ i < size(); valid as long as any copy of this object lives.
  [[nodiscard]] std::span<const int32_t> source(int64_t i) const { return sequence(source_offsets_, source_ids_, i); }
  [[nodiscard]] std::span<const int32_t> target(int64_t i) const { return sequence(target_offsets_, target_ids_, i); }

  /// All ids of a side, without special tokens.
  [[nodiscard]] int64_t source_tokens() const { return source_tokens_; }
  [[nodiscard]] int64_t target_tokens() const { return target_tokens_; }

 private:
  ParallelSplit() = default;
  static std::span<const int32_t> sequence(const uint64_t* offsets, const int32_t* ids, int64_t i) {
    return {ids + offsets[i], ids + offsets[i + 1]};
  }

  struct File;
  std::shared_ptr<File> file_;
  int64_t size_ = 0, source_tokens_ = 0, target_tokens_ = 0;
  bool running_text_ = false;
  const uint64_t* source_offsets_ = nullptr;  // (size + 1), into file_
  const uint64_t* target_offsets_ = nullptr;
  const int32_t* source_ids_ = nullptr;
  const int32_t* target_ids_ = nullptr;
};

/// Writes a split atomically. Throws Error if the sides differ in their number of sequences.
void write_split(const std::filesystem::path& path, const std::vector<std::vector<int32_t>>& sources,
                 const std::vector<std::vector<int32_t>>& targets);

}  // namespace plumb
