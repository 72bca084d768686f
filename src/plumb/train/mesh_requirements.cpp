#include "plumb/train/mesh_requirements.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>

#include "plumb/base/error.h"
#include "plumb/divided/divisible.h"
#include "plumb/divided/pipeline_split.h"
#include "plumb/model/kind.h"
#include "plumb/model/recomputable.h"
#include "plumb/nn/residual/residual.h"
#include "plumb/ops/device.h"

namespace plumb {

/// Throws Error if the configuration has something that a model which is divided among processes cannot have.
void require_divisible_run(const TrainConfig& config, const Model& model, const WatchConfig& watch) {
  if (config.tensor_parallel * config.pipeline_parallel == 1) return;
  const std::string key = config.tensor_parallel > 1 ? "train.tensor_parallel" : "train.pipeline_parallel";
  const auto refuse = [&](bool found, const std::string& what, const std::string& instead) {
    if (found) throw Error(fmt::format("{} cannot be combined with {}", what, key), instead + ", or set that to 1");
  };
  refuse(config.tensor_parallel > 1 && config.clip_block > 0, fmt::format("train.clip_block = {}", config.clip_block),
         "set it to 0");
  refuse(config.trouble.rolls_back(), "the policy `rollback` of [train.trouble]", "choose stop or skip");
  refuse(config.parameters != "float32", fmt::format("train.parameters = \"{}\"", config.parameters),
         "set it to float32");
  refuse(!watch.every.is_zero(), "[watch]", "leave it out");
  if (config.tensor_parallel > 1) require_divisible(model.config(), config.tensor_parallel);
  if (config.pipeline_parallel == 1) return;
  require_stages(model.config(), config.pipeline_parallel, config.pipeline_chunks);
  if (!model.parameters().buffers().empty()) {
    throw Error(fmt::format("a norm over the batch, whose averages are in '{}', cannot be combined with "
                            "train.pipeline_parallel",
                            model.parameters().buffers().front().name),
                "choose another norm, such as rmsnorm, or set that to 1");
  }
}

/// Throws Error if the configuration has something that a run whose optimizer's state, gradients or parameters are
/// sharded cannot have.
void require_shardable_run(const TrainConfig& config, const Model& model, const Optimizer& optimizer,
                           const WatchConfig& watch) {
  if (config.shard == "none") return;
  const auto refuse = [&](bool found, const std::string& what, const std::string& instead) {
    if (!found) return;
    throw Error(fmt::format("{} cannot be combined with train.shard = \"{}\"", what, config.shard),
                instead + ", or choose another train.shard");
  };
  refuse(optimizer.averages_weights(),
         fmt::format("train.optimizer = \"{}\", which averages the weights,", config.optimizer),
         "choose another one, such as adamw");
  if (config.shard == "optimizer") return;
  const bool parameters = config.shard == "parameters";
  refuse(config.pipeline_parallel > 1, fmt::format("train.pipeline_parallel = {}", config.pipeline_parallel),
         "set it to 1");
  refuse(config.clip_block > 0, fmt::format("train.clip_block = {}", config.clip_block), "set it to 0");
  refuse(config.parameters != "float32", fmt::format("train.parameters = \"{}\"", config.parameters),
         "set it to float32");
  refuse(config.cautious, "train.cautious", "leave it out");
  refuse(!optimizer.acts_by_element(),
         fmt::format("train.optimizer = \"{}\", which updates each matrix as a whole,", config.optimizer),
         "choose one that updates each element by itself, such as adamw");
  refuse(!watch.every.is_zero(), "[watch]", "leave it out");
  refuse(parameters && config.average_decay > 0, fmt::format("train.average_decay = {}", config.average_decay),
         "set it to 0");
  refuse(parameters && kind_of(model.config()).recurrent, fmt::format("model.kind = \"{}\"", model.config().kind),
         "choose one with attention");
  refuse(parameters && prescription_of(model.config().residual).unit_matrices,
         fmt::format("model.residual = \"{}\", which changes the weights after every step,", model.config().residual),
         "choose another one");
}

MeshCheck::MeshCheck(const RunConfig& run) : run_(run) {
  const ops::DefaultDevice nowhere{at::Device(at::kMeta)};
  model_ = make_model(run.model);
  optimizer_ = make_optimizer(run.train.optimizer, model_->parameters(), run.train.options);
}

void MeshCheck::operator()(const TrainConfig& config) const {
  validate(config);
  if (config.recompute) require_recomputable(run_.model);
  require_divisible_run(config, *model_, run_.watch);
  require_shardable_run(config, *model_, *optimizer_, run_.watch);
}

void require_mesh(const RunConfig& run, const std::function<void(const TrainConfig&)>& more,
                  const std::function<std::string(const TrainConfig&)>& about) {
  const MeshCheck check(run);
  const auto require = [&](const TrainConfig& config) {
    check(config);
    more(config);
  };
  try {
    require(run.train);
  } catch (const Error& error) {
    std::optional<TrainConfig> nearest;
    double least = std::numeric_limits<double>::infinity();
    const auto times = [](int64_t a, int64_t b) {
      return std::abs(std::log2(static_cast<double>(a) / static_cast<double>(b)));
    };
    for (int64_t tensor = 1; tensor <= run.train.processes; ++tensor) {
      for (int64_t pipeline = 1; tensor * pipeline <= run.train.processes; ++pipeline) {
        if (run.train.processes % (tensor * pipeline) != 0) continue;
        const double distance = times(tensor, run.train.tensor_parallel) + times(pipeline, run.train.pipeline_parallel);
        if (distance >= least) continue;
        TrainConfig other = run.train;
        other.tensor_parallel = tensor;
        other.pipeline_parallel = pipeline;
        try {
          require(other);
        } catch (const Error&) {
          continue;
        }
        least = distance;
        nearest = other;
      }
    }
    if (!nearest) throw;
    throw Error(error.what(), fmt::format("{}{}the nearest mesh of {} processes that fits: train.tensor_parallel = {}, "
                                          "train.pipeline_parallel = {}{}",
                                          error.hint(), error.hint().empty() ? "" : "; ", run.train.processes,
                                          nearest->tensor_parallel, nearest->pipeline_parallel, about(*nearest)));
  }
}

}  // namespace plumb
