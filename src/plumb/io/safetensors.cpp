#include "plumb/io/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "plumb/base/contains.h"
#include "plumb/base/crc32.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "plumb/base/text.h"

namespace plumb {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian; so is this reader");

struct ElementType {
  const char* name;
  at::ScalarType type;
};
constexpr ElementType kTypes[] = {
    {"F32", at::kFloat}, {"F64", at::kDouble}, {"F16", at::kHalf}, {"BF16", at::kBFloat16}, {"I64", at::kLong},
    {"I32", at::kInt},   {"I16", at::kShort},  {"I8", at::kChar},  {"U8", at::kByte},       {"BOOL", at::kBool}};

const char* type_name(const Tensor& tensor) {
  if (const ElementType* known = find_by(kTypes, &ElementType::type, tensor.scalar_type())) return known->name;
  throw Error(std::string("safetensors: cannot write elements of type ") + at::toString(tensor.scalar_type()));
}

at::ScalarType type_of(const std::string& name, const std::string& tensor, const std::string& file) {
  if (const ElementType* known = find_by(kTypes, &ElementType::name, name)) return known->type;
  throw Error(fmt::format("{}: tensor '{}' has elements of unknown type {}", file, tensor, name));
}

std::string shape_text(at::IntArrayRef shape) {
  return fmt::format("({})", fmt::join(shape.begin(), shape.end(), ", "));
}

using HeaderJson = nlohmann::json;
constexpr std::string_view kMetadata = "__metadata__";

Error malformed_entry(const std::string& tensor, const std::string& file) {
  return Error(fmt::format("{}: malformed header entry of tensor '{}'", file, tensor));
}

/// A list of non-negative integers from the header. Throws Error, naming the tensor, if it is anything else.
std::vector<uint64_t> counts_of(const HeaderJson& json, const std::string& name, const char* what,
                                const std::string& file) {
  constexpr size_t kMost = 64;
  std::vector<uint64_t> counts;
  if (!json.is_array()) throw Error(fmt::format("{}: tensor '{}': its {} is not a list", file, name, what));
  if (json.size() > kMost)
    throw Error(fmt::format("{}: tensor '{}': its {} has more than {} numbers", file, name, what, kMost));
  for (const HeaderJson& value : json) {
    const bool is_count = value.is_number_integer() && (value.is_number_unsigned() || value.get<int64_t>() >= 0);
    if (!is_count)
      throw Error(
          fmt::format("{}: tensor '{}': {} in its {} is not a non-negative integer", file, name, value.dump(), what));
    counts.push_back(value.get<uint64_t>());
  }
  return counts;
}

/// Throws Error if the shape and the offsets contradict each other, before anything of that size is allocated.
StoredTensor entry_of(const std::string& name, const HeaderJson& json, const std::string& file) {
  try {
    const std::vector<uint64_t> shape = counts_of(json.at("shape"), name, "shape", file);
    const std::vector<uint64_t> offsets = counts_of(json.at("data_offsets"), name, "data_offsets", file);
    const at::ScalarType type = type_of(json.at("dtype").get<std::string>(), name, file);
    // Dimension by dimension to avoid overflow.
    bool fits = offsets.size() == 2 && offsets[0] <= offsets[1];
    uint64_t size = at::elementSize(type);  // if empty, without the zeros: LibTorch computes this product too
    const uint64_t room = fits ? offsets[1] - offsets[0] : 0;
    const bool empty = contains(shape, uint64_t{0});
    const uint64_t most = empty ? std::numeric_limits<int64_t>::max() : room;
    for (const uint64_t count : shape) {
      if (count == 0) continue;
      fits = fits && count <= most / size;
      if (fits) size *= count;
    }
    if (!fits || room != (empty ? 0 : size)) {
      throw Error(fmt::format("{}: the data offsets of tensor '{}' do not match its shape ({})", file, name,
                              fmt::join(shape, ", ")));
    }
    return {name, type, {shape.begin(), shape.end()}, offsets[0], offsets[1]};
  } catch (const nlohmann::json::exception&) {
    throw malformed_entry(name, file);
  }
}

/// Throws Error unless the tensors fill the data without gaps or overlaps, as the format requires.
void check_places(const std::vector<StoredTensor>& entries, uint64_t size, const std::string& file) {
  std::vector<const StoredTensor*> order;
  for (const StoredTensor& entry : entries) order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](const StoredTensor* a, const StoredTensor* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  uint64_t end = 0;
  std::string last;
  for (const StoredTensor* entry : order) {
    if (entry->end > size) {
      throw Error(fmt::format("{}: truncated: tensor '{}' of shape {} ends at byte {} of {}", file, entry->name,
                              shape_text(entry->shape), entry->end, size),
                  "copy the file again");
    }
    if (entry->begin < end) throw Error(fmt::format("{}: tensors '{}' and '{}' overlap", file, last, entry->name));
    if (entry->begin > end) {
      throw Error(
          fmt::format("{}: {} bytes before tensor '{}' belong to no tensor", file, entry->begin - end, entry->name));
    }
    end = entry->end;
    last = entry->name;
  }
  if (end < size) throw Error(fmt::format("{}: {} bytes at the end belong to no tensor", file, size - end));
}

const char* bytes_of(const Tensor& tensor) { return static_cast<const char*>(tensor.data_ptr()); }

/// The key of a tensor's checksum in the header's "__metadata__".
std::string checksum_key(const std::string& name) { return "crc32." + name; }

uint32_t checksum_of(const Tensor& tensor) {
  return tensor.nbytes() == 0 ? 0 : crc32_of(std::string_view(bytes_of(tensor), tensor.nbytes()));
}

/// The tensors of a header, read one at a time so that it is never in memory as a whole. Throws Error if it nests too
/// deeply or is not a JSON object of tensors.
std::vector<StoredTensor> parse_header(std::string_view text, const std::string& file) {
  constexpr size_t kLongestName = 1024;
  if (nests_too_deeply(text)) throw Error(fmt::format("{}: its header is nested too deeply", file));
  std::vector<StoredTensor> tensors;
  std::string name;  // of the entry at hand
  const auto take = [&](int depth, HeaderJson::parse_event_t event, const HeaderJson& value) {
    using Event = HeaderJson::parse_event_t;
    if (depth > 1 && event == Event::object_start) throw malformed_entry(name, file);
    if (depth != 1 || event == Event::object_start || event == Event::array_start) return true;
    if (event == Event::key) {
      name = value.get<std::string>();
      if (name.size() > kLongestName)
        throw Error(
            fmt::format("{}: the name of a tensor has {} bytes; at most {} are read", file, name.size(), kLongestName));
      return true;
    }
    if (name == kMetadata) return true;
    if (event != Event::object_end) throw malformed_entry(name, file);
    tensors.push_back(entry_of(name, value, file));
    return false;  // drops the entry
  };
  const HeaderJson rest = HeaderJson::parse(text.begin(), text.end(), take, /*allow_exceptions=*/false);
  if (!rest.is_object()) throw Error(fmt::format("{}: not a safetensors file: its header is not a JSON object", file));
  const HeaderJson metadata = rest.value(kMetadata, HeaderJson());
  for (StoredTensor& tensor : tensors) {
    const auto stored = metadata.find(checksum_key(tensor.name));
    if (stored != metadata.end()) tensor.checksum = stored->is_string() ? stored->get<std::string>() : stored->dump();
  }
  return tensors;
}

/// The size of the header, from the first bytes of a file.
uint64_t header_size_of(std::string_view beginning, uint64_t file_size, const std::string& file) {
  constexpr uint64_t kLargest = 100'000'000;
  uint64_t size = 0;
  if (beginning.size() >= sizeof size) std::memcpy(&size, beginning.data(), sizeof size);
  if (size == 0 || size > file_size - sizeof size)
    throw Error(fmt::format("{}: not a safetensors file, or truncated in its header", file), "copy the file again");
  if (size > kLargest)
    throw Error(fmt::format("{}: its header has {} bytes; the format allows {}", file, size, kLargest));
  return size;
}

}  // namespace

