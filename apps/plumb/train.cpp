// plumb train: trains a model in a run directory, or resumes a run.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "checks.h"
#include "dry_run.h"
#include "plumb/base/error.h"
#include "plumb/base/text.h"
#include "plumb/run/directory.h"
#include "plumb/task/task.h"
#include "training.h"
#include "verb.h"

namespace plumb::app {
namespace {

struct TrainArguments {
  std::string config, data, out, precision;
  int64_t processes = 0;  // 0: as configured
  std::vector<std::string> set;
  bool seed_given = false;
  bool dry_run = false;
};

/// ", or did you mean 'runs/base'?", of the run beside `out` with the nearest name; empty if none is near.
std::string run_like(const std::string& out) {
  const std::filesystem::path path(out);
  std::error_code none;
  std::vector<std::string> runs;
  for (const auto& other : std::filesystem::directory_iterator(path.has_parent_path() ? path.parent_path() : ".", none))
    if (std::filesystem::exists(other.path() / "config.toml", none)) runs.push_back(other.path().filename().string());
  const std::string guess = nearest(path.filename().string(), runs);
  return guess.empty() ? "" : fmt::format(", or did you mean '{}'?", (path.parent_path() / guess).string());
}

/// The configuration of --config, or of the run in --out, with --set and the options that set a key.
Config configured(const TrainArguments& arguments) {
  // Without --config, an existing run keeps its configuration; differences are reported when it is resumed.
  const auto stored = std::filesystem::path(arguments.out) / "config.toml";
  Config config = !arguments.config.empty()         ? Config::from_file(arguments.config)
                  : std::filesystem::exists(stored) ? Config::from_file(stored)
                                                    : Config::from_string("", "--set");
  for (const std::string& assignment : arguments.set) config.set(assignment);
  if (!arguments.precision.empty()) config.set("train.precision=" + arguments.precision);
  if (arguments.processes > 0) config.set(fmt::format("train.processes={}", arguments.processes));
  return config;
}

/// The configuration of the run in --out if no other option is given, else of --config, --set, --data and --seed.
RunConfig requested(const TrainArguments& arguments, const Globals& globals) {
  const bool stored = std::filesystem::exists(std::filesystem::path(arguments.out) / "config.toml");
  const bool nothing_said = arguments.config.empty() && arguments.data.empty() && arguments.set.empty() &&
                            arguments.precision.empty() && arguments.processes == 0 && !arguments.seed_given;
  if (stored && nothing_said) return load_run_config(arguments.out);
  if (!stored && nothing_said && !arguments.out.empty())
    throw UsageError(fmt::format("{}: is no run to resume", arguments.out),
                     "a new run needs --data DIR" + run_like(arguments.out));
  RunConfig run = new_run(configured(arguments), arguments.data);
  if (arguments.seed_given) run.train.seed = static_cast<int64_t>(globals.seed);
  return run;
}

/// The same for a run that is only looked at, which needs no data if the configuration has the vocabulary.
RunConfig looked_at(const TrainArguments& arguments, const Globals& globals) {
  RunConfig run = read_run_config(configured(arguments));
  if (arguments.data.empty() && run.data.empty()) return run;
  run = requested(arguments, globals);
  make_task(run.task, DataDirectory::open(run.data), run.model.kind)->complete(run.model);
  return run;
}

void run(const TrainArguments& arguments, Globals& globals) {
  if (arguments.dry_run) return dry_run(looked_at(arguments, globals), globals);
  train_and_report(requested(arguments, globals), arguments.out, globals);
}

void add_train(CLI::App& app, Globals& globals) {
  const auto arguments = std::make_shared<TrainArguments>();
  CLI::App* verb =
      add_verb(app, globals, "train", "Train a model, or resume an interrupted run",
               "plumb train --data data/multi30k --out runs/pre-ln --set model.residual=pre-ln --set train.warm_up=0 "
               "--set train.decay_start=4000",
               [arguments, &globals] { run(*arguments, globals); });
  verb->add_option("--config", arguments->config,
                   "TOML file with the sections [model], [train], [task], [watch], [data] and [initial]")
      ->type_name("FILE");
  verb->add_option("--data", arguments->data, "Data directory (default: data.directory in the configuration)")
      ->type_name("DIR");
  CLI::Option* out =
      verb->add_option("--out", arguments->out, "Run directory to create, or to resume without further options")
          ->type_name("DIR")
          ->required();
  const auto only_look = [arguments, out] {
    arguments->dry_run = true;
    out->required(false);
  };
  verb->add_flag_callback(
          "--dry-run", only_look,
          "Check how processes divide the model, and print what each would hold and send; without training, and --out")
      ->trigger_on_parse();
  add_set_option(*verb, arguments->set);
  verb->add_option("--precision", arguments->precision, "Precision of matrix products (train.precision)")
      ->check(CLI::IsMember({"float32", "bf16"}));
  verb->add_option("--processes", arguments->processes,
                   "Number of processes sharing each batch and the CPU threads (train.processes)")
      ->check(positive())
      ->type_name("N")
      ->default_str("");
  add_json_option(*verb, globals);
  add_seed_option(*verb, globals);
  verb->get_option("--seed")->each([arguments](const std::string&) { arguments->seed_given = true; });
  add_exit_status(*verb, kDivergedStatus, "training diverged");
}

const bool kTrainRegistered = register_verb({Heading::models, 20, add_train, true});

}  // namespace
}  // namespace plumb::app
