#include "plumb/interop/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/json.h"
#include "plumb/base/text.h"
#include "plumb/interop/family.h"
#include "plumb/model/model.h"
#include "plumb/text/tokenizer.h"
#include "plumb/text/tokenizer_model.h"
#include "plumb/train/config.h"
#include "plumb/train/seal.h"

namespace plumb {
namespace fs = std::filesystem;
namespace {

constexpr const char* kImported = "imported";

/// The class that the weights belong to. Throws Error unless it is one of the family's.
std::string class_of(Settings& settings, const Family& family) {
  const std::vector<std::string> named = settings.texts("architectures");
  const bool known =
      named.size() == 1 && std::find(family.classes.begin(), family.classes.end(), named[0]) != family.classes.end();
  if (!known) throw settings.unsupported("architectures", join(family.classes));
  return named[0];
}

/// Whether a folder has one of these files.
bool has_one_of(const fs::path& folder, const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return fs::is_regular_file(folder / name); });
}

/// Throws Error if the folder's tokenizer is a SentencePiece model and nothing else.
void require_known_specials(const fs::path& folder) {
  const TokenizerKind& pieces = tokenizer_kinds().at("sentencepiece").make;
  if (!has_one_of(folder, pieces.files)) return;
  for (const auto& [name, entry] : tokenizer_kinds().entries()) {
    if (entry.make.precedence > pieces.precedence && has_one_of(folder, entry.make.files)) return;
  }
  throw Error(
      fmt::format("{}: a SentencePiece model alone does not say which special tokens go with a text", folder.string()),
      "add the tokenizer.json, which `transformers` writes when it saves the tokenizer");
}

/// The tokenizer's files in a folder, by name; empty if there is no tokenizer. Throws Error if it cannot be used.
std::set<std::string> tokenizer_files(const fs::path& folder) {
  std::set<std::string> files;
  const auto collect = [&](const std::string& name) {
    if (fs::is_regular_file(folder / name)) files.insert(name);
  };
  for (const auto& [name, entry] : tokenizer_kinds().entries()) {
    for (const std::string& file : entry.make.files) collect(file);
  }
  if (files.empty()) return files;
  require_known_specials(folder);
  (void)load_tokenizer_model(folder);
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "merges.txt",
                           "vocab.json", "encoder.json"})
    collect(name);
  return files;
}

/// What a model of this configuration learns.
std::string imported_task(const ModelConfig& config) {
  if (config.kind != "encoder") return "language-modeling";
  return config.pooling == "none" ? "masked-language-modeling" : "classification";
}

/// Writes data.json of the run in `directory`, which says by which tokenizer data are recognized that the model can be
/// trained on (train/data_fingerprint.h). That of a data directory is stored as Tokenizer::save writes it.
void record_tokenizer(const fs::path& directory) {
  const fs::path scratch = directory / "tokenizer-of-data";
  fs::create_directory(scratch);
  Tokenizer::from_file(directory).save(scratch / "tokenizer.model");
  Json record = make_document("fingerprint", 1);
  record["tokenizer"]["tokenizer.model"] = to_json(mark_of(scratch / "tokenizer.model"));
  record["splits"] = Json::object();
  seal(record);
  write_json(directory / "data.json", record);
  fs::remove_all(scratch);
}

/// Throws Error unless `out` is free or has an earlier import in it.
void require_free(const fs::path& out) {
  check_output_directory(out, "run");
  if (!fs::exists(out / "config.toml")) return;
  const fs::path result = out / "result.json";
  if (fs::exists(result) && read_json(result).value("outcome", "") == kImported) return;
  throw Error(fmt::format("{}: is a training run", out.string()), "choose another --out; nothing was changed");
}

}  // namespace

ImportedModel read_model_folder(const fs::path& folder) {
  Settings settings(folder / "config.json");
  const std::string type = settings.text("model_type");
  if (const auto known = families().names(); std::find(known.begin(), known.end(), type) == known.end())
    throw settings.unsupported("model_type", join(known));
  const Family& family = families().at(type).make;
  ImportedModel imported;
  imported.family = type;
  imported.model = class_of(settings, family);
  imported.config = family.configuration(settings);
  ignore_common_keys(settings);
  settings.finish();
  validate(imported.config);
  Weights weights = Weights::from_folder(folder);
  imported.tensors = family.tensors(imported.config, weights);
  weights.finish();
  imported.left_out = weights.left_out();
  imported.sentence_encoding = read_sentence_encoding(folder);
  for (const auto& [name, tensor] : imported.tensors) imported.parameters += tensor.numel();
  return imported;
}

ImportedModel import_model(const fs::path& folder, const fs::path& out) {
  require_free(out);
  ImportedModel imported = read_model_folder(folder);
  const std::set<std::string> tokenizer = tokenizer_files(folder);
  {
    const std::unique_ptr<Model> model = make_model(imported.config);  // checks once more that all fits together
    load_parameters(model->parameters(), imported.tensors, folder.string());
  }
  RunConfig config;
  config.model = imported.config;
  config.task.name = imported_task(imported.config);
  Json result = make_document("train", 1);
  result["outcome"] = kImported;
  result["steps"] = 0;
  result["history"] = Json::array();
  result[kImported] = {{"model_type", imported.family}, {"architecture", imported.model}};
  if (!imported.left_out.empty()) result[kImported]["left_out"] = imported.left_out;
  if (imported.sentence_encoding) result[kImported]["sentence_vectors"] = to_json(*imported.sentence_encoding);
  write_directory_atomic(out, [&](const fs::path& directory) {
    claim_output_directory(directory, "run");
    write_file_atomic(directory / "config.toml", to_toml(config));
    save_safetensors(directory / "model.safetensors", imported.tensors);
    for (const std::string& name : tokenizer) write_file_atomic(directory / name, read_file(folder / name));
    if (!tokenizer.empty()) record_tokenizer(directory);
    write_json(directory / "result.json", result);
  });
  imported.tensors.clear();
  imported.tokenizer = !tokenizer.empty();
  return imported;
}

}  // namespace plumb
