// A model's parameters by name, in one contiguous buffer.
#pragma once

#include <string>
#include <vector>

#include "plumb/ops/device.h"
#include "plumb/ops/torch.h"

namespace plumb {

/// What a parameter is, for initialization.
enum class Role {
  weight,
  stacked_qkv,          // query, key and value, one above the other
  attention_output,     // the last matrix of attention
  feed_forward_input,   // the first matrix of the feed-forward sub-layer
  feed_forward_output,  // its last one
  bias,
  embedding,
  position,
  gain,
  shift,
  constant  // starts as Parameter::initial
};

struct Parameter {
  std::string name;  // as in a PyTorch state dict
  Role role;
  Tensor value;                  // a leaf that requires gradients; a view of the flat buffer
  double initial = 0;            // of a constant
  std::vector<int64_t> parts{};  // rows of each matrix, where several lie one above the other; else empty
};

/// A flat vector cut into pieces of the shapes of `like`, one after another (views), and the reverse (a copy without a
/// graph).
std::vector<Tensor> split_like(const Tensor& flat, const std::vector<Tensor>& like);
Tensor joined(const std::vector<Tensor>& pieces);

/// Parameters in the order in which the model declares them. Their values lie one after the other in one flat buffer,
/// so that optimizers and Lanczos vectors work on a single vector of `count()` elements.
class Parameters {
 public:
  /// Of this element type, on this device.
  explicit Parameters(at::ScalarType type, const at::Device& device = ops::default_device())
      : options_(at::TensorOptions(type).device(device)) {}

  /// Declares a parameter of zeros. Throws Error on a name declared twice.
  Tensor add(const std::string& name, at::IntArrayRef shape, Role role);

  /// Declares matrices that lie one above the other in one parameter, as query, key and value do: `parts` are their
  /// numbers of rows.
  Tensor add_stacked(const std::string& name, at::IntArrayRef shape, const std::vector<int64_t>& parts, Role role);

  /// Declares a parameter that every initialization sets to `initial`.
  Tensor add_constant(const std::string& name, at::IntArrayRef shape, double initial);

  /// Declares a tensor that is saved and loaded with the parameters but not trained, such as a running average; it has
  /// the value `initial` now and after every initialization. It is no part of all(), count() and flat().
  Tensor add_buffer(const std::string& name, at::IntArrayRef shape, double initial);

  /// Moves all values into the flat buffer; called once, when the model is complete.
  void finish();

  [[nodiscard]] const std::vector<Parameter>& all() const { return all_; }
  [[nodiscard]] const std::vector<Parameter>& buffers() const { return buffers_; }
  [[nodiscard]] const Parameter* find(const std::string& name) const;
  /// Throws Error naming the nearest parameter.
  [[nodiscard]] const Parameter& at(const std::string& name) const;
  [[nodiscard]] std::vector<Tensor> values() const;
  [[nodiscard]] int64_t count() const;
  [[nodiscard]] at::ScalarType type() const { return at::typeMetaToScalarType(options_.dtype()); }
  [[nodiscard]] at::Device device() const { return options_.device(); }
  /// Type and device, for tensors that are to lie beside the parameters.
  [[nodiscard]] const at::TensorOptions& options() const { return options_; }

  /// The buffer, (count()): writing to it writes the parameters.
  [[nodiscard]] const Tensor& flat() const { return flat_; }

  /// A vector of (count()) elements cut into pieces of the parameters' shapes (views).
  [[nodiscard]] std::vector<Tensor> split(const Tensor& flat) const { return split_like(flat, values()); }

 private:
  at::TensorOptions options_;
  std::vector<Parameter> all_;
  std::vector<Parameter> buffers_;
  Tensor flat_;
};

}  // namespace plumb
