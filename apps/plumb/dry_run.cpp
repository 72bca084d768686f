#include "dry_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "planned_file.h"
#include "plumb/base/quantity.h"
#include "plumb/base/text.h"
#include "plumb/divided/divisible.h"
#include "plumb/divided/pipeline_schedule.h"
#include "plumb/plan/mesh_plan.h"
#include "plumb/plan/model_cost.h"
#include "plumb/train/mesh_requirements.h"

namespace plumb::app {
namespace {

/// Steps of `plumb train`: all numbers in float32, and attention that never stores its weights.
plan::TrainingJob job_of(const RunConfig& run) {
  const double copy = run.train.parameters == "bf16-copy" ? 4 : 0;
  const auto parameters = static_cast<double>(plan::cost_of(run.model).parameters);
  return {.sequence = planned_sequence({}, run.model),
          .batch_tokens = run.train.batch_tokens * run.train.accumulate,
          .precision = plan::Precision::float32,
          .moments = plan::optimizer_bytes(run.model, run.train.optimizer, run.train.options) / parameters + copy,
          .averages = run.train.average_decay > 0 ? 4.0 : 0.0};
}

plan::Layout layout_of(const TrainConfig& train, const plan::TrainingJob& job) {
  plan::Layout layout;
  layout.tensor = train.tensor_parallel;
  layout.pipeline = train.pipeline_parallel;
  layout.data = train.processes / (layout.tensor * layout.pipeline);
  layout.zero = static_cast<int>(std::find(kShards.begin(), kShards.end(), train.shard) - kShards.begin());
  const int64_t share = job.batch_tokens / layout.data;
  const int64_t most = train.micro_batch_tokens > 0 ? std::min(train.micro_batch_tokens, share) : share;
  layout.micro_batch = std::max<int64_t>(most / job.sequence, 1);
  layout.recompute = train.recompute ? plan::Recompute::layers : plan::Recompute::attention;
  layout.chunks = train.pipeline_chunks;
  layout.gpipe = train.pipeline_schedule == "gpipe";
  return layout;
}

/// Throws Error if the steps have too few sequences for the mesh.
void require_enough_sequences(const TrainConfig& train, const plan::TrainingJob& job) {
  const plan::Layout layout = layout_of(train, job);
  const int64_t sequences = job.batch_tokens / job.sequence;
  if (sequences < layout.data) {
    throw Error(fmt::format("a step of {} tokens has {} sequences of {}, too few for {} groups of processes that share "
                            "them",
                            job.batch_tokens, sequences, job.sequence, layout.data),
                fmt::format("the smallest train.batch_tokens is {}", layout.data * job.sequence / train.accumulate));
  }
}

/// "3", or "2 to 15", from 1.
std::string stages_text(const plan::RankKind& kind) {
  if (kind.first_stage == kind.last_stage) return std::to_string(kind.first_stage + 1);
  return fmt::format("{} to {}", kind.first_stage + 1, kind.last_stage + 1);
}

std::string batch_text(const plan::TrainingJob& job, const plan::Layout& layout, const plan::RankKind& kind) {
  const int64_t sequences = job.batch_tokens / job.sequence, count = kind.messages.micro_batches;
  std::string text = fmt::format("a step: {} sequences of {}, {} micro-batches of {} in each {}\n",
                                 with_thousands(sequences), with_thousands(job.sequence), count, layout.micro_batch,
                                 layout.pipeline > 1 ? "pipeline" : "process");
  if (layout.pipeline > 1) {
    text += fmt::format("stages idle for {:.1f}% of a step\n",
                        100 * pipeline_bubble(layout.pipeline, layout.chunks, count));
  }
  const int64_t at_once = layout.data * layout.micro_batch;
  if (sequences % at_once != 0) {
    text += fmt::format(
        "{} sequences are not a multiple of {}: some processes compute fewer than others; {} tokens would "
        "be one\n",
        with_thousands(sequences), at_once, with_thousands(nearest_multiple(sequences, at_once) * job.sequence));
  }
  return text;
}

std::string kinds_text(const std::vector<plan::RankKind>& kinds) {
  std::string text = fmt::format("\n{:<10} {:>6} {:>6} {:>10}  {:>9} {:>9} {:>9} {:>11} {:>9}\n", "stages", "ranks",
                                 "layers", "parameters", "weights", "gradients", "optimizer", "activations", "total");
  for (const plan::RankKind& kind : kinds) {
    const plan::Memory& memory = kind.memory;
    text += fmt::format("{:<10} {:>6} {:>6} {:>10}  {:>9} {:>9} {:>9} {:>11} {:>9}\n", stages_text(kind), kind.ranks,
                        kind.layers, with_unit(static_cast<double>(kind.parameters)), with_bytes(memory.weights),
                        with_bytes(memory.gradients), with_bytes(memory.optimizer), with_bytes(memory.activations),
                        with_bytes(memory.total()));
  }
  text += fmt::format("\nsent by each in a step\n{:<10} {:>24} {:>28}  {:>18}\n", "stages", "within layers",
                      "between stages", "gradients, weights");
  for (const plan::RankKind& kind : kinds) {
    const plan::StageMessages& sent = kind.messages;
    text += fmt::format("{:<10} {:>24} {:>28}  {:>18}\n", stages_text(kind),
                        fmt::format("{} sums, {}", with_thousands(sent.tensor), with_bytes(sent.tensor_bytes)),
                        fmt::format("{} messages, {}", with_thousands(sent.pipeline), with_bytes(sent.pipeline_bytes)),
                        with_bytes(sent.data_bytes));
  }
  for (const plan::RankKind& kind : kinds) {
    text += fmt::format("\nparameters of each, {} {}\n", kind.first_stage == kind.last_stage ? "stage" : "stages",
                        stages_text(kind));
    for (const plan::HeldParameter& held : kind.held)
      text += fmt::format("  {:<48} {:>3} × ({})\n", held.name, held.count, fmt::join(held.shape, ", "));
  }
  return text;
}

Json to_json(const plan::RankKind& kind) {
  Json held = Json::array();
  for (const plan::HeldParameter& each : kind.held)
    held.push_back({{"name", each.name}, {"shape", each.shape}, {"count", each.count}});
  return {{"first_stage", kind.first_stage},
          {"last_stage", kind.last_stage},
          {"ranks", kind.ranks},
          {"layers", kind.layers},
          {"parameters", kind.parameters},
          {"memory", memory_json(kind.memory)},
          {"messages",
           {{"tensor", kind.messages.tensor},
            {"tensor_bytes", kind.messages.tensor_bytes},
            {"pipeline", kind.messages.pipeline},
            {"pipeline_bytes", kind.messages.pipeline_bytes},
            {"data_bytes", kind.messages.data_bytes}}},
          {"held", held}};
}

/// The process with the most memory.
double largest_of(const std::vector<plan::RankKind>& kinds) {
  double largest = 0;
  for (const plan::RankKind& kind : kinds) largest = std::max(largest, kind.memory.total());
  return largest;
}

}  // namespace

void dry_run(const RunConfig& run, const Globals& globals) {
  require_known_vocabulary(run.model);
  const plan::TrainingJob job = job_of(run);
  require_mesh(
      run, [&](const TrainConfig& train) { require_enough_sequences(train, job); },
      [&](const TrainConfig& train) {
        const double largest = largest_of(plan::rank_kinds(run.model, job, layout_of(train, job)));
        return fmt::format(", with {} in the largest process", with_bytes(largest));
      });
  const plan::Layout layout = layout_of(run.train, job);
  const std::vector<plan::RankKind> kinds = plan::rank_kinds(run.model, job, layout);
  const int64_t parameters = plan::cost_of(run.model).parameters;
  std::string text = fmt::format("{} parameters on {} processes: data {} × pipeline {} × tensor {}, train.shard = {}\n",
                                 with_unit(static_cast<double>(parameters)), with_thousands(layout.devices()),
                                 layout.data, layout.pipeline, layout.tensor, run.train.shard);
  text += batch_text(job, layout, kinds.front()) + kinds_text(kinds);
  Json json = make_document("dry-run", 1);
  json["parameters"] = parameters;
  json["mesh"] = {{"data", layout.data}, {"pipeline", layout.pipeline}, {"tensor", layout.tensor},
                  {"zero", layout.zero}, {"chunks", layout.chunks},     {"micro_batch", layout.micro_batch}};
  json["micro_batches"] = kinds.front().messages.micro_batches;
  json["kinds"] = Json::array();
  for (const plan::RankKind& kind : kinds) json["kinds"].push_back(to_json(kind));
  emit(globals, json, text);
}

}  // namespace plumb::app
