// Locations in a model: stack, layer and sub-layer. Their names are formatted and parsed only here.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace plumb {

enum class StackKind { encoder, decoder };

/// `parallel`: attention and feed-forward side by side, as one sub-layer.
enum class SubLayerKind { self_attention, cross_attention, feed_forward, parallel };

/// A sub-layer, a layer as a whole, or a stack as a whole.
struct LayerId {
  StackKind stack = StackKind::encoder;
  std::optional<int64_t> layer{};           // from 0; empty: the entire stack
  std::optional<SubLayerKind> sub_layer{};  // empty: the entire layer

  auto operator<=>(const LayerId&) const = default;  // NOLINT(modernize-use-nullptr): no null pointer

  /// The layer number as papers count, from 1; 0 for a stack.
  [[nodiscard]] int64_t number() const { return layer ? *layer + 1 : 0; }

  /// The location of a parameter, from its name: "encoder.layers.3.linear1.weight" belongs to a feed-forward sub-layer,
  /// a layer's other parameters (norms, gains) to the layer, "decoder.norm.weight" and "tgt_embed.weight" to the
  /// decoder. A recurrent language model counts as a decoder: "lstm.3.weight_ih_l0" belongs to layer 3,
  /// "embedding.weight" to the stack. Empty for parameters that belong to no single stack, such as "output.weight".
  static std::optional<LayerId> of_parameter(std::string_view name);

  /// Parses the output of to_string; empty for anything else.
  static std::optional<LayerId> parse(std::string_view name);
};

/// The activations shown to observers. Of a sub-layer: `input` (what it reads), `output` (what it returns), `sum`
/// (after the residual addition), `stream` (what the next sub-layer receives) and, where it differs, `representation`
/// (what the stack would return if it ended here); of a cross-attention also `memory` (the encoder's states, shown only
/// to taps). Of a recurrent layer: `input`, `output` and, to taps, `stream`. Of a stack: `input` and `result`.
enum class Point { input, output, sum, stream, representation, result, memory };

struct ActivationPoint {
  LayerId id;
  Point point = Point::input;

  auto operator<=>(const ActivationPoint&) const = default;  // NOLINT(modernize-use-nullptr)
};

std::string to_string(StackKind stack);               // "encoder"
std::string to_string(const LayerId& id);             // "encoder.layers.3.feed_forward", "encoder.layers.3", "encoder"
std::string to_string(const ActivationPoint& point);  // "encoder.layers.3.feed_forward.sum", "encoder.result"

}  // namespace plumb
