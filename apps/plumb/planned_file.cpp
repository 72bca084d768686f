#include "planned_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "checks.h"
#include "plumb/base/error.h"
#include "plumb/base/quantity.h"
#include "plumb/model/embedding.h"
#include "plumb/model/kind.h"
#include "training.h"

namespace plumb::app {
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

Json memory_json(const plan::Memory& memory) {
  return {{"weights", memory.weights},
          {"gradients", memory.gradients},
          {"optimizer", memory.optimizer},
          {"activations", memory.activations},
          {"total", memory.total()}};
}

}  // namespace plumb::app
