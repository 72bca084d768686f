#include "plumb/model/model.h"

#include "plumb/model/decoder.h"
#include "plumb/model/encoder_decoder.h"
#include "plumb/nn/init/init.h"
#include "plumb/ops/cross_entropy.h"
#include "plumb/ops/linear.h"

namespace plumb {

void Model::initialise(uint64_t seed) { plumb::initialise(parameters_, config_.initialisation, seed); }

Tensor Model::logits(const Tensor& hidden) const { return ops::matrix_product(hidden, output_, false, true); }

Loss Model::loss(const Batch& batch, const LossOptions& options, ForwardContext& context) {
  const Tensor hidden = target_states(batch, context);
  const int64_t tokens = batch.target_layout.tokens();
  const double scale = options.scale.value_or(1.0 / static_cast<double>(tokens));
  const ops::CrossEntropy result =
      options.twice_differentiable
          ? ops::cross_entropy(logits(hidden), batch.target_output, options.label_smoothing, scale)
          : ops::linear_cross_entropy(hidden, output_, batch.target_output, options.label_smoothing, scale);
  return {result.loss, result.nll, tokens};
}

std::unique_ptr<Model> make_model(const ModelConfig& config, at::ScalarType type) {
  validate(config);
  if (config.kind == "decoder") return std::make_unique<Decoder>(config, type);
  return std::make_unique<EncoderDecoder>(config, type);
}

}  // namespace plumb
