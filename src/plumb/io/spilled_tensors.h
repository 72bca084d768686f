// Tensors that are kept in a file instead of memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "plumb/io/safetensors.h"

namespace plumb {

/// Copies of tensors, collected one at a time, in a file without a name: the system removes it when the last of them
/// goes, however the process ends. Without a folder, they are kept in memory.
class SpilledTensors {
 public:
  /// The file is in this folder; empty: none. Throws Error if it cannot be created.
  explicit SpilledTensors(const std::filesystem::path& folder);
  ~SpilledTensors();
  SpilledTensors(const SpilledTensors&) = delete;
  SpilledTensors& operator=(const SpilledTensors&) = delete;

  /// Throws Error if the file cannot be written, such as when the disk is full.
  void add(const std::string& name, const Tensor& tensor);

  /// All tensors, in the order in which they were added; on the CPU, and read-only. The system reads their values from
  /// the file when they are used. Call it once, at the end.
  [[nodiscard]] NamedTensors all();

 private:
  struct Place {
    int64_t begin;  // bytes of the file
    std::vector<int64_t> sizes;
    at::ScalarType type;
  };

  std::string folder_;
  int file_ = -1;
  int64_t size_ = 0;  // bytes
  std::vector<std::pair<std::string, Place>> places_;
  NamedTensors in_memory_;
};

}  // namespace plumb
