#include "plumb/interop/tokenizer_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "plumb/text/tokenizer_model.h"

namespace plumb {
namespace fs = std::filesystem;
namespace {

/// Whether a folder has one of these files.
bool has_one_of(const fs::path& folder, const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return fs::is_regular_file(folder / name); });
}

}  // namespace

void require_known_specials(const fs::path& folder) {
  const TokenizerKind& pieces = tokenizer_kinds().at("sentencepiece").make;
  if (!has_one_of(folder, pieces.files)) return;
  for (const auto& [name, entry] : tokenizer_kinds().entries()) {
    if (entry.make.precedence > pieces.precedence && has_one_of(folder, entry.make.files)) return;
  }
  if (fs::is_regular_file(folder / "target.spm") && fs::is_regular_file(folder / "vocab.json")) return;  // Marian's
  throw Error(
      fmt::format("{}: a SentencePiece model alone does not say which special tokens go with a text", folder.string()),
      "add the tokenizer.json, which `transformers` writes when it saves the tokenizer");
}

std::vector<std::string> tokenizer_files(const fs::path& folder) {
  std::set<std::string> files;
  const auto collect = [&](const std::string& name) {
    if (fs::is_regular_file(folder / name)) files.insert(name);
  };
  for (const auto& [name, entry] : tokenizer_kinds().entries()) {
    for (const std::string& file : entry.make.files) collect(file);
  }
  if (files.empty()) return {};
  require_known_specials(folder);
  (void)load_tokenizer_model(folder);
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "merges.txt",
                           "vocab.json", "encoder.json", "target.spm", "target_vocab.json"})
    collect(name);
  return {files.begin(), files.end()};
}

void copy_files(const fs::path& from, const std::vector<std::string>& names, const fs::path& to) {
  for (const std::string& name : names) {
    if (!fs::is_regular_file(from / name)) continue;
    fs::create_directories((to / name).parent_path());
    write_file_atomic(to / name, read_file(from / name));
  }
}

}  // namespace plumb
