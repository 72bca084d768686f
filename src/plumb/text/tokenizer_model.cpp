#include "plumb/text/tokenizer_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "plumb/base/text.h"

namespace plumb {
namespace {

std::vector<const TokenizerKind*> kinds_by_precedence() {
  std::vector<const TokenizerKind*> kinds;
  for (const auto& [name, entry] : tokenizer_kinds().entries()) kinds.push_back(&entry.make);
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const auto* a, const auto* b) { return a->precedence > b->precedence; });
  return kinds;
}

/// The tokenizer file in a model's folder.
std::filesystem::path tokenizer_in(const std::filesystem::path& folder) {
  std::vector<std::string> known;
  for (const TokenizerKind* kind : kinds_by_precedence()) {
    for (const std::string& file : kind->files) {
      if (std::filesystem::is_regular_file(folder / file)) return folder / file;
      known.push_back(file);
    }
  }
  throw Error(fmt::format("{}: the folder contains no tokenizer", folder.string()),
              fmt::format("Plumb looks for {}", join(known)));
}

}  // namespace

void TokenizerModel::save(const std::filesystem::path& path) const { write_file_atomic(path, serialized()); }

Registry<TokenizerKind>& tokenizer_kinds() {
  static Registry<TokenizerKind> registry("tokenizer");
  return registry;
}

std::shared_ptr<const TokenizerModel> load_tokenizer_model(const std::filesystem::path& path) {
  const std::filesystem::path file = std::filesystem::is_directory(path) ? tokenizer_in(path) : path;
  std::string bytes = read_file(file);
  for (const TokenizerKind* kind : kinds_by_precedence()) {
    if (kind->recognizes(bytes)) return kind->load(std::move(bytes), file);
  }
  return tokenizer_kinds().at("sentencepiece").make.load(std::move(bytes), file);  // throws a helpful Error
}

}  // namespace plumb
