// What training and measurement need of a model, whatever its kind.
#pragma once

#include <memory>
#include <optional>

#include "plumb/base/batch.h"
#include "plumb/model/config.h"
#include "plumb/nn/context.h"
#include "plumb/nn/parameters.h"

namespace plumb {

/// The loss of a batch.
struct Loss {
  Tensor value;        // scalar, differentiable: scale · Σ over target tokens of the label-smoothed cross-entropy
  double nll = 0;      // Σ −log p(token)
  int64_t tokens = 0;  // target tokens
};

struct LossOptions {
  double label_smoothing = 0;
  /// Factor on the sum over tokens; none: 1/tokens, the mean of this batch.
  std::optional<double> scale;
  /// Keep the logits, so that the loss can be differentiated twice.
  bool twice_differentiable = false;
};

class Model {
 public:
  Model(const ModelConfig& config, at::ScalarType type) : config_(config), parameters_(type) {}
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  Model(Model&&) = default;
  Model& operator=(Model&&) = default;
  virtual ~Model() = default;

  [[nodiscard]] const ModelConfig& config() const { return config_; }
  [[nodiscard]] const Parameters& parameters() const { return parameters_; }

  /// Fills the parameters by config().initialization. A scheme that is profiled is so with a batch of random tokens.
  void initialize(uint64_t seed);

  /// The profiling pass of a scheme that has one (Admin), with a batch of one's own; to follow `initialize`.
  void profile(const Batch& batch);

  /// Hidden states at the end of the model for the target tokens of a batch, (target tokens, d_model).
  virtual Tensor states(const Batch& batch, ForwardContext& context) = 0;

  /// (tokens, d_model) → (tokens, target vocabulary).
  [[nodiscard]] Tensor logits(const Tensor& hidden) const;

  Loss loss(const Batch& batch, const LossOptions& options, ForwardContext& context);

 protected:
  /// Whether the residual scheme wants a profiling pass.
  [[nodiscard]] virtual bool profiled() const = 0;

  Tensor output_;  // (target vocabulary, d_model)
  ModelConfig config_;
  Parameters parameters_;
};

/// A model of config.kind with all parameters 0; `type` is at::kFloat or at::kDouble. Throws Error if the configuration
/// is none.
std::unique_ptr<Model> make_model(const ModelConfig& config, at::ScalarType type = at::kFloat);

}  // namespace plumb
