// How a sentence encoder makes one vector of a text: what the library sentence-transformers stores beside a model, in
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
  int64_t max_tokens = 0;        // of a text, with special tokens; the rest is not read; 0: as many as the model can

  bool operator==(const SentenceEncoding&) const = default;
};

/// What a model's folder says; nothing if it has no modules.json. Throws Error that names what Plumb does not have: a
/// module, a kind of pooling, a setting.
std::optional<SentenceEncoding> read_sentence_encoding(const std::filesystem::path& folder);

/// The paths, within a folder, of the files that describe its sentence vectors, whether or not all of them exist; none
/// without modules.json.
std::vector<std::string> sentence_files(const std::filesystem::path& folder);

/// {"pooling", "normalize", "max_tokens"}, as result.json of an imported model has it, and the reverse.
Json to_json(const SentenceEncoding& encoding);

/// What an imported model's directory says; nothing if it is no sentence encoder, or another kind of run. Throws Error
/// if its result.json is damaged.
std::optional<SentenceEncoding> sentence_encoding_of(const std::filesystem::path& run);

}  // namespace plumb
