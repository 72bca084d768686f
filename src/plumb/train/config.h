// What a training run is: the [train] section of a configuration, and with [model] and [data] the whole of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "plumb/base/config.h"
#include "plumb/model/config.h"
#include "plumb/optim/groups.h"
#include "plumb/optim/schedule.h"

namespace plumb {

struct TrainConfig {
  std::string optimizer = "adam";
  double learning_rate = 5e-4;  // at the peak of the schedule
  std::string schedule = "constant * linear_warmup * rsqrt_decay";
  int64_t warm_up = 4000;              // steps; 0: no warm-up
  int64_t decay_start = 0;             // step at which the decay begins; 0: max(warm_up, 1)
  double decay_floor = 0;              // where a decay that ends arrives, as a fraction of the peak
  VariantOptions options;              // of optimizers and schedule factors: [train.adam], [train.step_decay], …
  double weight_decay = 0;             // but norms, biases, scalars and positions have none
  std::vector<ParameterGroup> groups;  // [[train.groups]]: the first that matches a parameter counts
  double clip_norm = 0;                // largest global norm of the gradient; 0: no clipping
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

  /// Whether both are written alike: an option that is absent is one at its default.
  bool operator==(const TrainConfig& other) const;
};

void describe(Fields& field, TrainConfig& config);

/// Throws Error on values that make no training.
void validate(const TrainConfig& config);

/// The schedule of a run with a model of this width.
Schedule make_schedule(const TrainConfig& config, int64_t d_model);

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
