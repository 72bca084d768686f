// plumb train: trains a model in a run directory, or resumes a run.
#include <fmt/format.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "events.h"
#include "plumb/base/error.h"
#include "plumb/base/progress.h"
#include "plumb/base/text.h"
#include "plumb/ops/peak_rate.h"
#include "plumb/parallel/rendezvous.h"
#include "plumb/train/run.h"
#include "verb.h"

namespace plumb::app {
namespace {

struct TrainArguments {
  std::string config, data, out, precision;
  int64_t processes = 0;  // 0: as configured
  std::vector<std::string> set;
  bool seed_given = false;
};

// The signal received, or 0. A signal handler may only write to this.
volatile std::sig_atomic_t interrupted = 0;

/// A first interrupt ends the run after the current step; a second one ends the process as usual.
class InterruptGuard {
 public:
  InterruptGuard() {
    interrupted = 0;
    struct sigaction action {};
    action.sa_handler = [](int signal) { interrupted = signal; };
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
    ::sigaction(SIGINT, &action, &before_int_);
    ::sigaction(SIGTERM, &action, &before_term_);
  }
  ~InterruptGuard() {
    ::sigaction(SIGINT, &before_int_, nullptr);
    ::sigaction(SIGTERM, &before_term_, nullptr);
  }
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  struct sigaction before_int_ {};
  struct sigaction before_term_ {};
};

/// The configuration of the run in --out if no other option is given, else that of --config, --set, --data and --seed.
RunConfig requested(const TrainArguments& arguments, const Globals& globals) {
  const bool stored = std::filesystem::exists(std::filesystem::path(arguments.out) / "config.toml");
  const bool nothing_said = arguments.config.empty() && arguments.data.empty() && arguments.set.empty() &&
                            arguments.precision.empty() && arguments.processes == 0 && !arguments.seed_given;
  if (stored && nothing_said) return load_run_config(arguments.out);
  // Without --config, an existing run keeps its configuration; differences are reported when it is resumed.
  Config config = !arguments.config.empty() ? Config::from_file(arguments.config)
                  : stored                  ? Config::from_file(std::filesystem::path(arguments.out) / "config.toml")
                                            : Config::from_string("", "--set");
  for (const std::string& assignment : arguments.set) config.set(assignment);
  if (!arguments.precision.empty()) config.set("train.precision=" + arguments.precision);
  if (arguments.processes > 0) config.set(fmt::format("train.processes={}", arguments.processes));
  RunConfig run = read_run_config(config);
  if (!arguments.data.empty()) run.data = arguments.data;
  if (arguments.seed_given) run.train.seed = static_cast<int64_t>(globals.seed);
  if (run.data.empty())
    throw UsageError("no data to train on", "give --data DIR, or set data.directory in the configuration");
  return run;
}

std::string summary(const TrainResult& result, const std::string& out) {
  std::string line = fmt::format("{}: {} at step {} after {}", out, result.outcome, with_thousands(result.steps),
                                 duration(result.seconds));
  if (const auto nll = result.valid_nll())
    line += fmt::format(", validation {:.4f} nats per token (perplexity {:.4g})", *nll, std::exp(*nll));
  for (const auto& [name, value] : result.metrics) {
    if (name.starts_with("valid_") || name == "perplexity" || name.ends_with("_low") || name.ends_with("_high"))
      continue;
    line += name == "bleu" ? fmt::format(", BLEU {:.2f}", value) : fmt::format(", {} {:.4g}", name, value);
    const auto low = result.metrics.get(name + "_low"), high = result.metrics.get(name + "_high");
    if (low && high) line += fmt::format(" ({:.4g} to {:.4g})", *low, *high);
  }
  return line + "\n";
}

/// ": the loss is nan …", from the last trouble of a run that diverged.
std::string reason_of(const TrainResult& result) {
  return result.troubles.empty() ? "" : ": " + result.troubles.back().values.value("text", std::string());
}

/// What its diagnosis says to try.
std::string advice_of(const TrainResult& result) {
  std::string advice;
  constexpr std::string_view kTry = "try: ";
  for (const std::string& line : result.diagnosis) {
    if (line.starts_with(kTry)) advice += (advice.empty() ? "try " : "; ") + line.substr(kTry.size());
  }
  return advice.empty() ? "result.json has what was measured; `plumb probe` measures the model before training"
                        : advice + "; result.json has what was measured";
}

void train_model(const TrainArguments& arguments, const Globals& globals) {
  const RunConfig config = requested(arguments, globals);
  EventFiles events;
  TrainHooks hooks;
  hooks.progress = "train";
  hooks.dry_pass = true;
  hooks.point = [&](const TrainPoint& point) { events.write(arguments.out, point); };
  hooks.watched = [&](const WatchRecord& record) { events.write(arguments.out, record); };
  hooks.peak_rate = [&] { return ops::peak_product_rate(ops::precision_of(config.train.precision)); };
  hooks.stop = [] { return interrupted != 0; };
  hooks.give_up = hooks.stop;
  hooks.share_threads = globals.threads == 0 && std::getenv("OMP_NUM_THREADS") == nullptr;
  const InterruptGuard guard;
  const TrainResult result = run_training(config, arguments.out, hooks);
  const auto rendezvous = rendezvous_of_environment();
  const bool reports = !rendezvous || rendezvous->rank == 0;  // the others have only the exit status
  if (reports) emit(globals, result.to_json(), summary(result, arguments.out));
  if (result.outcome == "stopped") {
    if (reports) say(fmt::format("go on with `plumb train --out {}`", arguments.out));
    throw Interrupted{interrupted == 0 ? SIGINT : interrupted};
  }
  if (result.outcome == "diverged") {
    if (!reports) throw Ended{kDivergedStatus};
    throw Diverged(fmt::format("{}: training diverged at step {}{}", arguments.out, with_thousands(result.steps),
                               reason_of(result)),
                   advice_of(result));
  }
}

}  // namespace

void add_train(CLI::App& app, Globals& globals) {
  const auto arguments = std::make_shared<TrainArguments>();
  CLI::App* verb =
      add_verb(app, globals, "train", "Train a model, or resume an interrupted run",
               "plumb train --data data/multi30k --out runs/pre-ln --set model.residual=pre-ln --set train.warm_up=0",
               [arguments, &globals] { train_model(*arguments, globals); });
  verb->add_option("--config", arguments->config,
                   "TOML file with the sections [model], [train], [task], [watch] and [data]")
      ->type_name("FILE");
  verb->add_option("--data", arguments->data, "Data directory (default: data.directory in the configuration)")
      ->type_name("DIR");
  verb->add_option("--out", arguments->out, "Run directory to create, or to resume without further options")
      ->type_name("DIR")
      ->required();
  verb->add_option("--set", arguments->set, "Override a key, such as model.residual=pre-ln; may be repeated")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  verb->add_option("--precision", arguments->precision, "Precision of matrix products (train.precision)")
      ->check(CLI::IsMember({"float32", "bf16"}));
  verb->add_option("--processes", arguments->processes,
                   "Number of processes sharing each batch and the CPU threads (train.processes)")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  add_json_option(*verb, globals);
  add_seed_option(*verb, globals);
  verb->get_option("--seed")->each([arguments](const std::string&) { arguments->seed_given = true; });
}

}  // namespace plumb::app
