// A model's parameters by name, in one contiguous buffer.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plumb/ops/device.h"
#include "plumb/ops/flatten.h"
#include "plumb/ops/torch.h"

namespace plumb {

class Random;

/// While one lives, parameters that this thread declares have shapes but no memory, and there is no flat buffer: they
/// get memory when the model has been divided.
class WithoutMemory {
 public:
  explicit WithoutMemory(bool applies = true);
  ~WithoutMemory();
  WithoutMemory(const WithoutMemory&) = delete;
  WithoutMemory& operator=(const WithoutMemory&) = delete;

 private:
  bool before_;
};

/// A tensor of this shape without memory.
Tensor empty_without_memory(at::IntArrayRef shape, const at::TensorOptions& options);

/// Gives a tensor memory for all of its elements, or takes it away, with all views of it, which keep their shapes. On
/// the CPU only.
void set_memory(const Tensor& x, bool present);

/// The role of a parameter, for initialization and for optimizers.
enum class Role {
  weight,
  stacked_qkv,          // query, key and value, stacked
  attention_output,     // the last matrix of attention
  feed_forward_input,   // the first matrix of the feed-forward sub-layer
  feed_forward_output,  // the second matrix
  bias,
  embedding,
  readout,  // from the last representation to the outputs of a classifier
  position,
  gain,
  shift,
  constant,  // initially Parameter::initial, initial_values or draw
  adapter    // initially N(0, Parameter::initial²)
};

struct Parameter {
  std::string name;  // as in a PyTorch state dict
  Role role;
  Tensor value;                           // a leaf that requires gradients, a view of the flat buffer; or a buffer
  double initial = 0;                     // for a constant, an adapter or a buffer
  std::vector<int64_t> parts{};           // rows of each matrix if several are stacked, else empty
  Tensor initial_values{};                // for a constant whose elements differ; else undefined
  std::function<double(Random&)> draw{};  // of each element of a constant that is random; else empty
};

/// Whether the parameter is a weight matrix applied to each token, at 2 operations per element.
bool multiplies_each_token(const Parameter& parameter);

/// Parameters in the order in which the model declares them. Their values are stored consecutively in one flat buffer,
/// so that optimizers and Lanczos vectors work on a single vector of `count()` elements.
class Parameters {
 public:
  /// Parameters of this element type, on this device.
  explicit Parameters(at::ScalarType type, const at::Device& device = ops::default_device())
      : options_(at::TensorOptions(type).device(device)) {}

  /// Declares a parameter, initially zero. Throws Error if the name is declared twice.
  Tensor add(const std::string& name, at::IntArrayRef shape, Role role);

  /// Declares several matrices stacked in one parameter, such as query, key and value; `parts` are their row counts.
  Tensor add_stacked(const std::string& name, at::IntArrayRef shape, const std::vector<int64_t>& parts, Role role);

  /// Declares a parameter that every initialization sets to `initial`.
  Tensor add_constant(const std::string& name, at::IntArrayRef shape, double initial);

  /// The same with a value for each element.
  Tensor add_constant(const std::string& name, const Tensor& initial);

  /// Declares a parameter whose elements every initialization draws one after another, from the parameter's own stream.
  Tensor add_drawn(const std::string& name, at::IntArrayRef shape, std::function<double(Random&)> draw);

  /// Declares a parameter that every initialization draws from N(0, deviation²).
  Tensor add_adapter(const std::string& name, at::IntArrayRef shape, double deviation);

  /// Declares a tensor that is saved and loaded with the parameters but not trained, such as a running average. Its
  /// value is `initial` from the start and after every initialization; all(), count() and flat() do not include it.
  Tensor add_buffer(const std::string& name, at::IntArrayRef shape, double initial);

  /// Allocates the flat buffer, filled with zeros, and makes all parameters views of it. Call it when the model is
  /// complete.
  void allocate();

  [[nodiscard]] const std::vector<Parameter>& all() const { return all_; }
  [[nodiscard]] const std::vector<Parameter>& buffers() const { return buffers_; }
  /// Null if there is no such parameter; buffers are not searched.
  [[nodiscard]] const Parameter* find(const std::string& name) const;
  /// Throws Error, naming the closest parameter, if there is no such parameter.
  [[nodiscard]] const Parameter& at(const std::string& name) const;
  [[nodiscard]] std::vector<Tensor> values() const;
  [[nodiscard]] int64_t count() const;
  [[nodiscard]] at::ScalarType type() const { return at::typeMetaToScalarType(options_.dtype()); }
  [[nodiscard]] at::Device device() const { return options_.device(); }
  /// Type and device, for tensors used with the parameters.
  [[nodiscard]] const at::TensorOptions& options() const { return options_; }

  /// The buffer, (count()): writing to it writes the parameters.
  [[nodiscard]] const Tensor& flat() const { return flat_; }
  /// Whether there is that buffer. Otherwise, values have no memory yet (WithoutMemory), or only while they are needed
  /// (divided/parameter_shards.h).
  [[nodiscard]] bool has_flat() const { return flat_.numel() == count(); }

  /// The parameters with these indices, which ascend, and all buffers, sharing their values; also their part of the
  /// flat buffer, if there is one and they follow each other.
  [[nodiscard]] Parameters subset(const std::vector<size_t>& indices) const;

  /// The same parameters with other values, and the same buffers. `flat`: what flat() returns.
  [[nodiscard]] Parameters with_values(const std::vector<Tensor>& values, const Tensor& flat) const;

  /// Forgets the flat buffer, whose values have been moved elsewhere, until make_flat() allocates one and copies the
  /// values into it.
  void drop_flat();
  void make_flat();

  /// Splits a vector of count() elements into views with the parameters' shapes.
  [[nodiscard]] std::vector<Tensor> split(const Tensor& flat) const { return split_like(flat, values()); }

 private:
  at::TensorOptions options_;
  std::vector<Parameter> all_;
  std::vector<Parameter> buffers_;
  Tensor flat_;
};

/// The parameters in the order of a forward pass: those of a layer together, where its first one is declared. Their
/// gradients are complete in the reverse order.
std::vector<size_t> order_of_layers(const Parameters& parameters);

}  // namespace plumb
