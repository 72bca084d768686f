#include "plumb/run/directory.h"

#include <fmt/format.h>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/json.h"
#include "plumb/run/checkpoints.h"
#include "plumb/run/foreign_models.h"
#include "plumb/run/seal.h"

namespace plumb {
namespace fs = std::filesystem;

RunConfig load_run_config(const fs::path& run) {
  if (const ForeignModel* foreign = foreign_model_at(run)) return foreign->config(run);
  require_directory(run, "run");
  const fs::path file = run / "config.toml";
  return read_run_config(Config::from_string(read_sealed_text(file), file.string()));
}

fs::path latest_checkpoint(const fs::path& run) {
  require_directory(run, "run");
  if (fs::exists(run / "model.safetensors")) return run;  // an average of checkpoints, or an imported model
  const auto all = checkpoints_of(run);
  if (all.empty())
    throw Error(fmt::format("{}: has no checkpoint yet", run.string()),
                "resume it with `plumb train --out " + run.string() + "`");
  return all.rbegin()->second;
}

RunAndCheckpoint locate_run(const std::string& name) {
  fs::path path = fs::absolute(name).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  const char* hint =
      "give a run directory made by `plumb train`, a checkpoint in one, or a folder of a Hugging Face model, which "
      "Plumb "
      "does not download";
  std::error_code none;
  if (!fs::is_directory(path, none)) throw Error(name + " is not a directory", hint);
  if (foreign_model_at(path) != nullptr) return {path, path};
  if (!fs::exists(path / "config.toml") && !fs::exists(path / "model.safetensors")) {
    for (const auto& inner : fs::directory_iterator(path, none)) {
      if (inner.is_directory(none) && foreign_model_at(inner.path()) != nullptr)
        throw Error(name + " is neither a run nor a model",
                    fmt::format("give the model in it: {}", inner.path().string()));
    }
  }
  // A checkpoint is recognized by its weights; its run is the closest directory with a configuration: a parent or, for
  // an average of checkpoints and an imported model, itself.
  if (!fs::exists(path / "model.safetensors")) return {path, latest_checkpoint(path)};
  for (fs::path run = path; run != run.root_path(); run = run.parent_path()) {
    if (fs::exists(run / "config.toml")) return {run, path};
  }
  throw Error(name + " is a checkpoint outside a run directory", hint);
}

NamedTensors weights_in(const fs::path& checkpoint) {
  if (const ForeignModel* foreign = foreign_model_at(checkpoint)) return foreign->weights(checkpoint);
  return load_safetensors(checkpoint / "model.safetensors");
}

std::unique_ptr<Model> load_model(const fs::path& run) { return load_model(run, latest_checkpoint(run)); }

std::unique_ptr<Model> load_model(const fs::path& run, const fs::path& checkpoint) {
  std::unique_ptr<Model> model = make_model(load_run_config(run).model);
  load_parameters(model->parameters(), weights_in(checkpoint), (checkpoint / "model.safetensors").string());
  return model;
}

void require_replaceable(const fs::path& out, RunOutcome outcome) {
  check_output_directory(out, "run");
  const fs::path result = out / "result.json";
  if (!fs::exists(out / "config.toml")) return;
  const Json found = fs::exists(result) ? read_json(result) : Json();
  if (found.is_object() && found.value("outcome", Json()) == to_string(outcome)) return;
  throw Error(fmt::format("{}: is a training run", out.string()), "choose another --out; nothing was changed");
}

}  // namespace plumb
