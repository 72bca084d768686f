#include "plumb/model/encoder.h"

#include "plumb/base/error.h"
#include "plumb/model/kind.h"
#include "plumb/ops/index.h"

namespace plumb {
namespace {

void check_encoder(const ModelConfig& config) {
  if (config.pooling != "none" && config.labels == 0)
    throw Error("the number of labels is unknown", "set model.labels, or give --data");
  if (config.pooling == "none" && config.pooler)
    throw Error("model.pooler = true has no effect with model.pooling = \"none\"");
}

const bool kEncoderRegistered = model_kinds().add(
    "encoder",
    "the encoder alone, which reads the source side bidirectionally and predicts one of `model.labels` labels",
    "Devlin et al. 2019, arXiv 1810.04805",
    {.reads_source = true, .pooling = "first", .check = check_encoder, .make = makes<Encoder>});

}  // namespace

Encoder::Encoder(const ModelConfig& config, at::ScalarType type)
    : Model(config, type), pooling_(poolings().at(config.pooling).make) {
  validate(config);
  require_kind(config, "encoder");
  const int64_t d = config.d_model;
  const Tensor table = parameters_.add("src_embed.weight", {source_vocabulary_of(config), d}, Role::embedding);
  embedding_ = std::make_unique<TokenEmbedding>(parameters_, config,
                                                TokenEmbedding::Shape{"src", false, config.segments}, table);
  stack_ = std::make_unique<Stack>(parameters_, config,
                                   Stack::Shape{StackKind::encoder, config.encoder_layers, false, false},
                                   embedding_->positions());
  const int64_t pooled = pooling_.vectors * d;
  if (config.pooler) pooler_ = Linear(parameters_, "pooler", d, pooled, Role::weight);
  if (config.output_transform) {
    transform_ = Linear(parameters_, "transform", d, d, Role::weight);
    transform_norm_ = norms().at(config.norm).make(parameters_, "transform_norm", d, config.norm_eps);
  }
  if (config.pooling == "none") {
    add_output(source_vocabulary_of(config), config.share_embeddings == "none" ? Tensor() : table);
  } else {
    add_readout(config.pooler ? d : pooled);
  }
  parameters_.allocate();
}

Tensor Encoder::hidden(const std::vector<int64_t>& tokens, const std::vector<int64_t>& segments, const Ragged& layout,
                       ForwardContext& context) {
  context.enter(layout);
  LayerRange all;
  return stack_->part(
      context.layer_range() != nullptr ? *context.layer_range() : all, 0,
      [&] { return (*embedding_)(tokens, layout.positions(), segments, context); }, layout, {}, context);
}

Tensor Encoder::states(const Batch& batch, ForwardContext& context) {
  const Tensor all = hidden(batch.source, batch.segments, batch.source_layout, context);
  if (!all.defined()) return {};
  Tensor pooled = pooling_(all, batch.source_layout);
  if (!batch.predicted_positions.empty())
    pooled = pooled.index_select(0, ops::index_beside(pooled, batch.predicted_positions));
  if (transform_) return (*transform_norm_)(at::gelu(transform_(pooled)), context);
  return pooler_ ? at::tanh(pooler_(pooled)) : pooled;
}

Tensor Encoder::class_logits(const Batch& batch) {
  const at::NoGradGuard no_graph;
  ForwardContext context;
  return logits(states(batch, context));
}

}  // namespace plumb
