#include "plumb/io/safetensors.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <span>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/json.h"
#include "plumb/base/text.h"

namespace plumb {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian; so is this reader");

struct ElementType {
  const char* name;
  at::ScalarType type;
};
constexpr ElementType kTypes[] = {
    {"F32", at::kFloat}, {"F64", at::kDouble}, {"F16", at::kHalf}, {"BF16", at::kBFloat16}, {"I64", at::kLong}};

const char* type_name(const Tensor& tensor) {
  for (const ElementType& known : kTypes) {
    if (known.type == tensor.scalar_type()) return known.name;
  }
  throw Error(std::string("safetensors: cannot write elements of type ") + at::toString(tensor.scalar_type()));
}

at::ScalarType type_of(const std::string& name, const std::string& tensor, const std::string& file) {
  for (const ElementType& known : kTypes) {
    if (name == known.name) return known.type;
  }
  throw Error(fmt::format("{}: tensor '{}' has elements of unknown type {}", file, tensor, name));
}

std::string shape_text(at::IntArrayRef shape) {
  return fmt::format("({})", fmt::join(shape.begin(), shape.end(), ", "));
}

const char* bytes_of(const Tensor& tensor) { return static_cast<const char*>(tensor.data_ptr()); }

}  // namespace

void save_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                      const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::vector<Tensor> data;
  int64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    data.push_back(tensor.detach().cpu().contiguous());
    const auto size = static_cast<int64_t>(data.back().nbytes());
    header[name] = {
        {"dtype", type_name(tensor)}, {"shape", tensor.sizes().vec()}, {"data_offsets", {offset, offset + size}}};
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
  const std::string file = path.string();
  // A copy: a mapped file that is shortened meanwhile ends the process.
  const std::string content = read_file(path);
  const auto bytes = std::as_bytes(std::span(content));
  uint64_t header_size = 0;
  if (bytes.size() >= sizeof header_size) std::memcpy(&header_size, bytes.data(), sizeof header_size);
  if (header_size == 0 || header_size > bytes.size() - sizeof header_size) {
    throw Error(fmt::format("{}: not a safetensors file, or truncated in its header", file), "copy the file again");
  }
  const char* begin = reinterpret_cast<const char*>(bytes.data()) + sizeof header_size;
  const Json header = Json::parse(begin, begin + header_size, nullptr, /*allow_exceptions=*/false);
  if (!header.is_object())
    throw Error(fmt::format("{}: not a safetensors file: its header is not a JSON object", file));
  const auto data = bytes.subspan(sizeof header_size + header_size);
  NamedTensors tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    try {
      const auto shape = entry.at("shape").get<std::vector<int64_t>>();
      const auto offsets = entry.at("data_offsets").get<std::vector<uint64_t>>();
      const Tensor tensor =
          at::empty(shape, at::TensorOptions(type_of(entry.at("dtype").get<std::string>(), name, file)));
      if (offsets.size() != 2 || offsets[1] < offsets[0] || offsets[1] - offsets[0] != tensor.nbytes()) {
        throw Error(fmt::format("{}: the data offsets of tensor '{}' do not match its shape {}", file, name,
                                shape_text(shape)));
      }
      if (offsets[1] > data.size()) {
        throw Error(fmt::format("{}: truncated: tensor '{}' of shape {} ends at byte {} of {}", file, name,
                                shape_text(shape), offsets[1], data.size()),
                    "copy the file again");
      }
      std::memcpy(tensor.data_ptr(), data.data() + offsets[0], tensor.nbytes());
      tensors.emplace_back(name, tensor);
    } catch (const nlohmann::json::exception&) {
      throw Error(fmt::format("{}: malformed header entry of tensor '{}'", file, name));
    }
  }
  return tensors;
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
    const auto found = given.find(name);
    if (found == given.end()) {
      const std::string guess = nearest(name, names);
      throw Error(fmt::format("{}: parameter '{}' of shape {} is missing", origin, name, shape_text(value.sizes())),
                  guess.empty() ? "" : fmt::format("the closest name in the file is '{}'", guess));
    }
    if (found->second.sizes() != value.sizes()) {
      throw Error(fmt::format("{}: parameter '{}' has shape {}, but the model expects {}", origin, name,
                              shape_text(found->second.sizes()), shape_text(value.sizes())),
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
