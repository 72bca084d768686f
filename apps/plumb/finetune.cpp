// plumb finetune: trains a pretrained model to classify, or further on other text.
#include "plumb/train/finetune.h"
#include "plumb/base/input.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "plumb/base/error.h"
#include "plumb/base/progress.h"
#include "plumb/interop/fit.h"
#include "plumb/interop/tokenizer_files.h"
#include "plumb/run/directory.h"
#include "training.h"
#include "verb.h"

namespace plumb::app {
namespace {

struct FinetuneArguments {
  std::string from, config, data, out;
  std::vector<std::string> set;
  bool seed_given = false;
};

/// What keeps `plumb export` from writing a model of this configuration; empty if nothing does.
std::string hindrance_to_export(ModelConfig model) {
  model.lora = {};  // merged
  if (model.labels == 0) model.labels = 2;
  try {
    static_cast<void>(fitting_settings(model));
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

/// Says that a classifier made from a model of a Hugging Face family will not be one itself, and how it would be.
void say_if_not_exported(const RunConfig& run) {
  const std::filesystem::path from = locate_run(run.initial_weights).run;
  if (run.task.name != "classification" || !std::filesystem::exists(from / kModelSettings)) return;
  const std::string hindrance = hindrance_to_export(run.model);
  if (hindrance.empty()) return;
  ModelConfig other = run.model;
  other.pooling = "first";
  other.pooler = true;
  const bool possible = hindrance_to_export(other).empty();
  say(fmt::format("`plumb export` cannot write this classifier: {}{}", hindrance,
                  possible ? "; it can with --set model.pooling=first --set model.pooler=true" : ""));
}

RunConfig requested_run(const FinetuneArguments& arguments, const Globals& globals) {
  Config config = arguments.config.empty() ? Config::from_string("", "--set") : Config::from_file(arguments.config);
  for (const std::string& assignment : arguments.set) config.set(assignment);
  RunConfig run = finetuning_run(config, arguments.from, arguments.data);
  const std::filesystem::path from = locate_run(run.initial_weights).run;
  if (std::filesystem::exists(arguments.out) && std::filesystem::equivalent(from, arguments.out)) {
    throw UsageError(fmt::format("--out {}: the run to start from", arguments.out),
                     "choose another directory: the pretrained model is kept as it is");
  }
  if (arguments.seed_given) run.train.seed = static_cast<int64_t>(globals.seed);
  say_if_not_exported(run);
  return run;
}

void add_finetune(CLI::App& app, Globals& globals) {
  const auto arguments = std::make_shared<FinetuneArguments>();
  CLI::App* verb = add_verb(
      app, globals, "finetune", "Fine-tune a pretrained model for classification, or on other text",
      "plumb finetune --from runs/wikitext --data data/sst2 --out runs/sst2 --set finetune.unfreeze=gradual",
      [arguments, &globals] { train_and_report(requested_run(*arguments, globals), arguments->out, globals); });
  verb->add_option("--from", arguments->from,
                   "Pretrained model: a run directory (its latest checkpoint), a checkpoint in one, or a folder of a "
                   "Hugging Face model")
      ->type_name("RUN_OR_FOLDER");
  verb->add_option(
          "--data", arguments->data,
          "Data directory made by `plumb data labels --tokenizer-from` or, for other text, by `plumb data text`")
      ->type_name("DIR");
  verb->add_option("--out", arguments->out, "Run directory to create, which `plumb train --out` resumes")
      ->type_name("DIR")
      ->required();
  verb->add_option("--config", arguments->config,
                   "TOML file with the sections [finetune], [model], [train], [task], [watch] and [data]")
      ->type_name("FILE");
  add_set_option(*verb, arguments->set);
  add_json_option(*verb, globals);
  add_seed_option(*verb, globals);
  verb->get_option("--seed")->each([arguments](const std::string&) { arguments->seed_given = true; });
  add_exit_status(*verb, kDivergedStatus, "training diverged");
}

const bool kFinetuneRegistered = register_verb({Heading::models, 30, add_finetune, true});

}  // namespace
}  // namespace plumb::app
