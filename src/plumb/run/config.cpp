#include "plumb/run/config.h"

#include <fmt/format.h>

#include <algorithm>

#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/base/toml_text.h"
#include "plumb/divided/divisible.h"

namespace plumb {
namespace {

constexpr double kMostProcesses = 100'000;

}  // namespace

void describe(Fields& field, DataSection& data) {
  field("directory", data.directory, "the data directory; `plumb train --data` overrides it");
}

void describe(Fields& field, InitialSection& initial) {
  field("weights", initial.weights,
        "a run (its latest checkpoint), or a checkpoint in one, of a model with the same layers; a classifier begins "
        "with a fresh output layer and pooler, unless that one has the same labels; empty: none");
}

void describe(Fields& field, PlanSection& plan) {
  field("changes", plan.changes,
        "written by `plumb train`: when the run became longer, and from which length, if its earlier steps had other "
        "learning rates than those of a run of its present length");
}

void describe(Fields& field, CorpusWeight& corpus) {
  field("name", corpus.name, "name of the corpus");
  field("weight", corpus.weight, "multiplies how often it is drawn from", above(0));
}

void describe(Fields& field, TrainConfig& config) {
  const std::vector<std::string> matrix_precisions = {"float32", "bf16"};
  field("optimizer", config.optimizer, "the optimizer", name_in(optimizers()));
  field("cautious", config.cautious,
        "leaves out the elements of every update whose sign disagrees with the gradient's, and scales up the rest of "
        "each parameter's update in proportion (Liang et al. 2024, arXiv 2411.16085), with any optimizer that does not "
        "average the weights itself");
  field("learning_rate", config.learning_rate, "peak learning rate; set by a study", at_least(0));
  field("parametrization", config.parametrization,
        "how learning rates follow from the width: with `mup` (maximal update, Yang et al. 2022, arXiv 2203.03466), "
        "those of matrices and output are multiplied by `base_width`/`d_model`, and those of embeddings by its square "
        "root",
        one_of({"standard", "mup"}));
  field("base_width", config.base_width, "`d_model` for which `learning_rate` is meant, with `mup`", count_from(0));
  field("schedule", config.schedule,
        "product of schedule factors, one of which is `constant`, the learning rate itself",
        name_in(schedule_factors()).open_choices());
  field("warm_up", config.warm_up, "duration of the warm-up; 0: none; set by a study", count_from(0));
  field("decay_start", config.decay_start,
        "duration after which the decay begins; 0: at the end of warm-up, or at step 1 without one", count_from(0));
  field("decay_floor", config.decay_floor,
        "final value of `cosine_decay`, `linear_decay` and `stable_decay`, as a fraction of the peak", within(0, 1));
  describe_options(field, optimizers(), config.optimizer, config.options);
  describe_schedule_options(field, config.schedule, config.options);
  field("weight_decay", config.weight_decay,
        "applied to matrices and embeddings, not to norms, biases, scalars and positions", at_least(0));
  field.sections("groups", config.groups);
  field("clip_norm", config.clip_norm,
        "maximum global gradient norm, after the other two kinds of clipping; 0: no clipping", at_least(0));
  field("clip_value", config.clip_value, "maximum magnitude of each element of the gradient; 0: no clipping",
        within(0, 1e30));
  field("clip_block", config.clip_block,
        "maximum norm of the gradient of each row of a matrix, and of each vector, as a share of the norm of its "
        "weights (AGC, Brock et al. 2021, arXiv 2102.06171), where norms below 0.001 count as 0.001; 0: no clipping; "
        "not for a classifier's last matrix",
        at_least(0));
  field("average_decay", config.average_decay,
        "decay d of an exponential moving average of the weights, a ← d·a + (1 − d)·w after every step, with bias "
        "correction as in Adam; validation, `best/` and the weights that checkpoints are used with are then the "
        "average; 0: none",
        below_one());
  field("label_smoothing", config.label_smoothing, "label smoothing of the training loss", below_one());
  field("corpus_temperature", config.corpus_temperature,
        "temperature T with which several corpora are sampled: in proportion to weight · examples^(1/T)", above(0));
  field.sections("corpora", config.corpora);
  field("batch_tokens", config.batch_tokens,
        "tokens per batch, on the side that has more of them, EOS included; an error if an example has more",
        count_from(1));
  field("accumulate", config.accumulate,
        "batches per step, one after another; the last step of an epoch takes those that are left", count_from(1));
  field("micro_batch_tokens", config.micro_batch_tokens,
        "the most tokens that a process computes at once, except that a longer example is computed alone; 0: its share "
        "of a batch",
        count_from(0));
  field("steps", config.steps, "maximum duration of the run", count_from(1));
  field("epochs", config.epochs, "maximum number of epochs; 0: unlimited", count_from(0));
  field("log_every", config.log_every, "duration between points of the history", count_from(1));
  field("validate_every", config.validate_every, "duration between validations", count_from(1));
  field("patience", config.patience, "stop after this many evaluations of `best_metric` without improvement; 0: never",
        count_from(0));
  field("score_every", config.score_every,
        "duration between evaluations of the task's slow metrics, such as BLEU, on the validation split; 0: only at "
        "the end; -1: never, as in a study",
        count_from(-1));
  field("checkpoint_every", config.checkpoint_every, "duration between checkpoints", count_from(1));
  field("keep_checkpoints", config.keep_checkpoints, "number of recent checkpoints to keep", count_from(1));
  field("keep_every", config.keep_every, "duration between further checkpoints that are kept for good; 0: none",
        count_from(0));
  field("keep_best", config.keep_best,
        "above 1: the checkpoints of the N best evaluations are kept in `best-checkpoints/`", count_from(1));
  field("best_metric", config.best_metric,
        "the metric that decides `best/`, `keep_best` and `patience`: `valid_nll`, `valid_loss`, or a metric of the "
        "task, such as `accuracy` or `bleu`; only evaluations that compute it count, and a metric that the "
        "configuration never computes is an error",
        one_of({"valid_nll", "valid_loss", "accuracy", "bleu"}).open_choices());
  field("divergence_factor", config.divergence_factor,
        "after step 20, a loss above this factor times ln(classes), or times 2 nats if that is more, counts as "
        "divergence; classes are the target vocabulary or the labels; 0: only a loss that is not finite does",
        at_least(0));
  field.section(
      "trouble", [&config](Fields& inner) { describe(inner, config.trouble); }, config.trouble != TroubleConfig());
  field("precision", config.precision,
        "precision of matrix products; `bf16` rounds their operands to bfloat16 and keeps everything else in float32",
        one_of(matrix_precisions));
  field("parameters", config.parameters,
        "number format of the parameters; `bf16`: bfloat16, to which every step is rounded stochastically; "
        "`bf16-copy`: the same, rounded to nearest from a copy that the optimizer keeps in float32",
        one_of({"float32", "bf16", "bf16-copy"}));
  field(
      "recompute", config.recompute,
      "layers keep their inputs instead of their activations, which the backward pass computes again: less memory for "
      "about a third more computation; the result is the same");
  field("processes", config.processes,
        "number of processes sharing each batch; `plumb train` starts the others, or joins those that torchrun, Slurm "
        "or Open MPI has started",
        within(1, kMostProcesses));
  field("tensor_parallel", config.tensor_parallel,
        "number of adjacent processes that compute the same examples, each with an equal part of the heads and "
        "inner features of every layer, and of the vocabulary (tensor parallelism); `processes` must be a multiple of "
        "it; 1: every process "
        "has the whole model",
        within(1, kMostProcesses));
  field("pipeline_parallel", config.pipeline_parallel,
        "number of processes that compute the same examples one after another, each with some of the layers (pipeline "
        "parallelism); `processes` must be a multiple of its product with `tensor_parallel`; 1: every process has all "
        "layers",
        within(1, kMostProcesses));
  field("pipeline_schedule", config.pipeline_schedule,
        "the order of the passes of a step's micro-batches in each stage of a pipeline; `1f1b`: one forward and one "
        "backward pass in turn; `gpipe`: first all forward passes. The result is the same",
        one_of({"1f1b", "gpipe"}));
  field("pipeline_chunks", config.pipeline_chunks,
        "number of runs of layers that each stage of a pipeline has: every micro-batch passes the stages that many "
        "times (interleaved 1F1B), which divides the idle time by it, for as many times the messages",
        within(1, kMostProcesses));
  field("timeout", config.timeout, "time without a heartbeat after which another process counts as lost",
        at_least(0.1).in("seconds"));
  field("exchange_precision", config.exchange_precision,
        "precision in which gradients are sent to other processes; `bf16` halves what is exchanged; they are summed in "
        "float32",
        one_of(matrix_precisions));
  field("overlap", config.overlap, "exchange gradients while the backward pass still runs; the result is the same");
  field("shard", config.shard,
        "what each process keeps of its share of the parameters only: `optimizer`, the optimizer's state (ZeRO-1); "
        "`gradients`, also the gradients (ZeRO-2); `parameters`, also the parameters, of which a layer is whole only "
        "while it is computed (ZeRO-3). The result is the same. Not with optimizers that average the weights, nor with "
        "the policies `rollback` of `[train.trouble]`",
        one_of({kShards.begin(), kShards.end()}));
  field("synchronize_norms", config.synchronize_norms,
        "`batchnorm` and `powernorm` compute statistics over the tokens of all processes rather than separately in "
        "each, where the running averages are those of the first process");
  field("seed", config.seed, "seed of initialization, batches and dropout; set by a study");
}

bool TrainConfig::operator==(const TrainConfig& other) const {
  return ConfigWriter().section("train", *this).text() == ConfigWriter().section("train", other).text();
}

void validate(const TrainConfig& config) {
  require_valid("train", config);
  Parameters none(at::kFloat);
  none.allocate();
  (void)make_optimizer(config.optimizer, none, config.options);  // throws on options that do not go together
  TrainConfig schedule = config;
  for (Duration* each : {&schedule.warm_up, &schedule.decay_start, &schedule.steps}) {
    if (each->unit() != Duration::Unit::steps) *each = 1;  // their number of steps depends on the data
  }
  (void)make_schedule(schedule, 1);
  for (auto corpus = config.corpora.begin(); corpus != config.corpora.end(); ++corpus) {
    if (corpus->name.empty())
      throw Error("a corpus of [[train.corpora]] has no name", "name a corpus of the data: name = \"news\"");
    if (std::any_of(config.corpora.begin(), corpus, [&](const auto& other) { return other.name == corpus->name; }))
      throw Error(fmt::format("[[train.corpora]] has two weights for '{}'", corpus->name));
  }
  if (config.shard != "none" && config.trouble.rolls_back())
    throw Error("train.shard does not work with rollbacks", "set train.trouble to stop or skip");
  const int64_t dividing = config.tensor_parallel * config.pipeline_parallel;
  if (config.processes % dividing != 0) {
    const std::string keys = config.pipeline_parallel == 1 ? "train.tensor_parallel"
                             : config.tensor_parallel == 1 ? "train.pipeline_parallel"
                                                           : "train.tensor_parallel · train.pipeline_parallel";
    throw Error(fmt::format("train.processes = {} is not a multiple of {} = {}", config.processes, keys, dividing),
                fmt::format("start {} processes", nearest_multiple(config.processes, dividing)));
  }
  if (config.pipeline_schedule == "gpipe" && config.pipeline_chunks > 1) {
    throw Error(fmt::format("train.pipeline_schedule = \"gpipe\" cannot be combined with train.pipeline_chunks = {}",
                            config.pipeline_chunks),
                "set the latter to 1, or the former to 1f1b");
  }
  validate(config.trouble);
}

bool warm_up_moves_decay(const TrainConfig& config) {
  return config.decay_start.is_zero() && has_schedule_factor(config.schedule, "rsqrt_decay");
}

void require_decay_start(const TrainConfig& config) {
  const bool warms_up = !config.warm_up.is_zero() && config.warm_up != 1;
  if (warms_up || !warm_up_moves_decay(config)) return;
  throw Error(fmt::format("train.warm_up = {}: the learning rate would decay as 1/√step from step 1 on, to a tenth at "
                          "step 100",
                          config.warm_up.text()),
              "set train.decay_start: to the warm-up of the run that this one is compared with, such as 4000, for the "
              "same decay; or to 1");
}

Schedule make_schedule(const TrainConfig& config, int64_t d_model) {
  return {config.schedule,
          {.learning_rate = config.learning_rate,
           .warm_up = config.warm_up.in_steps(),
           .decay_start = config.decay_start.in_steps(),
           .steps = config.steps.in_steps(),
           .decay_floor = config.decay_floor,
           .hidden_size = d_model},
          config.options};
}

RunConfig read_run_config(const Config& config, RunConfig defaults, const std::vector<std::string>& further) {
  std::vector<std::string> sections = {"model", "train", "task", "watch", "data", "initial", "plan"};
  sections.insert(sections.end(), further.begin(), further.end());
  config.allow_only(sections);
  RunConfig run = std::move(defaults);
  config.read("model", run.model);
  config.read("train", run.train);
  config.read("task", run.task);
  config.read("watch", run.watch);
  DataSection data{run.data};
  config.read("data", data);
  run.data = data.directory;
  InitialSection initial{run.initial_weights};
  config.read("initial", initial);
  run.initial_weights = initial.weights;
  PlanSection plan{run.plan_changes};
  config.read("plan", plan);
  run.plan_changes = plan.changes;
  return run;
}

std::string to_toml(const RunConfig& config) {
  ConfigWriter writer;
  writer.plugins()
      .section("model", config.model)
      .section("train", config.train)
      .section("task", config.task)
      .section("watch", config.watch)
      .section("data", DataSection{config.data});
  if (!config.initial_weights.empty()) writer.section("initial", InitialSection{config.initial_weights});
  if (!config.plan_changes.empty()) writer.section("plan", PlanSection{config.plan_changes});
  return writer.text();
}

void require_equal(const RunConfig& wanted, const RunConfig& found, const std::string& origin) {
  const auto ours = key_values(to_toml(wanted)), theirs = key_values(to_toml(found));
  const auto differs = [&](const std::string& key, const std::string& there, const std::string& here) {
    throw Error(fmt::format("{}: contains a run with a different configuration: {} = {} there, {} here", origin, key,
                            there, here),
                "choose another --out, or use the same configuration to resume that run");
  };
  const auto value_of = [](const auto& values, const std::string& key) {
    const std::string* value = find_value(values, key);
    return value == nullptr ? std::string("(default)") : *value;
  };
  for (const auto& [key, value] : ours) {
    if (const std::string there = value_of(theirs, key); there != value) differs(key, there, value);
  }
  for (const auto& [key, value] : theirs) {
    if (const std::string here = value_of(ours, key); here != value) differs(key, value, here);
  }
}

}  // namespace plumb
