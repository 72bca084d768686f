#include "plumb/run/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "plumb/base/error.h"
#include "plumb/base/text.h"
#include "plumb/base/toml_text.h"
#include "plumb/ops/precision.h"
#include "plumb/optim/checks.h"

namespace plumb {
namespace {

[[maybe_unused]] const bool kTrainKeysRenamed = rename_key("train.synchronise_norms", "train.synchronize_norms") &&
                                                rename_key("train.bleu_every", "train.score_every");

struct DataSection {
  std::string directory;
};
void describe(Fields& field, DataSection& data) { field("directory", data.directory); }

struct InitialSection {
  std::string weights;
};
void describe(Fields& field, InitialSection& initial) { field("weights", initial.weights); }

constexpr int64_t kMostProcesses = 1000;

}  // namespace

void describe(Fields& field, CorpusWeight& corpus) {
  field("name", corpus.name, "name of a corpus of the training data");
  field("weight", corpus.weight, "multiplies how often it is drawn from");
}

void describe(Fields& field, TrainConfig& config) {
  field("optimizer", config.optimizer);
  field("cautious", config.cautious);
  field("learning_rate", config.learning_rate);
  field("schedule", config.schedule);
  field("warm_up", config.warm_up);
  field("decay_start", config.decay_start);
  field("decay_floor", config.decay_floor);
  describe_options(field, optimizers(), config.optimizer, config.options);
  describe_schedule_options(field, config.schedule, config.options);
  field("weight_decay", config.weight_decay);
  field.sections("groups", config.groups);
  field("clip_norm", config.clip_norm);
  field("clip_value", config.clip_value);
  field("clip_block", config.clip_block);
  field("average_decay", config.average_decay);
  field("label_smoothing", config.label_smoothing);
  field("corpus_temperature", config.corpus_temperature);
  field.sections("corpora", config.corpora);
  field("batch_tokens", config.batch_tokens);
  field("accumulate", config.accumulate);
  field("micro_batch_tokens", config.micro_batch_tokens);
  field("steps", config.steps);
  field("epochs", config.epochs);
  field("log_every", config.log_every);
  field("validate_every", config.validate_every);
  field("patience", config.patience);
  field("score_every", config.score_every);
  field("checkpoint_every", config.checkpoint_every);
  field("keep_checkpoints", config.keep_checkpoints);
  field("keep_every", config.keep_every);
  field("keep_best", config.keep_best);
  field("best_metric", config.best_metric);
  field("divergence_factor", config.divergence_factor);
  field.section(
      "trouble", [&config](Fields& inner) { describe(inner, config.trouble); }, config.trouble != TroubleConfig());
  field("precision", config.precision);
  field("parameters", config.parameters);
  field("processes", config.processes);
  field("timeout", config.timeout);
  field("exchange_precision", config.exchange_precision);
  field("overlap", config.overlap);
  field("shard_optimizer", config.shard_optimizer);
  field("synchronize_norms", config.synchronize_norms);
  field("seed", config.seed);
}

bool TrainConfig::operator==(const TrainConfig& other) const {
  return ConfigWriter().section("train", *this).text() == ConfigWriter().section("train", other).text();
}

void validate(const TrainConfig& config) {
  const auto at_least = [](const char* key, double value, double smallest) {
    if (!(value >= smallest)) throw Error(fmt::format("train.{} = {} must be at least {}", key, value, smallest));
    if (!std::isfinite(value)) throw Error(fmt::format("train.{} = {} must be finite", key, value));
  };
  const auto count = [](const char* key, int64_t value, int64_t smallest, int64_t largest = kLargestCount) {
    if (value < smallest) throw Error(fmt::format("train.{} = {} must be at least {}", key, value, smallest));
    if (value > largest)
      throw Error(fmt::format("train.{} = {} must be at most {}", key, value, with_thousands(largest)));
  };
  const auto duration = [&count](const char* key, const Duration& value, int64_t smallest) {
    if (value.unit() == Duration::Unit::steps) count(key, value.in_steps(), smallest);  // in other units, above 0
  };
  const auto below_one = [](const char* key, double value) {
    if (!(value >= 0 && value < 1)) throw Error(fmt::format("train.{} = {} must lie in [0, 1)", key, value));
  };
  Parameters none(at::kFloat);
  none.finish();
  (void)make_optimizer(config.optimizer, none, config.options);  // throws on options out of range
  TrainConfig schedule = config;
  for (Duration* each : {&schedule.warm_up, &schedule.decay_start, &schedule.steps}) {
    if (each->unit() != Duration::Unit::steps) *each = 1;  // their number of steps depends on the data
  }
  (void)make_schedule(schedule, 1);
  const ops::MatrixPrecision trains(ops::precision_of(config.precision));  // throws if training does not support it
  at_least("learning_rate", config.learning_rate, 0.0);
  duration("warm_up", config.warm_up, 0);
  duration("decay_start", config.decay_start, 0);
  if (!(config.decay_floor >= 0 && config.decay_floor <= 1))
    throw Error(fmt::format("train.decay_floor = {} must lie in [0, 1]", config.decay_floor));
  at_least("weight_decay", config.weight_decay, 0.0);
  at_least("clip_norm", config.clip_norm, 0.0);
  check_within("train.clip_value", config.clip_value, 0.0, 1e30);
  at_least("clip_block", config.clip_block, 0.0);
  below_one("average_decay", config.average_decay);
  below_one("label_smoothing", config.label_smoothing);
  const auto above_zero = [](const std::string& key, double value) {
    if (!(value > 0) || !std::isfinite(value)) throw Error(fmt::format("{} = {} must be above 0", key, value));
  };
  above_zero("train.corpus_temperature", config.corpus_temperature);
  for (auto corpus = config.corpora.begin(); corpus != config.corpora.end(); ++corpus) {
    if (corpus->name.empty())
      throw Error("a corpus of [[train.corpora]] has no name", "name a corpus of the data: name = \"news\"");
    if (std::any_of(config.corpora.begin(), corpus, [&](const auto& other) { return other.name == corpus->name; }))
      throw Error(fmt::format("[[train.corpora]] has two weights for '{}'", corpus->name));
    above_zero(fmt::format("[[train.corpora]] {}: weight", corpus->name), corpus->weight);
  }
  count("batch_tokens", config.batch_tokens, 1);
  count("accumulate", config.accumulate, 1);
  count("micro_batch_tokens", config.micro_batch_tokens, 0);
  duration("steps", config.steps, 1);
  count("epochs", config.epochs, 0);
  duration("log_every", config.log_every, 1);
  duration("validate_every", config.validate_every, 1);
  count("patience", config.patience, 0);
  duration("score_every", config.score_every, -1);
  duration("checkpoint_every", config.checkpoint_every, 1);
  count("processes", config.processes, 1, kMostProcesses);
  at_least("timeout", config.timeout, 0.1);
  if (config.shard_optimizer && config.trouble.rolls_back())
    throw Error("train.shard_optimizer does not work with rollbacks", "set train.trouble to stop or skip");
  if (config.exchange_precision != "float32" && config.exchange_precision != "bf16")
    throw Error(fmt::format("train.exchange_precision = \"{}\" must be float32 or bf16", config.exchange_precision));
  if (config.parameters != "float32" && config.parameters != "bf16" && config.parameters != "bf16-copy") {
    throw Error(
        fmt::format("train.parameters = \"{}\" must be float32, bf16 (rounded stochastically) or bf16-copy (with "
                    "a copy in float32)",
                    config.parameters));
  }
  count("keep_checkpoints", config.keep_checkpoints, 1);
  duration("keep_every", config.keep_every, 0);
  count("keep_best", config.keep_best, 1);
  at_least("divergence_factor", config.divergence_factor, 0.0);
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
  std::vector<std::string> sections = {"model", "train", "task", "watch", "data", "initial"};
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
  return run;
}

std::string to_toml(const RunConfig& config) {
  ConfigWriter writer;
  writer.section("model", config.model)
      .section("train", config.train)
      .section("task", config.task)
      .section("watch", config.watch)
      .section("data", DataSection{config.data});
  if (!config.initial_weights.empty()) writer.section("initial", InitialSection{config.initial_weights});
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
    const auto place =
        std::find_if(values.begin(), values.end(), [&](const auto& entry) { return entry.first == key; });
    return place == values.end() ? std::string("(default)") : place->second;
  };
  for (const auto& [key, value] : ours) {
    if (const std::string there = value_of(theirs, key); there != value) differs(key, there, value);
  }
  for (const auto& [key, value] : theirs) {
    if (const std::string here = value_of(ours, key); here != value) differs(key, value, here);
  }
}

}  // namespace plumb
