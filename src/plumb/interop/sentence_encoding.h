// How a sentence encoder turns a text into one vector, as the library sentence-transformers stores it with a model: in
// modules.json, the configuration of its pooling, and sentence_bert_config.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "plumb/base/json.h"

namespace plumb {

struct SentenceEncoding {
  std::string pooling = "mean";  // of the hidden states: a name of poolings()
  bool normalize = false;        // whether vectors have length 1
  int64_t max_tokens = 0;        // per text, with special tokens; longer texts are truncated; 0: no limit given

  bool operator==(const SentenceEncoding&) const = default;
};

/// The encoding stored in a model's folder; nullopt without modules.json. Throws Error, naming what Plumb does not
/// have: a module, a kind of pooling, a setting.
std::optional<SentenceEncoding> read_sentence_encoding(const std::filesystem::path& folder);

/// The paths, within a folder, of the files that describe its sentence vectors, whether or not all of them exist; none
/// without modules.json.
std::vector<std::string> sentence_files(const std::filesystem::path& folder);

/// {"pooling", "normalize", "max_tokens"}, as stored in result.json of an imported model.
Json to_json(const SentenceEncoding& encoding);

/// The encoding stored in an imported model's result.json; nullopt if it is not a sentence encoder, or another kind of
/// run. Throws Error if result.json is damaged.
std::optional<SentenceEncoding> sentence_encoding_of(const std::filesystem::path& run);

}  // namespace plumb
