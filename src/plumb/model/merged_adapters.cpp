#include "plumb/model/merged_adapters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>

#include "plumb/base/error.h"

namespace plumb {
namespace {

/// The place of an adapter's rows in the matrix it adapts.
struct AdapterPlace {
  std::string_view adapter;  // suffix of its parameters' names, without ".a" or ".b"
  std::string_view matrix;   // suffix of the matrix's name
  int64_t from_end;          // its rows start this many times the rows of B before the end; 0: at the beginning
};

/// Keys and values have the same number of rows, at the end of the joint projection.
constexpr std::array<AdapterPlace, 8> kAdapterPlaces = {{{".q_lora", ".in_proj_weight", 0},
                                                         {".k_lora", ".in_proj_weight", 2},
                                                         {".v_lora", ".in_proj_weight", 1},
                                                         {".out_lora", ".out_proj.weight", 0},
                                                         {".gate_lora", ".gate.weight", 0},
                                                         {".linear1_lora", ".linear1.weight", 0},
                                                         {".linear2_lora", ".linear2.weight", 0},
                                                         {".linear3_lora", ".linear3.weight", 0}}};

/// The rows of W that the adapter (A, B) adapts. Throws Error if the shapes do not match.
Tensor adapted_rows(const Tensor& weight, const Tensor& a, const Tensor& b, int64_t from_end, const std::string& what) {
  const bool fits = weight.dim() == 2 && a.dim() == 2 && b.dim() == 2 && a.size(0) == b.size(1) && a.size(0) > 0 &&
                    weight.size(1) == a.size(1) && weight.size(0) >= b.size(0) * std::max<int64_t>(from_end, 1);
  if (!fits) throw Error(fmt::format("{} does not fit its matrix", what));
  return weight.narrow(0, from_end == 0 ? 0 : weight.size(0) - from_end * b.size(0), b.size(0));
}

}  // namespace

NamedTensors merge_adapters(const NamedTensors& tensors, const LoraOptions& options, const std::string& origin) {
  std::map<std::string, Tensor> values(tensors.begin(), tensors.end());  // changed tensors are replaced by copies
  const auto found = [&](const std::string& name) {
    const auto entry = values.find(name);
    if (entry == values.end()) throw Error(fmt::format("{}: '{}' is missing", origin, name));
    return entry->second;
  };
  for (const auto& [name, b] : tensors) {
    for (const auto& [adapter, matrix, from_end] : kAdapterPlaces) {
      if (name.ends_with(std::string(adapter) + ".a")) (void)found(name.substr(0, name.size() - 1) + "b");
      const std::string end = std::string(adapter) + ".b";
      if (!name.ends_with(end)) continue;
      const std::string prefix = name.substr(0, name.size() - end.size());
      const Tensor a = found(prefix + std::string(adapter) + ".a");
      const std::string of = prefix + std::string(matrix);
      const Tensor weight = found(of).clone();
      const Tensor rows = adapted_rows(weight, a, b, from_end, fmt::format("{}: the adapter '{}'", origin, name));
      rows.add_(at::mm(b, a), options.alpha / static_cast<double>(a.size(0)));
      values.insert_or_assign(of, weight);
    }
  }
  NamedTensors merged;
  for (const auto& [name, value] : tensors) {
    if (!is_of_adapter(name)) merged.emplace_back(name, values.at(name));
  }
  return merged;
}

}  // namespace plumb