void save_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                      const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty() || !tensors.empty()) header["__metadata__"] = metadata;
  std::vector<Tensor> data;
  int64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    data.push_back(tensor.detach().cpu().contiguous());
    const auto size = static_cast<int64_t>(data.back().nbytes());
    header[name] = {
        {"dtype", type_name(tensor)}, {"shape", tensor.sizes().vec()}, {"data_offsets", {offset, offset + size}}};
    header["__metadata__"][checksum_key(name)] = crc32_text(checksum_of(data.back()));
    offset += size;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');  // data starts at a multiple of 8
  write_file_atomic(path, [&](std::ostream& out) {
    const uint64_t length = text.size();
    out.write(reinterpret_cast<const char*>(&length), sizeof length);
    out.write(text.data(), static_cast<std::streamsize>(text.size()));
    for (const Tensor& tensor : data) out.write(bytes_of(tensor), static_cast<std::streamsize>(tensor.nbytes()));
  });
}

NamedTensors load_safetensors(const std::filesystem::path& path) {
  SafetensorsReader reader(path);
  const uint64_t size = std::filesystem::file_size(path);
  struct sysinfo machine {};
  if (::sysinfo(&machine) == 0 && size / machine.mem_unit > machine.totalram + machine.totalswap)
    throw Error(fmt::format("{}: {} bytes of weights are more than the memory of this machine", path.string(), size));
  NamedTensors tensors;
  for (const StoredTensor& stored : reader.tensors()) tensors.emplace_back(stored.name, reader.read(stored.name));
  return tensors;
}

