// plumb check: tells before the compute is spent whether a model will train.
#include "plumb/check/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "interruption.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/json_fields.h"
#include "plumb/base/progress.h"
#include "plumb/check/report.h"
#include "plumb/check/schedule.h"
#include "plumb/check/words.h"
#include "plumb/interop/import.h"
#include "plumb/report/html.h"
#include "plumb/run/directory.h"
#include "plumb/train/finetune.h"
#include "training.h"
#include "verb.h"

namespace plumb::app {
namespace {

struct CheckArguments {
  std::string run, config, data, out;
  std::string budget;
  std::vector<std::string> set;
};

/// The run that the arguments plan: a new one, a fine-tuning of RUN on other data, or RUN continued.
check::Subject planned(const CheckArguments& arguments) {
  Config config = arguments.config.empty() ? Config::from_string("", "--set") : Config::from_file(arguments.config);
  for (const std::string& assignment : arguments.set) config.set(assignment);
  if (arguments.run.empty()) return check::open_subject(new_run(config, arguments.data));
  if (!arguments.data.empty()) return check::open_subject(finetuning_run(config, arguments.run, arguments.data));
  if (is_model_folder(arguments.run))
    throw UsageError(fmt::format("{}: a model without data", arguments.run),
                     "give the data to fine-tune it on: --data");
  const RunAndCheckpoint place = locate_run(arguments.run);
  return check::open_subject(read_run_config(config, load_run_config(place.run)), place.checkpoint);
}

std::string text_of(const check::CheckResult& result, bool verbose) {
  std::string text = result.checked + "\n" + result.answer;
  const auto alarms = std::count_if(result.findings.begin(), result.findings.end(),
                                    [](const Finding& finding) { return finding.raised; });
  if (result.verdict == check::CheckAnswer::trains && alarms > 0)
    text += fmt::format("; but see the {} below", alarms == 1 ? "alarm" : fmt::format("{} alarms", alarms));
  text += "\n\n";
  for (const check::Line& line : check::lines_of(result)) text += fmt::format("{:<22} {}\n", line.name, line.text);
  if (result.recommended && !check::recommends_as_configured(result))
    text += fmt::format("{:<22} {}\n", result.recommended->tried ? "to set" : "to try", to_string(*result.recommended));
  text += '\n';
  for (const Finding& finding : result.findings) {
    if (!finding.raised && !verbose) continue;
    text += fmt::format("{} {}{}\n", finding.raised ? '!' : ' ', finding.text,
                        finding.raised && !finding.advice.empty() ? "; " + finding.advice : "");
  }
  for (const check::Trial& trial : result.trials) {
    text += fmt::format("  {:<7.2g} {:<12} {:<8} {}\n", trial.learning_rate,
                        trial.warm_up > 0 ? fmt::format("warm-up {}", trial.warm_up) : "", to_string(trial.outcome),
                        trial.because);
  }
  return text;
}

void run(const CheckArguments& arguments, const Globals& globals) {
  const check::Subject subject = planned(arguments);
  if (!arguments.out.empty()) claim_output_directory(arguments.out, "check");
  const InterruptGuard guard(
      "interrupted: stops after this step and says what it knows; to stop at once, press Ctrl-C again after two "
      "seconds");
  check::CheckOptions options;
  const int64_t steps = check::planned_schedule(subject).steps;
  options.budget = arguments.budget.empty() ? check::usual_budget(steps) : check::parse_budget(arguments.budget, steps);
  options.seed = globals.seed;
  options.stop = [] { return InterruptGuard::signal() != 0; };
  std::optional<Progress> bar(std::in_place, "check", 1000, Progress::Unit::percent);
  options.progress = [&](const std::string& what, double share) { bar->update(std::llround(1000 * share), what); };
  const check::CheckResult result = check::run_check(subject, options);
  bar.reset();
  Json document = make_document("check", 1);
  document.update(described_json(result));
  if (!arguments.out.empty()) {
    write_json(std::filesystem::path(arguments.out) / "check.json", document);
    write_file_atomic(std::filesystem::path(arguments.out) / "report.html",
                      render_report(check::check_report(result, subject.config.data)));
  }
  emit(globals, document, text_of(result, globals.verbose));
  if (options.stop()) throw Interrupted{InterruptGuard::signal()};
  if (const int status = check::exit_status(result); status != 0) throw Ended{status};
}

void add_check(CLI::App& app, Globals& globals) {
  const auto arguments = std::make_shared<CheckArguments>();
  CLI::App* verb = add_verb(app, globals, "check", "Tell before training whether a model will train, at which rate",
                            "plumb check --data data/multi30k --config model.toml --budget 5% --out check",
                            [arguments, &globals] { run(*arguments, globals); });
  verb->add_option("RUN", arguments->run,
                   "A run directory to continue; with --data, a run or a folder of a Hugging Face model to fine-tune")
      ->type_name("RUN");
  verb->add_option("--config", arguments->config, "TOML file of the planned run, as for `plumb train`")
      ->type_name("FILE");
  verb->add_option("--data", arguments->data, "Data directory (default: data.directory in the configuration)")
      ->type_name("DIR");
  verb->add_option(
          "--budget", arguments->budget,
          "What to spend at most: a share of the planned steps (5%), a time (90s, 2min, 1h) or a number of "
          "gradients (250g) (default: 5%, but at least 250 gradients); as much again goes to changes of a run that "
          "does not train")
      ->type_name("BUDGET");
  verb->add_option("--out", arguments->out, "Write check.json and a page with the figures, report.html, here")
      ->type_name("DIR");
  add_set_option(*verb, arguments->set);
  add_json_option(*verb, globals);
  add_seed_option(*verb, globals);
  add_exit_status(*verb, 3, "the run does not train as configured");
  add_exit_status(*verb, 4, "it cannot tell within the budget");
}

const bool kCheckRegistered = register_verb({Heading::measure, 10, add_check});

}  // namespace
}  // namespace plumb::app
