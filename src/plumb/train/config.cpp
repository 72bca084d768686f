#include "plumb/train/config.h"

#include <fmt/format.h>

#include "plumb/base/error.h"
#include "plumb/base/text.h"
#include "plumb/ops/precision.h"

namespace plumb {
namespace {

const bool renamed = rename_key("train.synchronise_norms", "train.synchronize_norms");

struct DataSection {
  std::string directory;
};
void describe(Fields& field, DataSection& data) { field("directory", data.directory); }

}  // namespace

void describe(Fields& field, TrainConfig& config) {
  field("optimizer", config.optimizer);
  field("learning_rate", config.learning_rate);
  field("schedule", config.schedule);
  field("warm_up", config.warm_up);
  field("decay_start", config.decay_start);
  field("decay_floor", config.decay_floor);
  field("step_decay_at", config.step_decay_at);
  field("step_decay_factor", config.step_decay_factor);
  field("adam_beta1", config.adam_beta1);
  field("adam_beta2", config.adam_beta2);
  field("adam_eps", config.adam_eps);
  field("momentum", config.momentum);
  field("weight_decay", config.weight_decay);
  field("clip_norm", config.clip_norm);
  field("label_smoothing", config.label_smoothing);
  field("batch_tokens", config.batch_tokens);
  field("steps", config.steps);
  field("epochs", config.epochs);
  field("log_every", config.log_every);
  field("validate_every", config.validate_every);
  field("patience", config.patience);
  field("bleu_every", config.bleu_every);
  field("bleu_beam", config.bleu_beam);
  field("checkpoint_every", config.checkpoint_every);
  field("keep_checkpoints", config.keep_checkpoints);
  field("divergence_factor", config.divergence_factor);
  field("precision", config.precision);
  field("processes", config.processes);
  field("synchronize_norms", config.synchronize_norms);
  field("seed", config.seed);
}

void validate(const TrainConfig& config) {
  const auto at_least = [](const char* key, auto value, auto smallest) {
    if (!(value >= smallest)) throw Error(fmt::format("train.{} = {} must be at least {}", key, value, smallest));
  };
  const auto below_one = [](const char* key, double value) {
    if (!(value >= 0 && value < 1)) throw Error(fmt::format("train.{} = {} must lie in [0, 1)", key, value));
  };
  (void)optimizers().at(config.optimizer);
  (void)Schedule(config.schedule, {});
  const ops::MatrixPrecision trains(ops::precision_of(config.precision));  // throws for one that does not
  at_least("learning_rate", config.learning_rate, 0.0);
  at_least("warm_up", config.warm_up, int64_t{0});
  at_least("decay_start", config.decay_start, int64_t{0});
  at_least("decay_floor", config.decay_floor, 0.0);
  at_least("step_decay_factor", config.step_decay_factor, 0.0);
  below_one("adam_beta1", config.adam_beta1);
  below_one("adam_beta2", config.adam_beta2);
  at_least("adam_eps", config.adam_eps, 0.0);
  below_one("momentum", config.momentum);
  at_least("weight_decay", config.weight_decay, 0.0);
  at_least("clip_norm", config.clip_norm, 0.0);
  below_one("label_smoothing", config.label_smoothing);
  at_least("batch_tokens", config.batch_tokens, int64_t{1});
  at_least("steps", config.steps, int64_t{1});
  at_least("epochs", config.epochs, int64_t{0});
  at_least("log_every", config.log_every, int64_t{1});
  at_least("validate_every", config.validate_every, int64_t{1});
  at_least("patience", config.patience, int64_t{0});
  at_least("bleu_every", config.bleu_every, int64_t{0});
  at_least("bleu_beam", config.bleu_beam, int64_t{0});
  at_least("checkpoint_every", config.checkpoint_every, int64_t{1});
  at_least("processes", config.processes, int64_t{1});
  at_least("keep_checkpoints", config.keep_checkpoints, int64_t{1});
  at_least("divergence_factor", config.divergence_factor, 0.0);
}

OptimizerOptions optimizer_options(const TrainConfig& config) {
  return {config.adam_beta1, config.adam_beta2, config.adam_eps, config.momentum, config.weight_decay};
}

ScheduleOptions schedule_options(const TrainConfig& config, const ModelConfig& model) {
  return {config.learning_rate, config.warm_up,       config.decay_start,       config.steps,
          config.decay_floor,   config.step_decay_at, config.step_decay_factor, model.d_model};
}

RunConfig read_run_config(const Config& config) {
  config.allow_only({"model", "train", "data"});
  RunConfig run;
  config.read("model", run.model);
  config.read("train", run.train);
  DataSection data;
  config.read("data", data);
  run.data = data.directory;
  return run;
}

std::string to_toml(const RunConfig& config) {
  return ConfigWriter()
      .section("model", config.model)
      .section("train", config.train)
      .section("data", DataSection{config.data})
      .text();
}

void require_equal(const RunConfig& wanted, const RunConfig& found, const std::string& origin) {
  const std::vector<std::string> ours = split(to_toml(wanted), '\n');
  const std::vector<std::string> theirs = split(to_toml(found), '\n');
  std::string section;
  for (size_t i = 0; i < ours.size() && i < theirs.size(); ++i) {
    if (ours[i].starts_with('[')) section = ours[i].substr(1, ours[i].size() - 2);
    if (ours[i] == theirs[i]) continue;
    throw Error(fmt::format("{}: holds a run of another configuration: {}.{} there, {} here", origin, section,
                            theirs[i], ours[i].substr(ours[i].find('=') + 2)),
                "choose another --out, or the same configuration to go on with that run");
  }
}

}  // namespace plumb
