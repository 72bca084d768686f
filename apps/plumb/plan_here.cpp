#include "plan_here.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "checks.h"
#include "plumb/base/error.h"
#include "plumb/base/quantity.h"
#include "plumb/model/embedding.h"
#include "plumb/model/kind.h"
#include "training.h"

namespace plumb::app {
namespace {

/// Memory by part, in the order in which it is printed.
std::vector<std::pair<const char*, double>> parts_of(const plan::LocalMemory& memory) {
  return {{"weights", memory.weights},
          {"gradients", memory.gradients},
          {"optimizer", memory.optimizer},
          {"copies", memory.copies},
          {"checkpoint", memory.checkpoint},
          {"activations", memory.activations.layers},
          {"rounded weights", memory.activations.weights},
          {"output", memory.activations.output},
          {"working", std::max(memory.activations.working, memory.activations.again)},
          {"library", memory.libraries}};
}

bool writes_between_steps(const TrainConfig& train) {
  const bool in_steps =
      train.checkpoint_every.unit() == Duration::Unit::steps && train.steps.unit() == Duration::Unit::steps;
  return !in_steps || train.checkpoint_every.in_steps() < train.steps.in_steps();
}

std::string text_of(const plan::LocalMemory& memory, const plan::LocalTime& time, double tokens) {
  std::string text;
  for (const auto& [name, bytes] : parts_of(memory))
    if (bytes > 0) text += fmt::format("{:<16} {:>10}\n", name, with_bytes(bytes));
  text += fmt::format("{:<16} {:>10}, in which gradients reuse the memory of activations\n\n", "peak",
                      with_bytes(memory.peak()));
  return text + app::text_of(time) + fmt::format("{} tokens per second\n", with_unit(tokens / time.seconds()));
}

}  // namespace

std::string text_of(const plan::LocalTime& time) {
  size_t width = 16;
  for (const plan::StepPart& part : time.parts) width = std::max(width, part.name.size());
  std::string text =
      fmt::format("{:<{}} {:>10}  {:>10}  {:>10}  {}\n", "", width, "seconds", "operations", "bytes", "of the limit");
  for (const plan::StepPart& part : time.parts) {
    text += fmt::format("{:<{}} {:>10.3g}  {:>10}  {:>10}", part.name, width, part.seconds,
                        part.operations > 0 ? with_unit(part.operations) : "",
                        part.bytes > 0 ? with_bytes(part.bytes) : "");
    if (part.bytes > 0)
      text += fmt::format("  {:>4.0f}% of {}", 100 * time.share(part),
                          time.is_bound_by_memory(part) ? "memory" : "arithmetic");
    text += '\n';
  }
  text += fmt::format("{:<{}} {:>10.3g}  {:>10}  {:>10}  {:>4.0f}% of arithmetic\n", "step", width, time.seconds(),
                      with_unit(time.operations()), "", 100 * time.operations() / time.seconds() / time.peak_rate);
  return text + fmt::format("the limits are {} operations per second in matrix products, and {} per second\n",
                            with_unit(time.peak_rate), with_bytes(time.memory_rate));
}

void add_planned_file(CLI::App& verb, PlannedFile& file) {
  CLI::Option* argument =
      verb.add_option("CONFIG", file.config, "TOML file with [model] and [train] sections")->type_name("FILE");
  verb.add_option("--config", file.config, "The same, as in other commands")->type_name("FILE")->excludes(argument);
  add_set_option(verb, file.set);
  verb.get_option("--set")->description("Override a key, such as model.d_model=512; may be repeated");
  verb.add_option("--vocabulary", file.vocabulary, "Size of the vocabulary, if the file leaves it to the data")
      ->check(positive());
  verb.add_option("--sequence", file.sequence,
                  "Tokens per sequence (default: 2048, or the model's positions if they are fewer)")
      ->check(positive());
  verb.add_option("--batch-tokens", file.batch_tokens,
                  "Tokens per step (default: train.batch_tokens × train.accumulate)")
      ->type_name("QUANTITY");
}

RunConfig planned_run(const PlannedFile& file) {
  if (file.config.empty()) throw UsageError("no configuration to plan for", "give --config FILE");
  Config config = Config::from_file(file.config);
  for (const std::string& assignment : file.set) config.set(assignment);
  RunConfig run = read_run_config(config);
  if (file.vocabulary) {
    run.model.target_vocabulary = *file.vocabulary;
    if (!kind_of(run.model).models_language()) run.model.source_vocabulary = *file.vocabulary;
  }
  require_known_vocabulary(run.model);
  if (!file.batch_tokens.empty()) {
    const double tokens = parse_quantity(file.batch_tokens, "--batch-tokens");
    if (!(tokens >= 1 && tokens <= 1e9))
      throw UsageError(fmt::format("--batch-tokens {} must be from 1 to 1,000,000,000", file.batch_tokens));
    run.train.batch_tokens = static_cast<int64_t>(tokens);
    run.train.accumulate = 1;
  }
  validate(run.train);
  return run;
}

void require_known_vocabulary(const ModelConfig& model) {
  if (model.target_vocabulary == 0 && !kind_of(model).only_encodes())
    throw Error("the vocabulary is left to the data", "give its size with --set model.target_vocabulary=SIZE");
}

int64_t planned_sequence(const PlannedFile& file, const ModelConfig& model) {
  constexpr int64_t kUsual = 2048;
  const int64_t most = longest_sequence(model);
  if (file.sequence == 0) return std::min(kUsual, most);
  if (file.sequence <= most) return file.sequence;
  throw Error(fmt::format("--sequence {}: the model has only {} positions", file.sequence, most),
              "plan shorter sequences, or raise model.max_positions");
}

LocalStep local_step(const RunConfig& run, int64_t sequence) {
  if (run.train.processes > 1) {
    throw Error(fmt::format("train.processes = {}: only one process is planned here", run.train.processes),
                "leave out --here, or set train.processes to 1");
  }
  const int64_t sequences = std::max<int64_t>(run.train.batch_tokens / sequence, 1);
  const int64_t most = run.train.micro_batch_tokens > 0 ? run.train.micro_batch_tokens / sequence : sequences;
  LocalStep step;
  step.batch.length = sequence;
  step.batch.sequences = std::clamp<int64_t>(most, 1, sequences);
  step.batch.rounded = run.train.precision == "bf16";
  step.batch.recomputed = run.train.recompute;
  step.repetitions = (sequences + step.batch.sequences - 1) / step.batch.sequences * run.train.accumulate;
  return step;
}

plan::LocalRun local_run(const TrainConfig& train, const LocalStep& step) {
  return {.optimizer = train.optimizer,
          .options = train.options,
          .copies = (train.average_decay > 0 ? 1 : 0) + (train.parameters == "bf16-copy" ? 1 : 0),
          .adds_gradients = step.repetitions > 1,
          .writes_checkpoints = writes_between_steps(train),
          .copies_in_step = train.cautious};
}

Json memory_json(const plan::Memory& memory) {
  return {{"weights", memory.weights},
          {"gradients", memory.gradients},
          {"optimizer", memory.optimizer},
          {"activations", memory.activations},
          {"total", memory.total()}};
}

Json to_json(const plan::LocalMemory& memory) {
  Json json;
  for (const auto& [name, bytes] : parts_of(memory)) json[name] = bytes;
  json["peak"] = memory.peak();
  return json;
}

Json to_json(const plan::LocalTime& time) {
  Json json = {{"seconds", time.seconds()},
               {"operations", time.operations()},
               {"peak_rate", time.peak_rate},
               {"memory_rate", time.memory_rate}};
  for (const plan::StepPart& part : time.parts) {
    Json& entry = json["parts"].emplace_back();
    entry = {{"name", part.name}, {"seconds", part.seconds}, {"operations", part.operations}, {"bytes", part.bytes}};
    if (part.bytes == 0) continue;
    entry["limit"] = time.is_bound_by_memory(part) ? "memory" : "arithmetic";
    entry["share"] = time.share(part);
  }
  return json;
}

Json plan_here(const RunConfig& run, int64_t sequence, std::string& text) {
  const double library = plan::resident_memory();
  const LocalStep step = local_step(run, sequence);
  const plan::LocalMemory memory = plan::local_memory(run.model, step.batch, local_run(run.train, step), library);
  const plan::LocalTime time =
      plan::local_time(run.model, step.batch, step.repetitions, run.train.optimizer, run.train.options);
  const auto tokens = static_cast<double>(step.batch.tokens() * step.repetitions);
  text = text_of(memory, time, tokens);
  Json json = make_document("plan-here", 1);
  json["tokens_at_once"] = step.batch.tokens();
  json["batches_per_step"] = step.repetitions;
  json["memory"] = to_json(memory);
  json["step"] = to_json(time);
  return json;
}

}  // namespace plumb::app
