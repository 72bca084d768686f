#include "plumb/plan/mesh_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/divided/pipeline_split.h"
#include "plumb/model/model.h"
#include "plumb/nn/layer_id.h"
#include "plumb/ops/device.h"

namespace plumb::plan {
namespace {

/// "decoder.layers.*.norm1.weight".
std::string without_number(std::string name, int64_t layer) {
  const std::string number = fmt::format(".{}.", layer);
  if (const size_t at = name.find(number); at != std::string::npos) name.replace(at, number.size(), ".*.");
  return name;
}

/// The same layers, but so small that they can be computed.
ModelConfig small_like(ModelConfig config) {
  constexpr int64_t kSize = 4;
  config.heads = config.kv_heads > 0 ? config.heads / config.kv_heads : 1;
  config.kv_heads = std::min<int64_t>(config.kv_heads, 1);
  config.d_model = kSize * config.heads;
  if (config.head_size > 0) config.head_size = kSize;
  config.feed_forward = 2 * kSize;
  config.source_vocabulary = std::min(config.source_vocabulary, kSize);
  config.target_vocabulary = std::min(config.target_vocabulary, kSize);
  config.max_positions = std::min(config.max_positions, kSize);
  return config;
}

/// [parameter]: the stages that use it; and the layers of each stage. Neither depends on sizes.
struct StageUse {
  std::vector<std::vector<int64_t>> users;
  std::vector<int64_t> layers;
};
StageUse stage_use(const ModelConfig& config, const Layout& layout, const Parameters& parameters) {
  const ops::DefaultDevice here{at::Device(at::kCPU)};
  const std::unique_ptr<Model> small = make_model(small_like(config));
  const auto same = [](const Parameter& a, const Parameter& b) { return a.name == b.name; };
  const auto &all = parameters.all(), &found = small->parameters().all();
  if (!std::equal(all.begin(), all.end(), found.begin(), found.end(), same))
    throw Error("the parameters of this model depend on its sizes, so its stages are not known without computing it");
  const PipelineSplit computed(*small, layout.pipeline, layout.chunks);
  StageUse use{computed.users(), std::vector<int64_t>(static_cast<size_t>(layout.pipeline))};
  for (int64_t part = 0; part < computed.parts(); ++part)
    use.layers[static_cast<size_t>(part % layout.pipeline)] += computed.layers(part);
  return use;
}

void add(std::vector<HeldParameter>& held, const std::string& name, std::vector<int64_t> shape) {
  const auto found = std::find_if(held.begin(), held.end(),
                                  [&](const HeldParameter& each) { return each.name == name && each.shape == shape; });
  if (found != held.end()) {
    ++found->count;
  } else {
    held.push_back({name, std::move(shape), 1});
  }
}

}  // namespace

std::vector<RankKind> rank_kinds(const ModelConfig& config, const TrainingJob& job, const Layout& layout) {
  const ModelCost cost = cost_of(config);
  const ops::DefaultDevice nowhere{at::Device(at::kMeta)};
  const std::unique_ptr<Model> model = make_model(config);
  const auto& all = model->parameters().all();
  std::optional<StageUse> stages;
  if (layout.pipeline > 1) stages = stage_use(config, layout, model->parameters());
  const LayerDivision division = model->planned_division(layout.tensor);
  std::vector<RankKind> kinds;
  for (int64_t stage = 0; stage < layout.pipeline; ++stage) {
    RankKind kind{.first_stage = stage, .last_stage = stage, .ranks = layout.data * layout.tensor};
    kind.layers = stages ? stages->layers[static_cast<size_t>(stage)] : cost.layers;
    std::map<LayerId, int64_t> layers;
    int64_t outside = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      if (stages) {
        const std::vector<int64_t>& users = stages->users[i];
        if (!contains(users, stage)) continue;
      }
      const Tensor shard = division.shard(i, all[i].value.detach());
      kind.parameters += shard.numel();
      const std::optional<LayerId> id = LayerId::of_parameter(all[i].name);
      const bool of_layer = id && id->layer;
      (of_layer ? layers[{id->stack, id->layer}] : outside) += shard.numel();
      add(kind.held, of_layer ? without_number(all[i].name, *id->layer) : all[i].name, shard.sizes().vec());
    }
    int64_t largest = 0;
    for (const auto& [id, count] : layers) largest = std::max(largest, count);
    const StageShare share{static_cast<double>(kind.parameters), static_cast<double>(outside),
                           static_cast<double>(largest), kind.layers, stage};
    kind.memory = stage_memory(cost, job, layout, share);
    kind.messages = stage_messages(cost, job, layout, share);
    RankKind* last = kinds.empty() ? nullptr : &kinds.back();
    if (last != nullptr && last->held == kind.held && last->layers == kind.layers &&
        last->messages.pipeline == kind.messages.pipeline) {
      last->last_stage = stage;
      last->ranks += kind.ranks;
    } else {
      kinds.push_back(std::move(kind));
    }
  }
  return kinds;
}

}  // namespace plumb::plan
