// One split of a dataset (train, valid, a test set): examples of one or two token sequences in a memory-mapped file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plumb/base/files.h"

namespace plumb {

/// A corpus within a split.
struct CorpusSize {
  std::string name;
  int64_t size = 0;  // pairs, or the examples that a task derives from them

  bool operator==(const CorpusSize&) const = default;
};

/// Examples without special tokens: a source and a target, of which a task may leave one empty. Copies share one
/// mapping.
class Split {
 public:
  /// Maps the file and reads its header. Throws Error if it is missing, does not have the size stated in its header, or
  /// has another format. Call `verify` before reading sequences.
  static Split open(const std::filesystem::path& path);

  /// Reads the entire file and throws Error if its checksum is wrong or its offsets are out of order. Copies share the
  /// result, so a file is read once. Safe to call from several threads.
  void verify() const;

  /// The same sequences, treated as blocks cut out of running text: a batch does not end them with EOS.
  [[nodiscard]] Split as_running_text() const {
    Split copy = *this;
    copy.running_text_ = true;
    return copy;
  }
  [[nodiscard]] bool running_text() const { return running_text_; }

  /// The same sequences, divided into consecutive corpora. Throws Error if the corpora do not add up to size() pairs,
  /// or one of them is empty.
  [[nodiscard]] Split with_corpora(std::vector<CorpusSize> corpora) const;
  /// Empty if there is only one.
  [[nodiscard]] const std::vector<CorpusSize>& corpora() const { return corpora_; }

  /// A checksum of pairs `first` to `first` + `count` − 1, independent of their position in the split.
  [[nodiscard]] uint32_t checksum_of(int64_t first, int64_t count) const;

  /// The number of pairs.
  [[nodiscard]] int64_t size() const { return size_; }

  /// The ids of pair i, 0 ≤ i < size(); valid as long as any copy of this object lives.
  [[nodiscard]] std::span<const int32_t> source(int64_t i) const { return sequence(source_offsets_, source_ids_, i); }
  [[nodiscard]] std::span<const int32_t> target(int64_t i) const { return sequence(target_offsets_, target_ids_, i); }

  /// The number of ids on a side, without special tokens.
  [[nodiscard]] int64_t source_tokens() const { return source_tokens_; }
  [[nodiscard]] int64_t target_tokens() const { return target_tokens_; }

 private:
  Split() = default;
  static std::span<const int32_t> sequence(const uint64_t* offsets, const int32_t* ids, int64_t i) {
    return {ids + offsets[i], ids + offsets[i + 1]};
  }

  struct File;
  std::shared_ptr<File> file_;
  int64_t size_ = 0, source_tokens_ = 0, target_tokens_ = 0;
  bool running_text_ = false;
  std::vector<CorpusSize> corpora_;
  const uint64_t* source_offsets_ = nullptr;  // (size + 1), into file_
  const uint64_t* target_offsets_ = nullptr;
  const int32_t* source_ids_ = nullptr;
  const int32_t* target_ids_ = nullptr;
};

/// Writes a split atomically. Throws Error if the sides differ in their number of sequences.
void write_split(const std::filesystem::path& path, const std::vector<std::vector<int32_t>>& sources,
                 const std::vector<std::vector<int32_t>>& targets);

}  // namespace plumb
