#include "plumb/interop/weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <utility>

#include "plumb/base/error.h"
#include "plumb/base/glob.h"
#include "plumb/base/json.h"
#include "plumb/base/text.h"

namespace plumb {
namespace fs = std::filesystem;
namespace {

constexpr const char* kWhole = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

std::string shape_of(at::IntArrayRef shape) { return fmt::format("({})", fmt::join(shape.begin(), shape.end(), ", ")); }

/// The file of each tensor, by its name, according to the index.
std::map<std::string, std::string> read_index(const fs::path& index) {
  const Json document = read_json(index);
  const Json& map = value_or_null(document, "weight_map");
  if (!map.is_object() || map.empty())
    throw Error(fmt::format("{}: has no weight_map", index.string()), "copy the folder again");
  std::map<std::string, std::string> files;
  for (const auto& [name, file] : map.items()) {
    const std::string part = file.is_string() ? file.get<std::string>() : std::string();
    const bool beside = !part.empty() && part != "." && part != ".." && fs::path(part).filename() == part &&
                        part.find('\0') == std::string::npos;
    if (!beside) {
      throw Error(fmt::format("{}: tensor '{}' is said to be in {}, which is not the name of a file beside it",
                              index.string(), name, file.dump()),
                  "copy the folder again; the weights must lie in it, and not elsewhere");
    }
    files.emplace(name, file.get<std::string>());
  }
  return files;
}

NamedTensors read_parts(const fs::path& folder) {
  const fs::path index = folder / kIndex;
  const std::map<std::string, std::string> files = read_index(index);
  std::set<std::string> parts;
  for (const auto& [name, file] : files) parts.insert(file);
  NamedTensors all;
  std::set<std::string> seen;
  for (const std::string& part : parts) {
    for (auto& [name, tensor] : load_safetensors(folder / part)) {
      const auto place = files.find(name);
      if (place == files.end() || place->second != part) {
        throw Error(fmt::format("{}: tensor '{}' is in {}, but the index says {}", index.string(), name, part,
                                place == files.end() ? "nothing about it" : "it is in " + place->second));
      }
      seen.insert(name);
      all.emplace_back(name, std::move(tensor));
    }
  }
  for (const auto& [name, file] : files) {
    if (seen.count(name) == 0)
      throw Error(fmt::format("{}: tensor '{}' is not in {}", index.string(), name, file), "copy the folder again");
  }
  return all;
}

}  // namespace

Weights Weights::from_folder(const fs::path& folder) {
  const fs::path whole = folder / kWhole;  // a model saved again as one file may still have an old index
  std::error_code none;
  if (fs::is_regular_file(whole, none)) return {load_safetensors(whole), whole.string()};
  if (fs::is_regular_file(folder / kIndex, none)) return {read_parts(folder), (folder / kIndex).string()};
  throw Error(fmt::format("{}: contains neither {} nor {}", folder.string(), kWhole, kIndex),
              "weights in other formats, such as pytorch_model.bin, are not read: save them as safetensors");
}

Weights::Weights(NamedTensors tensors, std::string origin) : origin_(std::move(origin)) {
  for (auto& [name, tensor] : tensors) tensors_.insert_or_assign(name, std::move(tensor));
}

Weights Weights::recording(at::ScalarType type) {
  Weights weights({}, "");
  weights.recording_ = type;
  return weights;
}

void Weights::rename_ending(const std::string& from, const std::string& to) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors_) {
    if (name.ends_with(from)) names.push_back(name);
  }
  for (const std::string& name : names) {
    const std::string renamed = name.substr(0, name.size() - from.size()) + to;
    if (tensors_.count(renamed) != 0) continue;
    auto node = tensors_.extract(name);
    node.key() = renamed;
    tensors_.insert(std::move(node));
  }
}

Tensor Weights::take(const std::string& name, const std::vector<int64_t>& shape) {
  const std::string full = prefix_ + name;
  if (recording_) {
    requests_.emplace_back(full, at::ones({}, *recording_).expand(shape).requires_grad_());
    return requests_.back().second;
  }
  const auto entry = tensors_.find(full);
  if (entry == tensors_.end()) {
    std::vector<std::string> names;
    for (const auto& [known, tensor] : tensors_) names.push_back(known);
    const std::string guess = nearest(full, names);
    throw Error(fmt::format("{}: tensor '{}' of shape {} is missing", origin_, full, shape_of(shape)),
                guess.empty() ? "" : fmt::format("the closest name is '{}'", guess));
  }
  if (entry->second.sizes() != at::IntArrayRef(shape)) {
    throw Error(fmt::format("{}: tensor '{}' has shape {}, but config.json implies {}", origin_, full,
                            shape_of(entry->second.sizes()), shape_of(shape)));
  }
  if (!entry->second.is_floating_point())
    throw Error(fmt::format("{}: tensor '{}' does not contain floating-point numbers", origin_, full));
  Tensor tensor = std::move(entry->second);
  tensors_.erase(entry);
  return tensor;
}

void Weights::also_named(const std::string& copy) {
  if (recording_) {
    requests_.emplace_back(prefix_ + copy, requests_.back().second);
  } else {
    tensors_.erase(prefix_ + copy);
  }
}

void Weights::ignore(const std::string& pattern) {
  std::erase_if(tensors_, [&](const auto& item) { return glob_matches(pattern, item.first); });
}

void Weights::ignore_copies(const std::string& pattern, const Tensor& original) {
  for (const auto& [name, tensor] : tensors_) {
    if (!glob_matches(pattern, name) || at::equal(tensor.cpu(), original.cpu().to(tensor.scalar_type()))) continue;
    throw Error(
        fmt::format("{}: tensor '{}' differs from the embedding, to which config.json ties it", origin_, name),
        "if the model was trained with a matrix of its own there, set tie_word_embeddings to false in config.json");
  }
  ignore(pattern);
}

void Weights::leave_out(const std::string& pattern, const std::string& part) {
  const size_t before = tensors_.size();
  ignore(pattern);
  if (tensors_.size() < before) left_out_.push_back(part);
}

void Weights::require_all_used() const {
  if (tensors_.empty()) return;
  const auto& [name, tensor] = *tensors_.begin();
  throw Error(fmt::format("{}: the model has no tensor '{}' of shape {}", origin_, name, shape_of(tensor.sizes())),
              "the weights belong to another config.json, or to a part of the model that Plumb does not have");
}

}  // namespace plumb
