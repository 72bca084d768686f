#include "trained_model.h"

#include <filesystem>
#include <map>
#include <string>

#include "plumb/data/checksum.h"
#include "plumb/interop/import.h"
#include "plumb/interop/tokenizer_files.h"

namespace plumb::app {
namespace {

namespace fs = std::filesystem;

/// The files of a Hugging Face model, besides its weights, that affect its output.
constexpr const char* kSettings[] = {"config.json",       "generation_config.json",
                                     "tokenizer.json",    "tokenizer_config.json",
                                     "tokenizer.model",   "special_tokens_map.json",
                                     "added_tokens.json", "vocab.txt",
                                     "vocab.json",        "vocab.bpe",
                                     "merges.txt"};

TrainedModel open_model_folder(const fs::path& folder) {
  require_known_specials(folder);
  const ImportedModel imported = read_model_folder(folder);
  std::unique_ptr<Model> model = make_model(imported.config);
  load_parameters(model->parameters(), imported.tensors, folder.string());
  return {.place = {folder, folder}, .config = run_config_of(imported), .model = std::move(model)};
}

}  // namespace

TrainedModel open_trained_model(const std::string& name) {
  if (is_model_folder(name)) return open_model_folder(fs::absolute(name).lexically_normal());
  RunAndCheckpoint place = locate_run(name);
  RunConfig config = load_run_config(place.run);
  std::unique_ptr<Model> model = load_model(place.run, place.checkpoint);
  return {.place = std::move(place), .config = std::move(config), .model = std::move(model)};
}

Json model_digests(const RunAndCheckpoint& place) {
  std::map<std::string, std::string> digests;  // by name, since directories list entries in any order
  for (const auto& entry : fs::directory_iterator(place.checkpoint)) {
    const std::string name = entry.path().filename().string();
    const bool has_weights = name == "model.safetensors" || is_model_folder(place.run);
    if (has_weights && name.ends_with(".safetensors")) digests[name] = digest_of(entry.path()).sha256;
  }
  for (const char* name : kSettings) {
    if (fs::is_regular_file(place.run / name)) digests[name] = digest_of(place.run / name).sha256;
  }
  return Json(digests);
}

}  // namespace plumb::app
