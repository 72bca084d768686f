// plumb judge: is one arm of runs better than another, and how sure is that?
#include "plumb/judge/judge.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "checks.h"
#include "plumb/base/json_fields.h"
#include "plumb/base/terminal.h"
#include "plumb/judge/ledger.h"
#include "verb.h"

namespace plumb::app {
namespace {

struct JudgeArguments {
  std::vector<std::string> places;
  std::vector<std::string> where, lines;
  std::string better;
  std::string baseline;
  ArmOptions options;
  ArmRule rule;
  std::string ledger;
};

constexpr int kNotBetter = 3;
constexpr int kUndecided = 4;

/// The answer about the other of two arms; its status is 0 if that is kept.
[[noreturn]] void ask(const JudgeArguments& arguments, const RunArms& arms, const Globals& globals) {
  if (arms.arms.size() != 2 || arms.arms[0].sweep.points.size() + arms.arms[1].sweep.points.size() != 2)
    throw UsageError("the gate compares two arms, each with one learning rate", "BASE=PLACE CANDIDATE=PLACE");
  const size_t base = arms.arms[1].name == arguments.baseline ? 1 : 0;
  if (!arguments.baseline.empty() && arms.arms[base].name != arguments.baseline)
    throw UsageError(fmt::format("no arm is called \"{}\"", arguments.baseline));
  GateRequest request{.base = arms.arms[base].name, .candidate = arms.arms[1 - base].name, .metric = arms.metric};
  request.best = request.base;
  request.larger_is_better = arms.larger_is_better;
  if (arguments.rule.margin > 0) request.margin = arguments.rule.margin;
  if (arguments.rule.planned_seeds > 0) request.seeds = arguments.rule.planned_seeds;
  for (const RunArm* arm : {&arms.arms[base], &arms.arms[1 - base]}) {
    for (size_t i = 0; i < arm->seeds[0].size(); ++i) {
      const double loss = arm->sweep.points[0].losses[i];
      const double value = loss >= arms.failed_at ? kNoLimit : arms.larger_is_better ? -loss : loss;
      request.runs.push_back({arm->name, arm->seeds[0][i], value});
    }
  }
  std::vector<std::string> notes = arms.notes;
  const GateAnswer answer = ask_gate(arguments.ledger, request, notes);
  const int status = answer.decision == "keep" ? 0 : answer.next.empty() ? kNotBetter : kUndecided;
  Json document = make_document("gate", 1);
  document.update(described_json(answer));
  document["exit_status"] = status;
  document["notes"] = notes;
  std::string text = gate_text(answer);
  for (const std::string& note : notes) text += "note: " + printable(note) + "\n";
  emit(globals, document, text);
  throw Ended{status};
}

void judge(JudgeArguments arguments, const Globals& globals) {
  for (const std::string& condition : arguments.where) {
    const size_t equals = condition.find('=');
    if (equals == std::string::npos) throw UsageError("--where needs KEY=VALUE: " + condition);
    arguments.options.where.emplace_back(condition.substr(0, equals), condition.substr(equals + 1));
  }
  for (const std::string& line : arguments.lines) arguments.options.lines.emplace_back(line);
  if (!arguments.better.empty()) arguments.options.larger_is_better = arguments.better == "more";
  const RunArms arms = gather_arms(arm_places(arguments.places), arguments.options);
  if (!arguments.ledger.empty()) ask(arguments, arms, globals);
  const ArmVerdicts verdicts = judge_arms(arms, arguments.rule, arguments.options.at, arguments.baseline);
  Json document = make_document("verdicts", 1);
  document.update(described_json(verdicts));
  document["exit_status"] = exit_status(verdicts);
  emit(globals, document, verdicts_text(verdicts));
  if (const int status = exit_status(verdicts); status != 0) throw Ended{status};
}

CLI::Option* add_list_option(CLI::App& verb, const char* name, std::vector<std::string>& values, const char* help) {
  return verb.add_option(name, values, help)->delimiter(',')->allow_extra_args(false);
}

void add_judge(CLI::App& app, Globals& globals) {
  const auto arguments = std::make_shared<JudgeArguments>();
  CLI::App* verb =
      add_verb(app, globals, "judge", "Tell whether one arm of runs is better than another, and how surely",
               "plumb judge pre-ln='runs/pre-*' post-ln='runs/post-*' --metric valid_loss --margin 0.05",
               [arguments, &globals] { judge(*arguments, globals); });
  ArmOptions& options = arguments->options;
  ArmRule& rule = arguments->rule;
  verb->add_option("PLACE", arguments->places,
                   "Runs, as NAME=PLACE for those of an arm: directories of runs, TensorBoard's event files, or tables "
                   "(.csv, .tsv, .jsonl, .json) or other logs. The first arm is the baseline")
      ->type_name("[NAME=]PLACE")
      ->required();
  add_list_option(*verb, "--by", options.by, "Settings or columns whose values make the arms, separated by commas")
      ->type_name("KEY,KEY");
  add_list_option(*verb, "--where", arguments->where, "Only runs with these settings")->type_name("KEY=VALUE,...");
  verb->add_option("--baseline", arguments->baseline, "The arm that others are compared with (default: the first)")
      ->type_name("NAME");
  verb->add_option("--metric", options.metric, "What to compare (default: a validation loss, else the loss)")
      ->type_name("NAME");
  verb->add_option("--better", arguments->better, "Whether more or less of the metric is better (default: by its name)")
      ->check(CLI::IsMember({"more", "less"}));
  verb->add_option("--at", options.at, "Where in its history: last, best, or a step")->type_name("last|best|STEP");
  verb->add_option("--margin", rule.margin, "Only a difference of more than this counts")->check(not_negative());
  CLI::Option* by_seed = verb->add_flag("--by-seed", rule.by_seed, "Form differences between runs of the same seed");
  verb->add_option("--looks", rule.planned_seeds,
                   "The largest number of seeds planned for each arm: allows a look after each, from the third")
      ->check(between(3, 50));
  verb->add_option(
          "--gate", arguments->ledger,
          "Say whether to keep the second arm, a candidate of a series that this file keeps: 0 keep, 3 reject, "
          "4 more seeds")
      ->type_name("LEDGER")
      ->excludes(by_seed);
  verb->add_option("--seed-key", options.seed, "The setting or column that is a run's seed (default: called so)")
      ->type_name("KEY");
  verb->add_option("--line", arguments->lines,
                   "How a line of a text log reads, {} for what does not matter; may be repeated: "
                   "'step {step}: train loss {}, val loss {val_loss}'")
      ->type_name("PATTERN")
      ->allow_extra_args(false);
  verb->add_option("--rate-key", options.rate, "The setting or column that is its learning rate (default: called so)")
      ->type_name("KEY");
  add_json_option(*verb, globals);
  add_exit_status(*verb, kNotBetter, "no arm is better, or with --gate the candidate is to be rejected");
  add_exit_status(*verb, kUndecided, "nothing is decided, or with --gate more seeds are needed");
}

const bool kJudgeRegistered = register_verb({Heading::measure, 80, add_judge});

}  // namespace
}  // namespace plumb::app
