// The configuration of a training run: the [train] section, and the complete configuration with all sections.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "plumb/base/config.h"
#include "plumb/base/duration.h"
#include "plumb/model/config.h"
#include "plumb/optim/groups.h"
#include "plumb/optim/schedule.h"
#include "plumb/run/watch.h"
#include "plumb/task/task.h"
#include "plumb/trouble/trouble.h"

namespace plumb {

/// [[train.corpora]]: the sampling weight of a corpus of the training data.
struct CorpusWeight {
  std::string name;
  double weight = 1;

  bool operator==(const CorpusWeight&) const = default;
};
void describe(Fields& field, CorpusWeight& corpus);

/// The values of train.shard, by the stage of ZeRO that each is.
inline constexpr std::array<const char*, 4> kShards = {"none", "optimizer", "gradients", "parameters"};

/// [train]. `describe` says what the keys mean; a duration is in steps unless it states another unit.
struct TrainConfig {
  std::string optimizer = "adam";
  bool cautious = false;
  double learning_rate = 5e-4;
  std::string parametrization = "standard";
  int64_t base_width = 0;
  std::string schedule = "constant * linear_warmup * rsqrt_decay";
  Duration warm_up = 4000;
  Duration decay_start = 0;
  double decay_floor = 0;
  VariantOptions options;  // of optimizers and schedule factors: [train.adam], [train.step_decay], …
  double weight_decay = 0;
  std::vector<ParameterGroup> groups;  // a parameter belongs to the first group that matches it
  double clip_norm = 0;
  double clip_value = 0;
  double clip_block = 0;
  double average_decay = 0;
  double label_smoothing = 0.1;
  double corpus_temperature = 1;
  std::vector<CorpusWeight> corpora;  // weights other than 1
  int64_t batch_tokens = 4096;
  int64_t accumulate = 1;
  int64_t micro_batch_tokens = 0;
  Duration steps = 10000;
  int64_t epochs = 0;
  Duration log_every = 50;
  Duration validate_every = 500;
  int64_t patience = 0;
  Duration score_every = 0;
  Duration checkpoint_every = 1000;
  int64_t keep_checkpoints = 3;
  Duration keep_every = 0;
  int64_t keep_best = 1;
  std::string best_metric = "valid_nll";
  double divergence_factor = 3;
  TroubleConfig trouble;
  std::string precision = "float32";
  std::string parameters = "float32";
  bool recompute = false;
  int64_t processes = 1;
  int64_t tensor_parallel = 1;
  int64_t pipeline_parallel = 1;
  std::string pipeline_schedule = "1f1b";
  int64_t pipeline_chunks = 1;
  double timeout = 60;
  std::string exchange_precision = "float32";
  bool overlap = true;
  std::string shard = "none";
  bool synchronize_norms = true;
  int64_t seed = 1;

  /// Whether both are written to the same TOML: an absent option equals its default.
  bool operator==(const TrainConfig& other) const;
};

void describe(Fields& field, TrainConfig& config);

/// Throws Error on values out of range, and on those that do not go together.
void validate(const TrainConfig& config);

/// Whether an inverse square root decay begins at the end of warm-up, so that runs with different warm-ups have
/// different learning rates ever after.
bool warm_up_moves_decay(const TrainConfig& config);

/// For a run that begins: throws Error if its learning rate would decay as 1/√step from step 1, only because it has no
/// warm-up. That is rarely wanted (at step 100, a tenth is left), and is no comparison with a run that has one.
void require_decay_start(const TrainConfig& config);

/// The learning-rate schedule of a run for a model of width d_model. Throws Error unless warm_up, decay_start and steps
/// are in steps, as returned by `resolved` (train/timeline.h).
Schedule make_schedule(const TrainConfig& config, int64_t d_model);

/// [data] of a run
struct DataSection {
  std::string directory;
};
void describe(Fields& field, DataSection& data);

/// [initial]
struct InitialSection {
  std::string weights;
};
void describe(Fields& field, InitialSection& initial);

/// [plan]
struct PlanSection {
  std::vector<std::string> changes;
};
void describe(Fields& field, PlanSection& plan);

/// Everything that determines a run, and what to measure along the way.
struct RunConfig {
  ModelConfig model;
  TrainConfig train;
  TaskConfig task;
  std::string data;   // [data] directory, absolute
  WatchConfig watch;  // does not affect the run
  /// [initial] weights: the run or checkpoint to initialize from (run/initial_weights.h); empty: random weights.
  std::string initial_weights;
  /// [plan] changes: of a run that became longer, when its earlier steps had other learning rates than one of this
  /// length would have had: "at step 200: 200 to 400 steps". So it is told from such a run wherever runs are compared.
  std::vector<std::string> plan_changes;
};

/// Reads [model], [train], [task], [watch], [data], [initial] and [plan]; absent keys keep the values of `defaults`.
/// Sections named in `further` are allowed but not read. Throws Error on other sections and on unknown keys.
RunConfig read_run_config(const Config& config, RunConfig defaults = {}, const std::vector<std::string>& further = {});

/// The complete configuration as TOML.
std::string to_toml(const RunConfig& config);

/// Throws Error that names `origin`, the run directory of `found`, and the first key in which the two differ.
void require_equal(const RunConfig& wanted, const RunConfig& found, const std::string& origin);

}  // namespace plumb
