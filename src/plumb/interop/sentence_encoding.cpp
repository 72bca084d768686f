#include "plumb/interop/sentence_encoding.h"

#include <fmt/format.h>

#include "plumb/base/error.h"
#include "plumb/base/text.h"
#include "plumb/interop/settings.h"
#include "plumb/interop/tokenizer_files.h"

namespace plumb {
namespace fs = std::filesystem;
namespace {

constexpr const char* kModules = "modules.json";
constexpr const char* kEncoder = "sentence_bert_config.json";
constexpr const char* kPrompts = "config_sentence_transformers.json";
constexpr const char* kRemoveModules =
    "to import the encoder without its sentence vectors, remove modules.json from a copy of the folder";

struct SentenceModule {
  std::string kind;  // the last part of its class: "Pooling"
  fs::path folder;
};

std::vector<SentenceModule> sentence_modules(const fs::path& folder) {
  const fs::path file = folder / kModules;
  return take_json(file, [&](const Json& list) {
    std::vector<SentenceModule> modules;
    for (const Json& item : list) {
      const std::string type = item.at("type"), path = item.at("path");
      if (path == "." || path == ".." || (!path.empty() && fs::path(path).filename() != path))
        throw Error(fmt::format("{}: '{}' is not the name of a folder beside it", file.string(), path));
      modules.push_back({type.substr(type.rfind('.') + 1), path.empty() ? folder : folder / path});
    }
    return modules;
  });
}

/// A pooling in sentence-transformers and in Plumb.
struct PoolingName {
  const char *mode, *flag, *ours;
};
constexpr PoolingName kPoolingNames[] = {{"cls", "pooling_mode_cls_token", "first"},
                                         {"mean", "pooling_mode_mean_tokens", "mean"},
                                         {"max", "pooling_mode_max_tokens", "max"},
                                         {"lasttoken", "pooling_mode_lasttoken", "last"}};

/// Version 6 and later have one "pooling_mode"; earlier versions have a flag for each kind.
std::string pooling_in(Settings& settings) {
  if (settings.has("pooling_mode")) {
    const std::string mode = settings.text("pooling_mode");
    std::vector<std::string> known;
    for (const PoolingName& name : kPoolingNames) {
      if (mode == name.mode) return name.ours;
      known.emplace_back(name.mode);
    }
    throw settings.unsupported("pooling_mode", join(known));
  }
  std::string found;
  for (const PoolingName& name : kPoolingNames) {
    if (!settings.flag(name.flag, false)) continue;
    if (!found.empty()) throw settings.unsupported(name.flag, "one kind of pooling alone");
    found = name.ours;
  }
  for (const char* key : {"pooling_mode_mean_sqrt_len_tokens", "pooling_mode_weightedmean_tokens"})
    settings.require(key, false);
  return found.empty() ? "mean" : found;
}

std::string read_pooling(const fs::path& folder) {
  Settings settings(folder / kModelSettings);
  std::string pooling = pooling_in(settings);
  settings.ignore({"word_embedding_dimension", "embedding_dimension", "include_prompt"});
  settings.require_all_read();
  return pooling;
}

void check_normalization(const fs::path& folder) {
  const fs::path file = folder / kModelSettings;
  if (!fs::exists(file)) return;
  Settings settings(file);
  for (const char* key : {"module_input_name", "module_output_name"}) settings.require(key, "sentence_embedding");
  settings.require_all_read();
}

/// The maximum number of tokens per text, from the encoder's file or else from the tokenizer's; 0: unlimited.
int64_t read_max_tokens(const fs::path& folder) {
  int64_t most = 0;
  if (const fs::path file = folder / kEncoder; fs::exists(file)) {
    Settings settings(file);
    most = settings.integer("max_seq_length", 0);
    settings.require("do_lower_case", false);
    settings.require("transformer_task", "feature-extraction");
    settings.require("module_output_name", "token_embeddings");
    settings.ignore({"modality_config"});
    settings.require_all_read();
  }
  const fs::path file = folder / "tokenizer_config.json";
  if (most > 0 || !fs::exists(file)) return most;
  constexpr double kUnlimited = 1e12;  // `transformers` writes 1e30
  const Json settings = read_json(file);
  const Json& length = value_or_null(settings, "model_max_length");
  return length.is_number() && length.get<double>() < kUnlimited ? length.get<int64_t>() : 0;
}

/// Throws Error if a default prompt precedes every text.
void require_no_prompt(const fs::path& folder) {
  const fs::path file = folder / kPrompts;
  if (!fs::exists(file)) return;
  const Json settings = read_json(file);
  const Json& prompt = value_or_null(settings, "default_prompt_name");
  if (prompt.is_null()) return;
  throw Error(fmt::format("{}: default_prompt_name = {} is not supported", file.string(), prompt.dump()),
              "in a copy of the folder set it to null, and write the prompt before each text");
}

}  // namespace

std::vector<std::string> sentence_files(const fs::path& folder) {
  if (!fs::exists(folder / kModules)) return {};
  std::vector<std::string> files = {kModules, kEncoder, kPrompts};
  for (const SentenceModule& module : sentence_modules(folder)) {
    if (module.folder != folder) files.push_back(module.folder.filename() / kModelSettings);
  }
  return files;
}

std::optional<SentenceEncoding> read_sentence_encoding(const fs::path& folder) {
  if (!fs::exists(folder / kModules)) return {};
  std::vector<std::string> kinds;
  SentenceEncoding encoding;
  for (const SentenceModule& module : sentence_modules(folder)) {
    kinds.push_back(module.kind);
    if (module.kind == "Pooling") encoding.pooling = read_pooling(module.folder);
    if (module.kind == "Normalize") {
      check_normalization(module.folder);
      encoding.normalize = true;
    }
  }
  const std::vector<std::string> plain = {"Transformer", "Pooling"},
                                 normalized = {"Transformer", "Pooling", "Normalize"};
  if (kinds != plain && kinds != normalized) {
    throw Error(fmt::format("{}: the modules {} are not supported", (folder / kModules).string(), join(kinds)),
                fmt::format("supported: {}, or the first two; {}", join(normalized), kRemoveModules));
  }
  require_no_prompt(folder);
  encoding.max_tokens = read_max_tokens(folder);
  return encoding;
}

Json to_json(const SentenceEncoding& encoding) {
  return {{"pooling", encoding.pooling}, {"normalize", encoding.normalize}, {"max_tokens", encoding.max_tokens}};
}

std::optional<SentenceEncoding> sentence_encoding_of(const fs::path& run) {
  const fs::path file = run / "result.json";
  if (!fs::exists(file)) return {};
  return take_json(file, [](const Json& result) -> std::optional<SentenceEncoding> {
    const Json& imported = value_or_null(result, "imported");
    if (!imported.contains("sentence_vectors")) return {};
    const Json& stored = imported.at("sentence_vectors");
    return SentenceEncoding{stored.at("pooling"), stored.at("normalize"), stored.at("max_tokens")};
  });
}

}  // namespace plumb
