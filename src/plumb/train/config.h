// What a training run is: the [train] section of a configuration, and with [model] and [data] the whole of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "plumb/base/config.h"
#include "plumb/model/config.h"
#include "plumb/optim/optimizer.h"
#include "plumb/optim/schedule.h"

namespace plumb {

struct TrainConfig {
  std::string optimizer = "adam";
  double learning_rate = 5e-4;  // at the peak of the schedule
  std::string schedule = "constant * linear_warmup * rsqrt_decay";
  int64_t warm_up = 4000;              // steps; 0: no warm-up
  int64_t decay_start = 0;             // step at which the decay begins; 0: max(warm_up, 1)
  double decay_floor = 0;              // cosine_decay, linear_decay: the fraction of the peak at the end
  std::vector<int64_t> step_decay_at;  // step_decay: the steps
  double step_decay_factor = 0.1;
  double adam_beta1 = 0.9;
  double adam_beta2 = 0.98;
  double adam_eps = 1e-9;
  double momentum = 0.9;  // sgd
  double weight_decay = 0;
  double clip_norm = 0;  // largest global norm of the gradient; 0: no clipping
  double label_smoothing = 0.1;
  int64_t batch_tokens = 4096;  // the larger of source and target
  int64_t steps = 10000;        // at most
  int64_t epochs = 0;           // at most; 0: no limit
  int64_t log_every = 50;       // steps between points of the history
  int64_t validate_every = 500;
  int64_t patience = 0;    // validations without a new best after which the run ends; 0: no limit
  int64_t bleu_every = 0;  // steps between BLEU scores of the validation split; 0: at the end alone
  int64_t bleu_beam = 5;   // beam width of that BLEU; 0: no BLEU at all
  int64_t checkpoint_every = 1000;
  int64_t keep_checkpoints = 3;
  double divergence_factor = 3;       // diverged: loss > factor · ln(vocabulary) after 20 steps; 0: only if not finite
  std::string precision = "float32";  // of matrix products: float32 or bf16
  int64_t processes = 1;              // that share every batch
  bool synchronize_norms = true;      // BatchNorm takes its statistics over all processes
  int64_t seed = 1;                   // of initialization, batches and dropout

  bool operator==(const TrainConfig&) const = default;
};

void describe(Fields& field, TrainConfig& config);

/// Throws Error on values that make no training.
void validate(const TrainConfig& config);

OptimizerOptions optimizer_options(const TrainConfig& config);
ScheduleOptions schedule_options(const TrainConfig& config, const ModelConfig& model);

/// Everything that determines a run.
struct RunConfig {
  ModelConfig model;
  TrainConfig train;
  std::string data;  // [data] directory, absolute
};

/// Reads [model], [train] and [data]; keys that are absent keep their defaults. Throws Error on unknown ones.
RunConfig read_run_config(const Config& config);

/// The complete TOML file.
std::string to_toml(const RunConfig& config);

/// Throws Error that names the first key in which the two differ.
void require_equal(const RunConfig& wanted, const RunConfig& found, const std::string& origin);

}  // namespace plumb
