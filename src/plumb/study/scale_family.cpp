#include "plumb/study/scale_family.h"

#include <fmt/format.h>

#include <algorithm>

#include "plumb/base/error.h"
#include "plumb/report/display_name.h"

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

std::vector<ScaleMember> scale_members(const StudyContext& context, const ScaleStudy& part, const std::string& arm) {
  const bool first = arm == context.arms.front().name;
  std::vector<ScaleMember> members;
  for (size_t i = 0; i < part.widths.size() - (first ? 0 : 1); ++i)
    members.push_back({arm, part.widths[i], part.layers[i]});
  return members;
}

ModelConfig scale_model(const StudyContext& context, const ScaleMember& member) {
  const ModelConfig base = model_for(context, member.arm, member.layers);
  ModelConfig model = base;
  model.d_model = member.width;
  model.feed_forward = std::max<int64_t>(base.feed_forward * member.width / base.d_model, 1);
  model.heads = at_width(base.heads, member.width, base, "heads");
  model.kv_heads = at_width(base.kv_heads, member.width, base, "kv_heads");
  return model;
}

RunRequest scale_run(const StudyContext& context, const ScaleMember& member) {
  const TrainConfig& train = arm_named(context, member.arm).train;
  return {fmt::format("scale-{}-{}-width{}-layers{}-lr{:g}", file_name(member.arm), train.parametrization, member.width,
                      member.layers, train.learning_rate),
          fmt::format("{}, width {}, {} layers, lr {:g}", display_name(member.arm), member.width, member.layers,
                      train.learning_rate),
          run_config(context, scale_model(context, member), train)};
}

}  // namespace plumb
