// A prepared data directory: the tokenizers, the splits as token ids, and their text. docs/formats/data.md has the
// files.
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
  /// Throws Error if `path` is no data directory of Plumb's, or a file of it is missing or not of the size that it
  /// says. A split is read through, and its checksum compared, when it is first asked for.
  static DataDirectory open(const std::filesystem::path& path);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  /// What the data are made for: "translation", "language-modeling" or "classification".
  [[nodiscard]] const std::string& task() const { return task_; }

  /// "train", "valid", then the test sets in the order in which they were given.
  [[nodiscard]] std::vector<std::string> split_names() const;
  [[nodiscard]] bool has_split(const std::string& name) const { return splits_.count(name) != 0; }

  /// Throws Error if there is no such split, naming those there are, or if its file is damaged.
  [[nodiscard]] const ParallelSplit& split(const std::string& name) const;

  /// Both sides have one vocabulary: the two tokenizers are the same.
  [[nodiscard]] bool joint() const { return joint_; }
  [[nodiscard]] const Tokenizer& source_tokenizer() const { return source_tokenizer_; }
  [[nodiscard]] const Tokenizer& target_tokenizer() const { return target_tokenizer_; }
  [[nodiscard]] int64_t source_vocabulary() const { return source_tokenizer_.vocabulary(); }
  [[nodiscard]] int64_t target_vocabulary() const { return target_tokenizer_.vocabulary(); }

  /// The text of a split, line i beside pair i. Throws Error if the split is unknown or the text does not fit it.
  [[nodiscard]] std::vector<std::string> raw_source(const std::string& name) const { return lines_of(name, "source"); }
  [[nodiscard]] std::vector<std::string> raw_target(const std::string& name) const { return lines_of(name, "target"); }

  /// The names of the labels, in order of their ids, which count from 0; empty unless the task is classification.
  [[nodiscard]] const std::vector<std::string>& labels() const { return labels_; }

  /// The label of each example of a split, an id: an index into labels(). Throws Error if the split is unknown, the
  /// data have no labels, or the file does not fit the split.
  [[nodiscard]] std::vector<int32_t> labels_of(const std::string& name) const;

  /// What data.json holds.
  [[nodiscard]] const Json& info() const { return info_; }

 private:
  DataDirectory(std::filesystem::path path, Json info, bool joint, Tokenizer source, Tokenizer target);
  /// The lines of splits/NAME.ENDING, one for each example.
  [[nodiscard]] std::vector<std::string> lines_of(const std::string& name, const std::string& ending) const;
  [[nodiscard]] const ParallelSplit& mapped(const std::string& name) const;

  std::filesystem::path path_;
  Json info_;
  std::string task_;
  std::vector<std::string> labels_;
  bool joint_;
  Tokenizer source_tokenizer_, target_tokenizer_;
  std::map<std::string, ParallelSplit> splits_;
};

}  // namespace plumb
