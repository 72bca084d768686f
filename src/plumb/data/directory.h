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
  /// Throws Error if `path` is no data directory of Plumb's or a file of it is missing or damaged.
  static DataDirectory open(const std::filesystem::path& path);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  /// "train", "valid", then the test sets in the order in which they were given.
  [[nodiscard]] std::vector<std::string> split_names() const;
  [[nodiscard]] bool has_split(const std::string& name) const { return splits_.count(name) != 0; }

  /// Throws Error that names the splits there are.
  [[nodiscard]] const ParallelSplit& split(const std::string& name) const;

  /// Both sides have one vocabulary: the two tokenizers are the same.
  [[nodiscard]] bool joint() const { return joint_; }
  [[nodiscard]] const Tokenizer& source_tokenizer() const { return source_tokenizer_; }
  [[nodiscard]] const Tokenizer& target_tokenizer() const { return target_tokenizer_; }
  [[nodiscard]] int64_t source_vocabulary() const { return source_tokenizer_.vocabulary(); }
  [[nodiscard]] int64_t target_vocabulary() const { return target_tokenizer_.vocabulary(); }

  /// The text of a split, line i beside pair i. Throws Error if the split is unknown or the text does not fit it.
  [[nodiscard]] std::vector<std::string> raw_source(const std::string& name) const { return raw(name, "source"); }
  [[nodiscard]] std::vector<std::string> raw_target(const std::string& name) const { return raw(name, "target"); }

  /// What data.json holds.
  [[nodiscard]] const Json& info() const { return info_; }

 private:
  DataDirectory(std::filesystem::path path, Json info, bool joint, Tokenizer source, Tokenizer target);
  [[nodiscard]] std::vector<std::string> raw(const std::string& name, const std::string& side) const;

  std::filesystem::path path_;
  Json info_;
  bool joint_;
  Tokenizer source_tokenizer_, target_tokenizer_;
  std::map<std::string, ParallelSplit> splits_;
};

}  // namespace plumb
