// The residual scheme, which owns the stream: it alone decides where norms, dropout and additions are.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "plumb/base/options.h"
#include "plumb/base/registry.h"
#include "plumb/nn/context.h"
#include "plumb/nn/layer_id.h"
#include "plumb/nn/model_depth.h"
#include "plumb/nn/norm/norm.h"
#include "plumb/nn/parameters.h"

namespace plumb {

/// What flows through a stack of layers: one tensor (tokens, d_model) for most schemes, more for some.
struct Stream {
  Tensor x;
  Tensor second{};                // for schemes with a second stream, of any shape
  std::vector<Tensor> sources{};  // for schemes that read earlier outputs, each (tokens, d_model)

  /// Calls visit(tensor) for each defined tensor.
  template <typename Visit>
  void for_each(const Visit& visit) {
    visit(x);
    if (second.defined()) visit(second);
    for (Tensor& source : sources) visit(source);
  }
};

/// One sub-layer: self-attention, cross-attention, feed-forward, or self-attention and feed-forward in parallel;
/// (tokens, d_model) → (tokens, d_model).
struct SubLayer {
  LayerId id;
  int64_t position;  // within the layer, from 0
  std::function<Tensor(const Tensor&)> forward;

  [[nodiscard]] int64_t layer() const { return id.layer.value(); }
};

/// f(input), with both shown to observers as Point::input and Point::output.
Tensor watched_forward(const SubLayer& f, const Tensor& input, ForwardContext& context);

struct StackShape;

/// Decides what a sub-layer reads and how its output is added to the stream. It treats each token independently, so
/// incremental decoding uses the same code.
class ResidualScheme {
 public:
  virtual ~ResidualScheme() = default;
  /// The stream at the start of the stack; x: (tokens, d_model).
  virtual Stream enter(const Tensor& x, ForwardContext&) const { return {x}; }
  /// Runs one sub-layer and updates the stream.
  virtual void apply(Stream& stream, const SubLayer& f, ForwardContext& context) const = 0;
  /// The output of the stack, (tokens, d_model): stream.x, through the final norm if the scheme has one.
  virtual Tensor leave(const Stream& stream, ForwardContext& context) const {
    return final_norm_ ? (*final_norm_)(stream.x, context) : stream.x;
  }
  /// Whether initialization ends with a forward pass of Pass::profiling, in which the scheme sets parameters.
  [[nodiscard]] virtual bool profiled() const { return false; }

 protected:
  /// Declares the norm at the end of the stack, "encoder.norm".
  void add_final_norm(Parameters& parameters, const StackShape& shape);

 private:
  std::unique_ptr<Norm> final_norm_;  // or null
};

/// The shape of the stack that a scheme is built for: `layers` layers of `sub_layers` sub-layers each.
struct StackShape {
  StackKind stack;
  int64_t layers;
  int64_t sub_layers;
  int64_t d_model;
  std::string norm;
  double norm_eps;
  ModelDepth model{};        // the model that the stack is part of
  VariantOptions options{};  // of all schemes, by name
};

/// Requirements of a scheme on parts of the model that it does not own; the model implements them.
struct Prescription {
  /// Attention applies the model's norm to the queries, keys and values of each head (HybridNorm).
  bool qkv_norm = false;
  /// Matrices consist of vectors of length 1 at all times (nn/unit_matrices.h), attention normalizes the queries and
  /// keys of each head, and logits are multiplied by a trained scale for each class (nGPT).
  bool unit_matrices = false;

  bool operator==(const Prescription&) const = default;
};

/// Makes a scheme with its own options, which have been checked, and holds its prescription.
class ResidualFactory {
 public:
  using Make = std::function<std::unique_ptr<ResidualScheme>(Parameters&, const StackShape&, const Options&)>;
  template <typename F>
  requires(!std::is_same_v<F, ResidualFactory> && std::is_convertible_v<F, Make>)
      ResidualFactory(F make, const Prescription& prescribes = {})  // NOLINT(google-explicit-constructor): of a lambda
      : make_(std::move(make)), prescribes_(prescribes) {}

  std::unique_ptr<ResidualScheme> operator()(Parameters& parameters, const StackShape& shape,
                                             const Options& options) const {
    return make_(parameters, shape, options);
  }
  [[nodiscard]] const Prescription& prescribes() const { return prescribes_; }

 private:
  Make make_;
  Prescription prescribes_;
};
Registry<ResidualFactory>& residual_schemes();

/// Registers a scheme that is constructed from its parameters, the shape of its stack and its own options, if it has
/// any. `title`: as reports call it.
template <typename Scheme, typename... OwnOptions>
bool add_residual_scheme(const std::string& name, std::string title, std::string summary, std::string reference,
                         const Prescription& prescribes = {}) {
  const auto make = [](Parameters& parameters, const StackShape& shape, [[maybe_unused]] const Options& options) {
    return std::make_unique<Scheme>(parameters, shape, options.as<OwnOptions>()...);
  };
  return residual_schemes().add(name, std::move(summary), std::move(reference), {make, prescribes},
                                Options(OwnOptions())...) &&
         residual_schemes().named(name, std::move(title));
}

/// By name, or as tensor2tensor's two strings separated by a slash: "n/da" is Pre-LN, "/dan" Post-LN. Throws Error on
/// an unknown name or options out of range.
std::unique_ptr<ResidualScheme> make_residual_scheme(const std::string& name, Parameters& parameters,
                                                     const StackShape& shape);

/// The prescription of the scheme of this name. Throws Error on an unknown name.
Prescription prescription_of(const std::string& name);

}  // namespace plumb
