#include "plumb/study/part.h"

#include "plumb/data/batches.h"
#include "plumb/nn/attention/attention.h"
#include "plumb/nn/init/init.h"

namespace plumb {

ModelConfig model_for(const StudyContext& context, const std::string& scheme, int64_t layers) {
  ModelConfig model = context.config.model;
  model.residual = scheme;
  if (initializations().entries().count(scheme) != 0) model.initialization = scheme;
  model.encoder_layers = model.decoder_layers = layers;
  context.task.complete(model);
  return model;
}

std::vector<StackKind> stacks_of(const StudyContext& context) {
  const ModelDepth depth = depth_of(context.config.model);
  std::vector<StackKind> stacks;
  if (depth.encoder_layers > 0) stacks.push_back(StackKind::encoder);
  if (depth.decoder_layers > 0) stacks.push_back(StackKind::decoder);
  return stacks;
}

std::unique_ptr<Model> initialized_model(const StudyContext& context, const ModelConfig& config, int64_t i) {
  std::unique_ptr<Model> model = make_model(config);
  model->initialize(static_cast<uint64_t>(context.config.study.seed + i));
  return model;
}

std::vector<Batch> measured_batches(const StudyContext& context, int64_t pairs, int64_t batch_tokens) {
  return evaluation_batches(*context.task.dataset(context.config.data.measured_split), batch_tokens, pairs);
}

namespace {

struct AttentionSection {
  std::string kind;
  VariantOptions options;
};
void describe(Fields& field, AttentionSection& section) {
  describe_options(field, attentions(), section.kind, section.options);
}

}  // namespace

std::string options_text(const std::string& attention, const VariantOptions& options) {
  return ConfigWriter().section("model", AttentionSection{attention, options}).text();
}

Json settings_of(const ModelConfig& model) { return ConfigWriter().section("model", model).text(); }

}  // namespace plumb
