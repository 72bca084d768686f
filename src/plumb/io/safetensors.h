// The safetensors format: an 8-byte length; a JSON header with the name, type, shape and location of each tensor; then
// the data.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plumb/base/json.h"
#include "plumb/nn/parameters.h"

namespace plumb {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

/// Writes tensors atomically. `metadata` is stored in the header's "__metadata__", together with the CRC-32 of each
/// tensor's data as "crc32.NAME". Throws Error on element types not listed below.
void save_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                      const std::map<std::string, std::string>& metadata = {});

/// Reads all tensors (F32, F64, F16, BF16, I64, I32, I16, I8, U8, BOOL). Throws Error if the path is not a regular file
/// or larger than the machine's memory, and on a truncated or malformed file, naming the tensor: the header has at most
/// 100,000,000 bytes, as the format demands; the tensors must have different names of at most 1,024 bytes, fill the
/// data without gaps or overlaps, and match any stored checksums.
NamedTensors load_safetensors(const std::filesystem::path& path);

/// A tensor as the header of a file describes it.
struct StoredTensor {
  std::string name;
  at::ScalarType type;
  std::vector<int64_t> shape;
  uint64_t begin, end;        // bytes of the data
  std::string checksum = {};  // of its data, as crc32_text() writes it; empty if there is none
};

/// The same file, of which one tensor is read at a time.
class SafetensorsReader {
 public:
  /// Reads the header. Throws Error as load_safetensors does.
  explicit SafetensorsReader(const std::filesystem::path& path);

  /// In the order of the header.
  [[nodiscard]] const std::vector<StoredTensor>& tensors() const { return tensors_; }

  /// The tensor with this name. Throws Error if the file lacks it or its checksum differs.
  [[nodiscard]] Tensor read(const std::string& name);

 private:
  std::string file_;
  std::ifstream in_;
  uint64_t data_ = 0;  // where the data begin
  std::vector<StoredTensor> tensors_;
  std::unordered_map<std::string_view, size_t> by_name_;
};

/// The model's parameters and buffers as named tensors.
NamedTensors named_values(const Parameters& parameters);

/// The reverse: copies `tensors` into the parameters and buffers, converting the element type. Throws Error, beginning
/// with `origin`, on a missing or unexpected parameter or a different shape (naming the parameter and both shapes).
void load_parameters(const Parameters& parameters, const NamedTensors& tensors, const std::string& origin);

}  // namespace plumb
