#include "plumb/run/snapshot.h"

#include "plumb/base/json.h"

namespace plumb {

Snapshot Snapshot::copied() const {
  Snapshot copy = *this;
  for (File& file : copy.files) {
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
    files[file.name] = to_json(mark_of(directory / file.name));
  }
  if (metrics) state["metrics"] = to_json(*metrics);
  seal(state);
  write_json(directory / "state.json", state);
}

}  // namespace plumb
