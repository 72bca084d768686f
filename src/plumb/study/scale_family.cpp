#include "plumb/study/scale_family.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "plumb/base/error.h"
#include "plumb/model/flops.h"
#include "plumb/ops/device.h"

namespace plumb {
namespace {

/// Scales a size of [model], such as the number of heads, to another width. Throws Error if the result is not whole.
int64_t at_width(int64_t size, int64_t width, const ModelConfig& base, const char* key) {
  if (size * width % base.d_model != 0) {
    throw Error(fmt::format("at a width of {}, model.{} would be {:g}", width, key,
                            static_cast<double>(size * width) / static_cast<double>(base.d_model)),
                fmt::format("choose widths of [scale] that keep the head size of [model], {}",
                            base.d_model / std::max<int64_t>(base.heads, 1)));
  }
  return size * width / base.d_model;
}

}  // namespace

std::string display_name(Parametrization parametrization) {
  return parametrization == Parametrization::mup ? "µP" : "standard parametrization";
}

std::vector<ScaleMember> scale_members(const StudyContext& context, const ScaleStudy& part, const std::string& arm) {
  const bool first = arm == context.arms.front().name;
  std::vector<ScaleMember> members;
  for (size_t i = 0; i < part.widths.size() - (first ? 0 : 1); ++i) {
    members.push_back({arm, part.parametrization == "mup" ? Parametrization::mup : Parametrization::standard,
                       part.widths[i], part.layers[i], train_for(context, arm).learning_rate});
  }
  return members;
}

ModelConfig scale_model(const StudyContext& context, const ScaleMember& member) {
  const ModelConfig base = model_for(context, member.arm, member.layers);
  ModelConfig model = base;
  model.d_model = member.width;
  model.feed_forward = std::max<int64_t>(base.feed_forward * member.width / base.d_model, 1);
  model.heads = at_width(base.heads, member.width, base, "heads");
  model.kv_heads = at_width(base.kv_heads, member.width, base, "kv_heads");
  if (member.parametrization == Parametrization::standard) return model;
  if (model.share_embeddings != "none") {
    throw Error(fmt::format("µP does not work with model.share_embeddings = \"{}\"", model.share_embeddings),
                "set model.share_embeddings = \"none\": embeddings and output have different learning rates");
  }
  if (model.embedding_factor > 0) {
    throw Error(fmt::format("µP does not work with model.embedding_factor = {:g}", model.embedding_factor),
                "leave it out: embeddings are to be multiplied by √d_model at every width");
  }
  model.initialization = "mup";
  model.encoder_initialization = "same";
  return model;
}

std::vector<ParameterGroup> mup_groups(const ModelConfig& model, int64_t base_width) {
  const double ratio = static_cast<double>(base_width) / static_cast<double>(model.d_model);
  ParameterGroup matrices;
  matrices.learning_rate_factor = ratio;
  ParameterGroup embeddings;
  embeddings.learning_rate_factor = std::sqrt(ratio);
  const ops::DefaultDevice nowhere{at::Device(at::kMeta)};
  const std::unique_ptr<Model> of_shapes = make_model(model);
  for (const Parameter& parameter : of_shapes->parameters().all()) {
    if (parameter.name == "output.weight" || multiplies_each_token(parameter)) {
      matrices.pattern.push_back(parameter.name);
    } else if (parameter.role == Role::embedding) {
      embeddings.pattern.push_back(parameter.name);
    }
  }
  return {matrices, embeddings};
}

RunRequest scale_run(const StudyContext& context, const ScaleMember& member) {
  const bool mup = member.parametrization == Parametrization::mup;
  RunRequest request{fmt::format("scale-{}-{}-width{}-layers{}-lr{:g}", file_name(member.arm), mup ? "mup" : "standard",
                                 member.width, member.layers, member.learning_rate),
                     fmt::format("{}, width {}, {} layers, lr {:g}", display_name(member.arm), member.width,
                                 member.layers, member.learning_rate),
                     run_config(context, scale_model(context, member), train_for(context, member.arm))};
  TrainConfig& train = request.config.train;
  train.learning_rate = member.learning_rate;
  if (!mup) return request;
  if (train.optimizer != "adam" && train.optimizer != "adamw") {
    throw Error(fmt::format("µP does not work with train.optimizer = \"{}\"", train.optimizer), "choose adam or adamw");
  }
  if (!train.groups.empty()) {
    throw Error("µP does not work with [[train.groups]]",
                "leave them out: they would override the groups that set the learning rates of µP");
  }
  for (const ParameterGroup& group : mup_groups(request.config.model, context.config.model.d_model))
    train.groups.push_back(group);
  return request;
}

}  // namespace plumb
