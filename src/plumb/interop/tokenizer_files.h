// The files of a Hugging Face model that are copied unchanged.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace plumb {

/// The model's architecture, and its settings for generation. A run made by `plumb import` has copies of both.
inline constexpr const char* kModelSettings = "config.json";
inline constexpr const char* kGenerationFile = "generation_config.json";

/// Throws Error if a folder's tokenizer is only a SentencePiece model, which does not define the special tokens that go
/// with a text.
void require_known_specials(const std::filesystem::path& folder);

/// The names of the tokenizer's files in a folder; empty if there is no tokenizer. Throws Error if it cannot be used.
std::vector<std::string> tokenizer_files(const std::filesystem::path& folder);

/// Copies those of the files that exist.
void copy_files(const std::filesystem::path& from, const std::vector<std::string>& names,
                const std::filesystem::path& to);

}  // namespace plumb
