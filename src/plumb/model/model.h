// The interface that training and measurements use for models of any kind.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "plumb/base/batch.h"
#include "plumb/model/config.h"
#include "plumb/nn/context.h"
#include "plumb/nn/layer_division.h"
#include "plumb/nn/parameters.h"
#include "plumb/nn/vocabulary_rows.h"
#include "plumb/ops/device_scalar.h"

namespace plumb {

class Generates;
class Translates;
class Classifies;
class Embeds;

/// The loss of a batch.
struct Loss {
  Tensor value;           // scalar, differentiable: scale · Σ over labels of weight · label-smoothed cross-entropy
  ops::DeviceScalar nll;  // Σ −weight·log p(label)
  int64_t tokens = 0;     // labels
  double weight = 0;      // the sum of their weights
};

struct LossOptions {
  double label_smoothing = 0;
  /// Multiplies the sum over labels; empty: 1/(sum of their weights), the mean over this batch, or 0 if that sum is 0.
  std::optional<double> scale;
  /// Whether to keep the logits, so that the loss can be differentiated twice.
  bool twice_differentiable = false;
};

/// The loss of a batch from its logits, (labels, vocabulary); twice differentiable.
Loss loss_of_logits(const Tensor& logits, const Batch& batch, const LossOptions& options);

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

  /// Initializes the parameters by config().initialization. Schemes that need profiling are profiled on random tokens.
  void initialize(uint64_t seed);

  /// What that does with a single parameter; any thread may call it. Only if initializes_separately().
  [[nodiscard]] std::function<void(const Parameter&)> initializer(uint64_t seed) const;

  /// Whether `initialize` needs no more than one parameter at a time: the scheme neither profiles the model nor
  /// constrains its parameters.
  [[nodiscard]] bool initializes_separately() const;

  /// Restores the residual scheme's constraints on the parameters (Prescription::unit_matrices). `initialize` calls it;
  /// so must any code that changes parameters. `frozen` [parameter]: whether to leave it unchanged; empty: none.
  void constrain(const std::vector<bool>& frozen = {});

  /// The part of a change of the parameters (parameters) that `constrain` leaves, to first order; all of it if the
  /// scheme has no constraints.
  [[nodiscard]] Tensor tangent(const Tensor& change) const;

  /// Runs the profiling pass of a scheme that has one (Admin) on a given batch. Call it after `initialize`.
  void profile(const Batch& batch);

  /// The input of the output layer, one row per label of the batch: (labels, features). If the context has a range
  /// of layers (ForwardContext::run_layers), only these are run; without the last layer, the result is undefined.
  virtual Tensor states(const Batch& batch, ForwardContext& context) = 0;

  /// (rows, features) → (rows, output vocabulary or labels).
  [[nodiscard]] virtual Tensor logits(const Tensor& hidden) const;

  /// The number of classes per logit row: the target vocabulary, or the labels of a classifier.
  [[nodiscard]] int64_t outputs() const;

  /// The loss of a batch: the weighted mean cross-entropy of its labels, unless `options` says otherwise.
  virtual Loss loss(const Batch& batch, const LossOptions& options, ForwardContext& context);

  /// Divides every layer among the ranks of a group, which compute the model together from now on: they call everything
  /// with the same arguments in the same order, and get the same results. Norms stay whole, as do embeddings and the
  /// output layer if the number of ranks does not divide the vocabulary. Call it after `initialize`, with the same
  /// parameters in all ranks; it replaces the flat buffer. Throws Error if the model cannot be divided so
  /// (require_divisible in divided/divisible.h). In a group of one, nothing changes.
  LayerDivision divide(const Group& group);

  /// What the first of `ranks` that divide every layer would have (LayerDivision::shard). Afterward, the model cannot
  /// compute anything. Throws Error if it cannot be divided so.
  [[nodiscard]] LayerDivision planned_division(int64_t ranks);

  /// Gives parameters without memory, which may have been divided, a flat buffer of zeros.
  void allocate();

  /// The parameters, for what takes their memory away: until it gives it back (divided/parameter_shards.h), or leaving
  /// those of a stage (LayerDivision::keep_stage), of which only the layers can then be run (run_layers of contexts).
  [[nodiscard]] Parameters& mutable_parameters() { return parameters_; }

  /// Further capabilities of the model (model/capabilities.h); null if it lacks them.
  [[nodiscard]] virtual Generates* generates() { return nullptr; }
  [[nodiscard]] virtual Translates* translates() { return nullptr; }
  [[nodiscard]] virtual Classifies* classifies() { return nullptr; }
  [[nodiscard]] virtual Embeds* embeds() { return nullptr; }

 protected:
  /// Whether the residual scheme needs a profiling pass.
  [[nodiscard]] virtual bool profiled() const = 0;

  /// Divides the layers and embeddings; throws Error if this kind of model cannot be divided.
  virtual void divide_layers(LayerDivision& division);

  /// The loss from the states of a batch.
  Loss loss_of_states(const Tensor& hidden, const Batch& batch, const LossOptions& options) const;

  /// Declares the output layer over a vocabulary: its matrix is `shared`, or a new one if `shared` is undefined.
  void add_output(int64_t vocabulary, const Tensor& shared);

  /// Declares the output layer of a classifier over config().labels; `width`: the features it reads.
  void add_readout(int64_t width);

  /// Declares the scales of the logits if the residual scheme prescribes them. Call it after declaring the output
  /// layer.
  void add_output_scale();

  Tensor output_;               // (output vocabulary or labels, features)
  Tensor output_bias_;          // (output vocabulary or labels), or undefined
  VocabularyRows output_rows_;  // of both
  Tensor output_scale_;  // (output vocabulary or labels): the scales of the logits divided by √d_model, or undefined
  ModelConfig config_;
  Parameters parameters_;

 private:
  /// The scale of each logit: √d_model·output_scale_, so that Adam changes it as fast as the matrices (nGPT).
  [[nodiscard]] Tensor logit_scales() const;
  void divide_all(LayerDivision& division);
};

/// A model of config.kind with all parameters 0; `type` is at::kFloat or at::kDouble. Throws Error if the configuration
/// is invalid.
std::unique_ptr<Model> make_model(const ModelConfig& config, at::ScalarType type = at::kFloat);

}  // namespace plumb
