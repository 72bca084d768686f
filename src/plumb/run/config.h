// The configuration of a training run: the [train] section, and the complete configuration with all sections.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
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

struct TrainConfig {
  std::string optimizer = "adam";
  bool cautious = false;        // drop update elements that oppose the gradient (optim/cautious.h)
  double learning_rate = 5e-4;  // at the peak of the schedule
  std::string schedule = "constant * linear_warmup * rsqrt_decay";
  Duration warm_up = 4000;   // 0: no warm-up
  Duration decay_start = 0;  // step at which the decay begins; 0: max(warm_up, 1)
  double decay_floor = 0;    // final value of a finite decay, as a fraction of the peak
  VariantOptions options;    // options of optimizers and schedule factors: [train.adam], [train.step_decay], …
  double weight_decay = 0;   // not applied to norms, biases, scalars and positions
  std::vector<ParameterGroup> groups;  // [[train.groups]]: a parameter belongs to the first group that matches it
  double clip_norm = 0;                // maximum global gradient norm; 0: no clipping
  double clip_value = 0;               // maximum magnitude of a gradient's elements; 0: no clipping
  double clip_block = 0;               // maximum norm of a block's gradient / norm of its weights; 0: no clipping
  double average_decay = 0;            // decay of the evaluated moving average of the weights; 0: no average
  double label_smoothing = 0.1;
  double corpus_temperature = 1;      // T: corpora are sampled in proportion to weight · examples^(1/T)
  std::vector<CorpusWeight> corpora;  // [[train.corpora]]: weights other than 1
  int64_t batch_tokens = 4096;        // counting the larger of source and target
  int64_t accumulate = 1;             // batches per step
  int64_t micro_batch_tokens = 0;     // maximum tokens per forward pass of a process; 0: its share of a batch
  Duration steps = 10000;             // maximum
  int64_t epochs = 0;                 // maximum; 0: unlimited
  Duration log_every = 50;            // between points of the history
  Duration validate_every = 500;
  int64_t patience = 0;      // validations without improvement before the run ends; 0: unlimited
  Duration score_every = 0;  // between slow validation metrics (BLEU); 0: only at the end; −1: never
  Duration checkpoint_every = 1000;
  int64_t keep_checkpoints = 3;
  Duration keep_every = 0;                     // checkpoints at multiples of this are kept for good; 0: none
  int64_t keep_best = 1;                       // above 1: number of best evaluations kept in best-checkpoints/
  std::string best_metric = "valid_nll";       // for best/, keep_best and patience
  double divergence_factor = 3;                // loss limit / max(ln(classes), 2); 0: only a nonfinite loss diverges
  TroubleConfig trouble;                       // [train.trouble]: response to numerical trouble
  std::string precision = "float32";           // of matrix products: float32 or bf16
  std::string parameters = "float32";          // float32; bf16 (stochastic rounding); bf16-copy (float32 master copy)
  int64_t processes = 1;                       // number of processes sharing each batch
  double timeout = 60;                         // seconds without a heartbeat before another process counts as lost
  std::string exchange_precision = "float32";  // of gradients between processes: float32 or bf16
  bool overlap = true;                         // whether gradients are exchanged during the backward pass
  bool shard_optimizer = false;                // whether each process keeps only its share of the optimizer state
  bool synchronize_norms = true;               // whether statistics of norms are over all processes
  int64_t seed = 1;                            // for initialization, batches and dropout

  /// Whether both are written to the same TOML: an absent option equals its default.
  bool operator==(const TrainConfig& other) const;
};

void describe(Fields& field, TrainConfig& config);

/// Throws Error on invalid values.
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

/// Everything that determines a run, and what to measure along the way.
struct RunConfig {
  ModelConfig model;
  TrainConfig train;
  TaskConfig task;
  std::string data;   // [data] directory, absolute
  WatchConfig watch;  // does not affect the run
  /// [initial] weights: the run or checkpoint to initialize from (run/initial_weights.h); empty: random weights.
  std::string initial_weights;
};

/// Reads [model], [train], [task], [watch], [data] and [initial]; absent keys keep the values of `defaults`. Sections
/// named in `further` are allowed but not read. Throws Error on other sections and on unknown keys.
RunConfig read_run_config(const Config& config, RunConfig defaults = {}, const std::vector<std::string>& further = {});

/// The complete configuration as TOML.
std::string to_toml(const RunConfig& config);

/// Throws Error that names `origin`, the run directory of `found`, and the first key in which the two differ.
void require_equal(const RunConfig& wanted, const RunConfig& found, const std::string& origin);

}  // namespace plumb
