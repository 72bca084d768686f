#include "training.h"

#include <fmt/format.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>

#include "events.h"
#include "interruption.h"
#include "plumb/base/error.h"
#include "plumb/base/progress.h"
#include "plumb/base/text.h"
#include "plumb/ops/peak_rate.h"
#include "plumb/parallel/rendezvous.h"
#include "plumb/run/directory.h"
#include "plumb/train/progress_line.h"
#include "plumb/train/run_training.h"

namespace plumb::app {
namespace {

std::string text_of(const TrainResult& result, const std::string& out) {
  std::string line = fmt::format("{}: {} at step {} after {}", out, to_string(result.outcome),
                                 with_thousands(result.steps), duration(result.seconds));
  const bool of_labels = result.metrics.get("mcc").has_value();
  if (const auto nll = result.valid_nll()) {
    line += of_labels ? fmt::format(", validation {:.4f} nats per example", *nll)
                      : fmt::format(", validation {:.4f} nats per token (perplexity {:.4g})", *nll, std::exp(*nll));
  }
  for (const auto& [name, value] : result.metrics) {  // those not mentioned yet
    if (name.starts_with("valid_") || name == "perplexity" || name.ends_with("_low") || name.ends_with("_high"))
      continue;
    line += name == "bleu" ? fmt::format(", BLEU {:.2f}", value) : fmt::format(", {} {:.4g}", name, value);
    const auto low = result.metrics.get(name + "_low"), high = result.metrics.get(name + "_high");
    if (low && high) line += fmt::format(" ({:.4g} to {:.4g})", *low, *high);
  }
  if (result.failed() && result.outcome != RunOutcome::diverged)  // divergence is an error of its own
    line += fmt::format("\n{}: has failed: {}", out, result.learning->text);
  return line + "\n";
}

/// ": the loss is nan …", from the last trouble of a diverged run.
std::string reason_of(const TrainResult& result) {
  return result.troubles.empty() ? "" : ": " + result.troubles.back().text;
}

/// The suggestions in the run's diagnosis.
std::string advice_of(const TrainResult& result) {
  std::string advice;
  constexpr std::string_view kTry = "try: ";
  for (const std::string& line : result.diagnosis) {
    if (line.starts_with(kTry)) advice += (advice.empty() ? "try " : "; ") + line.substr(kTry.size());
  }
  return advice.empty() ? "result.json has the measurements; `plumb probe` measures the model before training"
                        : advice + "; result.json has the measurements";
}

/// A run that a signal ends, and that may be moved.
class Interruptible final : public TrainObserver {
 public:
  explicit Interruptible(std::string out) : place_(std::move(out)) {}
  void on_place(const std::filesystem::path& now) override { place_ = now.string(); }
  bool stops() override { return InterruptGuard::signal() != 0; }
  bool gives_up() override { return stops(); }
  /// Its directory.
  [[nodiscard]] const std::string& place() const { return place_; }

 private:
  std::string place_;
};

}  // namespace

void train_and_report(const RunConfig& config, const std::string& out, Globals& globals) {
  EventFiles events;
  Interruptible run(out);
  TrainProgress progress("train");
  const InterruptGuard guard(
      "interrupted: stops after this step and saves its state; to stop at once without saving, press Ctrl-C again "
      "after "
      "two seconds");
  const TrainOptions options{
      .dry_pass = true,
      .share_threads = globals.threads == 0 && std::getenv("OMP_NUM_THREADS") == nullptr,
      .peak_rate = [&] { return ops::peak_product_rate(ops::precision_of(config.train.precision)); }};
  globals.joins = true;
  const TrainResult result = run_training(config, out, {&run, &progress, &events}, options);
  const std::string& place = run.place();
  const auto rendezvous = rendezvous_of_environment();
  const bool reports = !rendezvous || rendezvous->rank == 0;  // the others return only an exit status
  if (reports) emit(globals, result.to_json(), text_of(result, place));
  if (result.outcome == RunOutcome::stopped) {
    if (reports) say(fmt::format("continue with `plumb train --out {}`", place));
    throw Interrupted{InterruptGuard::signal() == 0 ? SIGINT : InterruptGuard::signal()};
  }
  if (result.outcome == RunOutcome::diverged) {
    if (!reports) throw Ended{kDivergedStatus};
    throw Diverged(
        fmt::format("{}: training diverged at step {}{}", place, with_thousands(result.steps), reason_of(result)),
        advice_of(result));
  }
}

RunConfig new_run(const Config& config, const std::string& data) {
  RunConfig defaults;
  RunConfig run = read_run_config(config);
  const std::string directory = data.empty() ? run.data : data;
  if (directory.empty())
    throw UsageError("no data to train on", "give --data DIR, or set data.directory in the configuration");
  const DataDirectory opened = DataDirectory::open(directory);
  const std::string kind = usual_model_kind(run.task, opened);
  defaults.model.kind = kind;
  run = read_run_config(config, defaults);
  Config usual;
  for (const std::string& setting : make_task(run.task, opened, run.model.kind)->usual_settings()) {
    const auto is_of = [&](const char* key) { return setting.starts_with(std::string(key) + "="); };
    const bool given_otherwise = (is_of("train.steps") && config.has("train.epochs")) ||
                                 (is_of("train.weight_decay") && config.has("train.optimizer")) ||
                                 (is_of("train.optimizer") && config.has("train.adam"));
    if (!given_otherwise) usual.set(setting);
  }
  run = read_run_config(config, read_run_config(usual, defaults));
  run.data = directory;
  return run;
}

void add_set_option(CLI::App& verb, std::vector<std::string>& set) {
  repeatable(verb.add_option("--set", set, "Override a key, such as model.residual=pre-ln; may be repeated"))
      ->type_name("KEY=VALUE");
}

}  // namespace plumb::app
