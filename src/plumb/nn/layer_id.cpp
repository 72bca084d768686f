#include "plumb/nn/layer_id.h"

#include <array>
#include <utility>

#include "plumb/base/parse_number.h"

namespace plumb {
namespace {

constexpr std::array<std::string_view, 2> kStacks = {"encoder", "decoder"};
constexpr std::array<std::string_view, 4> kSubLayers = {"self_attention", "cross_attention", "feed_forward",
                                                        "parallel"};
constexpr std::array<std::string_view, 7> kPoints = {"input",          "output", "sum",   "stream",
                                                     "representation", "result", "memory"};
constexpr std::string_view kLayers = "layers";

/// The prefix of the parameters of recurrent layers: "lstm.3.weight_ih_l0".
constexpr std::string_view kRecurrent = "lstm.";

/// Prefixes of a sub-layer's parameters, as PyTorch names them.
constexpr std::array<std::pair<std::string_view, SubLayerKind>, 3> kModules = {
    {{"self_attn", SubLayerKind::self_attention},
     {"multihead_attn", SubLayerKind::cross_attention},
     {"linear", SubLayerKind::feed_forward}}};

/// Removes everything up to and including the next dot from the front of a name, and returns it without the dot.
std::string_view next_part(std::string_view& name) {
  const size_t dot = name.find('.');
  const std::string_view part = name.substr(0, dot);
  name.remove_prefix(dot == std::string_view::npos ? name.size() : dot + 1);
  return part;
}

template <typename Kind, size_t count>
std::optional<Kind> kind_of(const std::array<std::string_view, count>& names, std::string_view name) {
  for (size_t i = 0; i < count; ++i) {
    if (names[i] == name) return static_cast<Kind>(i);
  }
  return std::nullopt;
}

/// The layer of "3.weight_ih_l0"; empty if it does not begin with a number.
std::optional<LayerId> recurrent_layer(std::string_view name) {
  const std::optional<int64_t> layer = parse_number<uint32_t>(next_part(name));
  if (!layer) return std::nullopt;
  return LayerId{StackKind::decoder, layer};
}

/// Removes "encoder.layers.3." or "encoder." from the front of a name, and returns the layer.
std::optional<LayerId> take_layer(std::string_view& name) {
  const std::optional<StackKind> stack = kind_of<StackKind>(kStacks, next_part(name));
  if (!stack) return std::nullopt;
  LayerId id{*stack};
  std::string_view rest = name;
  if (next_part(rest) == kLayers) {
    id.layer = parse_number<uint32_t>(next_part(rest));
    if (!id.layer) return std::nullopt;
    name = rest;
  }
  return id;
}

}  // namespace

std::optional<LayerId> LayerId::of_parameter(std::string_view name) {
  if (name.starts_with("src_")) return LayerId{StackKind::encoder};
  if (name.starts_with("tgt_") || name.starts_with("embedding.")) return LayerId{StackKind::decoder};
  if (name.starts_with(kRecurrent)) return recurrent_layer(name.substr(kRecurrent.size()));
  std::optional<LayerId> id = take_layer(name);
  if (!id || !id->layer) return id;
  for (const auto& [module, sub_layer] : kModules) {
    if (name.starts_with(module)) id->sub_layer = sub_layer;
  }
  return id;
}

std::optional<LayerId> LayerId::parse(std::string_view name) {
  std::string_view rest = name;
  std::optional<LayerId> id = take_layer(rest);
  if (id && id->layer) id->sub_layer = kind_of<SubLayerKind>(kSubLayers, rest);
  return id && to_string(*id) == name ? id : std::nullopt;
}

std::string to_string(StackKind stack) { return std::string(kStacks.at(static_cast<size_t>(stack))); }

std::string to_string(const LayerId& id) {
  std::string name = to_string(id.stack);
  if (id.layer) name.append(".").append(kLayers).append(".").append(std::to_string(*id.layer));
  if (id.sub_layer) name.append(".").append(kSubLayers.at(static_cast<size_t>(*id.sub_layer)));
  return name;
}

std::string to_string(const ActivationPoint& point) {
  return to_string(point.id).append(".").append(kPoints.at(static_cast<size_t>(point.point)));
}

}  // namespace plumb