// Read, not mapped: truncating a mapped file crashes the process that reads it.
SafetensorsReader::SafetensorsReader(const std::filesystem::path& path) : file_(path.string()) {
  require_regular_file(path, {.bytes = std::numeric_limits<uint64_t>::max()});
  in_.open(path, std::ios::binary);
  const uint64_t size = std::filesystem::file_size(path);
  std::string beginning(std::min<uint64_t>(size, sizeof(uint64_t)), '\0');
  in_.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  std::string text(header_size_of(beginning, size, file_), '\0');
  in_.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!in_) throw Error(fmt::format("{}: cannot be read", file_));
  data_ = beginning.size() + text.size();
  tensors_ = parse_header(text, file_);
  for (const StoredTensor& tensor : tensors_) {
    if (!by_name_.emplace(tensor.name, by_name_.size()).second)
      throw Error(fmt::format("{}: contains two tensors named '{}'", file_, tensor.name));
  }
  check_places(tensors_, size - data_, file_);
}

Tensor SafetensorsReader::read(const std::string& name) {
  const auto place = by_name_.find(name);
  if (place == by_name_.end()) throw Error(fmt::format("{}: tensor '{}' is missing", file_, name));
  const StoredTensor& stored = tensors_[place->second];
  Tensor tensor = at::empty(stored.shape, at::TensorOptions(stored.type));
  in_.seekg(static_cast<std::streamoff>(data_ + stored.begin));
  in_.read(static_cast<char*>(tensor.data_ptr()), static_cast<std::streamsize>(tensor.nbytes()));
  if (!in_) throw Error(fmt::format("{}: tensor '{}' cannot be read", file_, name));
  if (!stored.checksum.empty() && stored.checksum != crc32_text(checksum_of(tensor)))
    throw Error(fmt::format("{}: tensor '{}' is damaged: its checksum is wrong", file_, name),
                "use an intact copy of the file");
  return tensor;
}

NamedTensors named_values(const Parameters& parameters) {
  NamedTensors tensors;
  for (const Parameter& parameter : parameters.all()) tensors.emplace_back(parameter.name, parameter.value.detach());
  for (const Parameter& buffer : parameters.buffers()) tensors.emplace_back(buffer.name, buffer.value);
  return tensors;
}

void load_parameters(const Parameters& parameters, const NamedTensors& tensors, const std::string& origin) {
  const at::NoGradGuard no_graph;
  std::map<std::string, Tensor> given(tensors.begin(), tensors.end());
  std::vector<std::string> names;
  for (const auto& [name, tensor] : given) names.push_back(name);
  std::map<std::string, Tensor> wanted;  // parameters and buffers
  for (const Parameter& parameter : parameters.all()) wanted.emplace(parameter.name, parameter.value.detach());
  for (const Parameter& buffer : parameters.buffers()) wanted.emplace(buffer.name, buffer.value);
  for (const auto& [name, value] : wanted) {
    const auto entry = given.find(name);
    if (entry == given.end()) {
      const std::string guess = nearest(name, names);
      throw Error(fmt::format("{}: parameter '{}' of shape {} is missing", origin, name, shape_text(value.sizes())),
                  guess.empty() ? "" : fmt::format("the closest name in the file is '{}'", guess));
    }
    if (entry->second.sizes() != value.sizes()) {
      throw Error(fmt::format("{}: parameter '{}' has shape {}, but the model expects {}", origin, name,
                              shape_text(entry->second.sizes()), shape_text(value.sizes())),
                  "the weights belong to another configuration");
    }
  }
  for (const std::string& name : names) {
    if (wanted.count(name) == 0) {
      throw Error(
          fmt::format("{}: the model has no parameter '{}' of shape {}", origin, name, shape_text(given[name].sizes())),
          "the weights belong to another configuration");
    }
  }
  for (const auto& [name, value] : wanted) value.copy_(given[name]);
}

}  // namespace plumb
