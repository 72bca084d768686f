#include "plumb/model/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plumb/base/error.h"
#include "plumb/base/random.h"
#include "plumb/model/kind.h"
#include "plumb/nn/init/init.h"
#include "plumb/nn/residual/residual.h"
#include "plumb/nn/unit_matrices.h"
#include "plumb/ops/cross_entropy.h"
#include "plumb/ops/linear.h"

namespace plumb {

namespace {

/// Random tokens, enough for the variances in a profiling pass; without labels.
Batch random_batch(const ModelConfig& config, uint64_t seed) {
  constexpr int64_t kSequences = 16;
  constexpr int64_t kLength = 24;
  Random random(seed, "profile");
  const auto tokens = [&](int64_t vocabulary, std::vector<int64_t>& ids, Ragged& layout) {
    for (int64_t i = 0; i < kSequences; ++i) {
      layout.append(std::min(kLength, config.max_positions));
      while (std::ssize(ids) < layout.tokens())
        ids.push_back(static_cast<int64_t>(random.below(static_cast<uint64_t>(vocabulary))));
    }
  };
  Batch batch;
  const ModelKind& kind = kind_of(config);
  if (kind.reads_source) tokens(source_vocabulary_of(config), batch.source, batch.source_layout);
  if (kind.reads_target) tokens(config.target_vocabulary, batch.target_input, batch.target_layout);
  return batch;
}

InitializationChoice initialization_of(const ModelConfig& config) {
  return {config.initialization, config.encoder_initialization, config.initialization_scale};
}

/// The factor of the sum over labels of this weight.
double scale_of(const LossOptions& options, double weight) {
  return options.scale.value_or(weight > 0 ? 1.0 / weight : 0.0);  // not ∞, which times a sum of 0 is NaN
}

}  // namespace

void Model::initialize(uint64_t seed) {
  plumb::initialize(parameters_, initialization_of(config_), depth_of(config_), seed);
  constrain();
  if (profiled()) profile(random_batch(config_, seed));
}

std::function<void(const Parameter&)> Model::initializer(uint64_t seed) const {
  return plumb::initializer(initialization_of(config_), depth_of(config_), seed);
}

bool Model::initializes_separately() const { return !profiled() && !prescription_of(config_.residual).unit_matrices; }

void Model::constrain(const std::vector<bool>& frozen) {
  if (prescription_of(config_.residual).unit_matrices) normalize_matrices(parameters_, frozen);
}

Tensor Model::tangent(const Tensor& change) const {
  return prescription_of(config_.residual).unit_matrices ? tangent_to_unit_matrices(parameters_, change) : change;
}

LayerDivision Model::divide(const Group& group) {
  LayerDivision division(parameters_, group);
  if (group.size() == 1) return division;
  divide_all(division);
  division.apply(parameters_);
  return division;
}

LayerDivision Model::planned_division(int64_t ranks) {
  LayerDivision division(parameters_, ranks);
  if (ranks > 1) divide_all(division);
  return division;
}

void Model::divide_all(LayerDivision& division) {
  divide_layers(division);
  if (config_.labels == 0) output_rows_ = VocabularyRows(division, {output_, output_bias_});
}

void Model::allocate() {
  if (!parameters_.has_flat()) parameters_.allocate();
}

void Model::divide_layers(LayerDivision& /*division*/) {
  throw Error(fmt::format("a model of kind \"{}\" cannot be divided among processes", config_.kind));
}

void Model::profile(const Batch& batch) {
  const at::NoGradGuard no_graph;
  ForwardContext context(Pass::profiling);
  states(batch, context);
}

void Model::add_output(int64_t vocabulary, const Tensor& shared) {
  output_ =
      shared.defined() ? shared : parameters_.add("output.weight", {vocabulary, config_.d_model}, Role::embedding);
  if (config_.output_bias) output_bias_ = parameters_.add("output.bias", {vocabulary}, Role::bias);
  add_output_scale();
}

void Model::add_readout(int64_t width) {
  output_ = parameters_.add("output.weight", {config_.labels, width}, Role::readout);
  output_bias_ = parameters_.add("output.bias", {config_.labels}, Role::bias);
  add_output_scale();
}

void Model::add_output_scale() {
  if (!prescription_of(config_.residual).unit_matrices) return;
  output_scale_ =
      parameters_.add_constant("output.scale", {outputs()}, 1 / std::sqrt(static_cast<double>(config_.d_model)));
}

int64_t Model::outputs() const { return config_.labels > 0 ? config_.labels : text_vocabulary_of(config_); }

Tensor Model::logit_scales() const { return output_scale_ * std::sqrt(static_cast<double>(config_.d_model)); }

Tensor Model::logits(const Tensor& hidden) const {
  if (!output_scale_.defined()) return output_rows_.logits(hidden, output_, output_bias_);
  const Tensor scaled = ops::linear(hidden, output_, {}) * logit_scales();
  return output_bias_.defined() ? scaled + output_bias_ : scaled;
}

Loss loss_of_logits(const Tensor& logits, const Batch& batch, const LossOptions& options) {
  const double weight = batch.weight();
  const ops::CrossEntropy result =
      ops::cross_entropy(logits, batch.labels, batch.weights, options.label_smoothing, scale_of(options, weight));
  return {result.loss, result.nll, std::ssize(batch.labels), weight};
}

Loss Model::loss(const Batch& batch, const LossOptions& options, ForwardContext& context) {
  return loss_of_states(states(batch, context), batch, options);
}

Loss Model::loss_of_states(const Tensor& hidden, const Batch& batch, const LossOptions& options) const {
  if (options.twice_differentiable) return loss_of_logits(logits(hidden), batch, options);
  const double weight = batch.weight();
  const Tensor matrix = output_scale_.defined() ? output_ * logit_scales().unsqueeze(1) : output_;
  const ops::CrossEntropy result = output_rows_.cross_entropy(hidden, matrix, output_bias_, batch.labels, batch.weights,
                                                              options.label_smoothing, scale_of(options, weight));
  return {result.loss, result.nll, std::ssize(batch.labels), weight};
}

std::unique_ptr<Model> make_model(const ModelConfig& config, at::ScalarType type) {
  return kind_of(config).make(config, type);
}

}  // namespace plumb
