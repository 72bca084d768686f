#include "plumb/model/model.h"

#include <algorithm>

#include "plumb/base/random.h"
#include "plumb/model/decoder.h"
#include "plumb/model/encoder_decoder.h"
#include "plumb/nn/init/init.h"
#include "plumb/ops/cross_entropy.h"
#include "plumb/ops/linear.h"

namespace plumb {

namespace {

/// Sentences of random tokens: enough for the variances of a profiling pass.
Batch random_batch(const ModelConfig& config, uint64_t seed) {
  constexpr int64_t kPairs = 16;
  const int64_t length = std::min<int64_t>(24, config.max_positions - 1);
  Random random(seed, "profile");
  const auto sentence = [&](int64_t vocabulary) {
    std::vector<int32_t> ids(static_cast<size_t>(length));
    for (int32_t& id : ids) id = static_cast<int32_t>(random.below(static_cast<uint64_t>(vocabulary)));
    return ids;
  };
  Batch batch;
  for (int64_t i = 0; i < kPairs; ++i) {
    const std::vector<int32_t> target = sentence(config.target_vocabulary);
    if (config.kind == "decoder") {
      append_running_text(batch, target, i);
    } else {
      append(batch, sentence(config.source_vocabulary), target, i);
    }
  }
  return batch;
}

}  // namespace

void Model::initialize(uint64_t seed) {
  plumb::initialize(parameters_, config_.initialization, depth_of(config_), seed);
  if (profiled()) profile(random_batch(config_, seed));
}

void Model::profile(const Batch& batch) {
  const at::NoGradGuard no_graph;
  ForwardContext context(Pass::profiling);
  states(batch, context);
}

Tensor Model::logits(const Tensor& hidden) const { return ops::linear(hidden, output_, Tensor()); }

Loss Model::loss(const Batch& batch, const LossOptions& options, ForwardContext& context) {
  const Tensor hidden = states(batch, context);
  const int64_t tokens = batch.target_layout.tokens();
  const double scale = options.scale.value_or(1.0 / static_cast<double>(tokens));
  const ops::CrossEntropy result =
      options.twice_differentiable
          ? ops::cross_entropy(logits(hidden), batch.labels, {}, options.label_smoothing, scale)
          : ops::linear_cross_entropy(hidden, output_, Tensor(), batch.labels, {}, options.label_smoothing, scale);
  return {result.loss, result.nll, tokens};
}

std::unique_ptr<Model> make_model(const ModelConfig& config, at::ScalarType type) {
  validate(config);
  if (config.kind == "decoder") return std::make_unique<Decoder>(config, type);
  return std::make_unique<EncoderDecoder>(config, type);
}

}  // namespace plumb
