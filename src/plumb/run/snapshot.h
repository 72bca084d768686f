// A checkpoint in memory: what Trainer::save writes and Trainer::load reads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plumb/base/json.h"
#include "plumb/io/safetensors.h"
#include "plumb/run/seal.h"

namespace plumb {

struct Snapshot {
  /// A file of tensors, such as "model.safetensors".
  struct File {
    std::string name;
    NamedTensors tensors;
    std::map<std::string, std::string> metadata;
    bool lasts = false;  // later steps do not change the tensors
  };

  int64_t step = 0;
  std::vector<File> files;
  Json state;  // the document state.json

  /// The file of this name, or null.
  [[nodiscard]] const File* find(const std::string& name) const;

  /// A copy whose tensors are in CPU memory, and which later steps do not change.
  [[nodiscard]] Snapshot copied() const;
};

/// Writes the files and state.json into an existing directory. state.json lists the size and checksum of each file and,
/// if given, of metrics.jsonl up to this step; it has a checksum itself.
void write_snapshot(const Snapshot& snapshot, const std::filesystem::path& directory,
                    const std::optional<FileMark>& metrics = {});

/// The files that a state.json lists. Throws Error on a name that is not that of a file beside it.
std::vector<std::pair<std::string, FileMark>> files_of(const Json& state);

/// Reads its state.json. Throws Error if it is missing or damaged.
Json read_snapshot_state(const std::filesystem::path& directory);

/// Reads what write_snapshot wrote. Throws Error if a file is missing or damaged.
Snapshot read_snapshot(const std::filesystem::path& directory);

}  // namespace plumb
