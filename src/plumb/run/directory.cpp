#include "plumb/run/directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/json.h"
#include "plumb/base/progress.h"
#include "plumb/base/text.h"
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

namespace {

/// Whether a path leads to an open directory. A network that fails for a moment says nothing.
bool leads_to(const fs::path& path, const Descriptor& directory) {
  struct stat there {};
  struct stat own {};
  if (::stat(path.c_str(), &there) != 0) return errno != ENOENT && errno != ENOTDIR;
  return ::fstat(directory.get(), &own) != 0 || (there.st_dev == own.st_dev && there.st_ino == own.st_ino);
}

/// Closes a run to other trainers. Throws Error if another one has. Whoever asks whether a run is being trained shares
/// its lock for an instant, so this tries a few times.
void lock_run(const Descriptor& directory, const fs::path& run) {
  for (int attempt = 0; !directory.lock(); ++attempt) {
    if (errno != EWOULDBLOCK && errno != EINTR)
      return warn(
          fmt::format("{}: cannot be locked ({}): start no second process there", run.string(), std::strerror(errno)));
    if (attempt == 20)
      throw Error(fmt::format("{}: another process is training here", run.string()),
                  "wait for it to end, or choose another --out");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

/// Throws Error if something that training writes is a symbolic link.
void refuse_links(const fs::path& run) {
  const auto refuse = [](const fs::path& path) {
    if (fs::is_symlink(path))
      throw Error(fmt::format("{}: is a symbolic link, which training does not follow within a run", path.string()),
                  "put what it leads to in its place, or remove it");
  };
  for (const char* name : {"plumb.json", "config.toml", "data.json", "metrics.jsonl", "environment.jsonl",
                           "result.json", "best", "checkpoints", "best-checkpoints"})
    refuse(run / name);
  for (const char* name : {"checkpoints", "best-checkpoints"}) {
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(run / name, none)) refuse(entry.path());
  }
}

}  // namespace

OpenRun::OpenRun(fs::path place)
    : place_(std::move(place)), directory_(::open(place_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (!directory_.is_open())
    throw Error(fmt::format("{}: cannot be opened: {}", place_.string(), std::strerror(errno)),
                "check the directory's permissions");
  lock_run(directory_, place_);
  refuse_links(place_);
  path_ = fmt::format("/proc/self/fd/{}", directory_.get());
  if (!leads_to(path_, directory_)) path_ = place_;  // without /proc, a run that is moved ends
  const Descriptor parent(::openat(directory_.get(), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (parent.is_open() && !parent.sync())
    throw Error(fmt::format("{}: its name cannot be synced: {}", place_.string(), std::strerror(errno)));
}

fs::path OpenRun::place() const {
  std::error_code none;
  fs::path now = leads_to(place_, directory_) ? place_ : fs::read_symlink(path_, none);
  if (!leads_to(now, directory_))
    throw Error(fmt::format("{}: was {} while it was being trained", place_.string(),
                            path_ == place_ ? "moved or removed" : "removed"),
                "nothing more can be saved there");
  if (!fs::exists(now / "config.toml", none) && !none)
    throw Error(fmt::format("{}: its config.toml was removed while it was being trained", now.string()),
                "without it, nobody can use the run or continue it");
  return now;
}

void OpenRun::rethrow_named(const std::exception& error) const {
  const std::string now = place().string();
  const auto* own = dynamic_cast<const Error*>(&error);
  std::string what = error.what(), hint = own != nullptr ? own->hint() : "";
  if (path_ == place_ || (what + hint).find(path_.string()) == std::string::npos) throw;
  for (std::string* text : {&what, &hint}) replace_all(*text, path_.string(), now);
  throw Error(what, hint);
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
