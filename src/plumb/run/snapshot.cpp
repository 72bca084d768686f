#include "plumb/run/snapshot.h"

#include <fmt/format.h>

#include <utility>

#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/base/json_fields.h"
#include "plumb/run/about_file.h"

namespace plumb {

const Snapshot::File* Snapshot::find(const std::string& name) const { return find_by(files, &File::name, name); }

Snapshot Snapshot::copied() const {
  Snapshot copy = *this;
  for (File& file : copy.files) {
    if (std::exchange(file.lasts, true)) continue;
    for (auto& [name, tensor] : file.tensors) {
      tensor = tensor.detach()
                   .to(at::kCPU, tensor.scalar_type(), /*non_blocking=*/false, /*copy=*/true)
                   .contiguous(at::MemoryFormat::Contiguous);
    }
  }
  return copy;
}

void write_snapshot(const Snapshot& snapshot, const std::filesystem::path& directory,
                    const std::optional<FileMark>& metrics) {
  Json state = snapshot.state;
  Json& files = state["files"] = Json::object();
  for (const Snapshot::File& file : snapshot.files) {
    save_safetensors(directory / file.name, file.tensors, file.metadata);
    files[file.name] = described_json(mark_of(directory / file.name));
  }
  if (metrics) state["metrics"] = described_json(*metrics);
  seal(state);
  write_json(directory / "state.json", state);
}

std::vector<std::pair<std::string, FileMark>> files_of(const Json& state) {
  std::vector<std::pair<std::string, FileMark>> files;
  for (const auto& [name, mark] : state.at("files").items()) {
    if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos)
      throw Error(fmt::format("lists '{}', which is no file of a checkpoint", name));
    files.emplace_back(name, from_described_json<FileMark>(mark));
  }
  return files;
}

Json read_snapshot_state(const std::filesystem::path& directory) { return read_sealed(directory / "state.json"); }

Snapshot read_snapshot(const std::filesystem::path& directory) {
  const std::filesystem::path document = directory / "state.json";
  Snapshot snapshot{0, {}, read_snapshot_state(directory)};
  about_file(document.string(), [&] {
    snapshot.step = to_count(snapshot.state.at("step"));
    for (const auto& [name, mark] : files_of(snapshot.state)) snapshot.files.push_back({name, {}, {}, false});
  });
  for (Snapshot::File& file : snapshot.files) file.tensors = load_safetensors(directory / file.name);
  return snapshot;
}

}  // namespace plumb
