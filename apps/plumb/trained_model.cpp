#include "trained_model.h"

#include <filesystem>

#include "plumb/data/checksum.h"
#include "plumb/interop/import.h"
#include "plumb/interop/tokenizer_files.h"

namespace plumb::app {
namespace {

namespace fs = std::filesystem;

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

Json weight_digests(const RunAndCheckpoint& place) {
  Json digests = Json::object();
  for (const auto& entry : fs::directory_iterator(place.checkpoint)) {
    const std::string name = entry.path().filename().string();
    const bool has_weights = name == "model.safetensors" || is_model_folder(place.run);
    if (has_weights && name.ends_with(".safetensors")) digests[name] = digest_of(entry.path()).sha256;
  }
  return digests;
}

}  // namespace plumb::app
