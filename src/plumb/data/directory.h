// A prepared data directory: the tokenizers, the splits as token ids, and their text. docs/formats/data.md describes
// the files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "plumb/base/json.h"
#include "plumb/data/split.h"
#include "plumb/text/tokenizer.h"

namespace plumb {

class DataDirectory {
 public:
  /// Throws Error if `path` is not a data directory, or if a tokenizer or a split's tokens are missing or do not match
  /// data.json. The checksum of a split is verified when it is first requested.
  static DataDirectory open(const std::filesystem::path& path);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  /// "translation", "language-modeling" or "classification".
  [[nodiscard]] const std::string& task() const { return task_; }

  /// "train", "valid", then the test sets in the order given.
  [[nodiscard]] std::vector<std::string> split_names() const;
  [[nodiscard]] bool has_split(const std::string& name) const { return splits_.count(name) != 0; }

  /// Throws Error if there is no such split (the hint lists the existing ones) or if its file is damaged.
  [[nodiscard]] const Split& split(const std::string& name) const;

  /// Whether both sides share one tokenizer.
  [[nodiscard]] bool joint() const { return joint_; }
  [[nodiscard]] const Tokenizer& source_tokenizer() const { return source_tokenizer_; }
  [[nodiscard]] const Tokenizer& target_tokenizer() const { return target_tokenizer_; }
  [[nodiscard]] int64_t source_vocabulary() const { return source_tokenizer_.vocabulary(); }
  [[nodiscard]] int64_t target_vocabulary() const { return target_tokenizer_.vocabulary(); }

  /// The text of a split: line i belongs to pair i. Throws Error if the split is unknown, or if its text is missing (as
  /// for blocks of running text) or does not match.
  [[nodiscard]] std::vector<std::string> raw_source(const std::string& name) const { return lines_of(name, "source"); }
  [[nodiscard]] std::vector<std::string> raw_target(const std::string& name) const { return lines_of(name, "target"); }

  /// The label names by id; empty unless the task is classification.
  [[nodiscard]] const std::vector<std::string>& labels() const { return labels_; }

  /// The label of each example in a split, as an index into labels(). Throws Error if the split is unknown, the data
  /// have no labels, or the file does not match the split.
  [[nodiscard]] std::vector<int32_t> labels_of(const std::string& name) const;

  /// The contents of data.json.
  [[nodiscard]] const Json& info() const { return info_; }

 private:
  DataDirectory(std::filesystem::path path, Json info, bool joint, Tokenizer source, Tokenizer target);
  /// The lines of splits/NAME.ENDING, one per example. Throws Error if their number is wrong.
  [[nodiscard]] std::vector<std::string> lines_of(const std::string& name, const std::string& ending) const;
  [[nodiscard]] const Split& mapped(const std::string& name) const;

  std::filesystem::path path_;
  Json info_;
  std::string task_;
  std::vector<std::string> labels_;
  bool joint_;
  Tokenizer source_tokenizer_, target_tokenizer_;
  std::map<std::string, Split> splits_;
};

}  // namespace plumb
