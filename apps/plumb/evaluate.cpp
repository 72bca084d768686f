// plumb evaluate: evaluates a language model on tasks in files, with the metrics of lm-evaluation-harness.
#include "plumb/evaluate/evaluate.h"

#include <fmt/format.h>

#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "checks.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/progress.h"
#include "plumb/base/text.h"
#include "plumb/base/timing.h"
#include "plumb/data/directory.h"
#include "plumb/decode/generate.h"
#include "plumb/evaluate/own_task.h"
#include "plumb/evaluate/results.h"
#include "plumb/interop/import.h"
#include "plumb/interop/opened_model.h"
#include "plumb/parallel/group.h"
#include "plumb/task/direction.h"
#include "plumb/task/task.h"
#include "verb.h"

namespace plumb::app {
namespace {

namespace fs = std::filesystem;

struct EvaluateArguments {
  std::string model;  // a run directory, a checkpoint in one, or a Hugging Face folder
  std::string tasks, split;
  std::string tokenizer;
  std::string out;
  bool samples = false;
  int64_t max_length = 0;
  EvaluateOptions options;
};

/// A model to evaluate, with the tokenizer of its texts.
struct Evaluated {
  OpenedModel opened;
  EvaluatedText kind = EvaluatedText::whole;
  Tokenizer tokenizer;
};

Evaluated open_evaluated(const EvaluateArguments& arguments) {
  OpenedModel opened = open_model(arguments.model);
  const fs::path& run = opened.place.run;
  if (reads_backward(opened.config.task)) {
    throw Error(fmt::format("{}: a backward language model, which predicts what precedes a text", run.string()),
                "give a model with task.language-modeling.direction = \"forward\"");
  }
  (void)generator_of(*opened.model);  // its error says more than that of a tokenizer which it does not have
  const std::string data = arguments.tokenizer.empty() ? opened.config.data : arguments.tokenizer;
  Tokenizer tokenizer = data.empty() ? Tokenizer::from_file(run) : DataDirectory::open(data).target_tokenizer();
  return {.opened = std::move(opened),
          .kind = data.empty() ? EvaluatedText::whole : EvaluatedText::lines,
          .tokenizer = std::move(tokenizer)};
}

/// The context length: --max-length, or else the model's. Throws UsageError if the model cannot read as much.
int64_t length_of(const Generates& model, const fs::path& run, int64_t wanted) {
  if (wanted > model.longest()) {
    throw UsageError(
        fmt::format("--max-length {} is more than the {} tokens that the model can read", wanted, model.longest()));
  }
  return wanted > 0 ? wanted : context_length(model, run);
}

Json settings_json(const EvaluateArguments& arguments, const Evaluated& evaluated, const Globals& globals) {
  const EvaluateOptions& options = arguments.options;
  return {{"checkpoint", evaluated.opened.place.checkpoint.string()},
          {"max_length", options.max_length},
          {"max_tokens", options.max_tokens},
          {"precision", options.scoring.precision},
          {"batch_tokens", options.scoring.batch_tokens},
          {"device", globals.device},
          {"limit", options.limit},
          {"interval_samples", options.resampling.samples},
          {"seed", options.resampling.seed}};
}

/// Prepares the directory for answers, samples and results.
void prepare_output(EvaluateArguments& arguments, const Evaluated& evaluated) {
  if (arguments.out.empty()) {
    if (arguments.samples) throw UsageError("--samples writes files: give their directory with --out");
    return;
  }
  claim_output_directory(arguments.out, "evaluation");
  arguments.options.answers = fs::path(arguments.out) / "answers";
  fs::create_directories(arguments.options.answers);
  arguments.options.model = {{"files", model_digests(evaluated.opened.place)}};
}

/// The metrics of the model's own task on a split of its data, as `plumb train` computes them.
void evaluate_split(const EvaluateArguments& arguments, const Globals& globals) {
  const OpenedModel opened = open_model(arguments.model);
  const RunConfig& config = opened.config;
  const std::string data = arguments.tokenizer.empty() ? config.data : arguments.tokenizer;
  if (data.empty())
    throw UsageError("--split: an imported model has no data of its own", "give a data directory as --tokenizer DIR");
  const std::unique_ptr<Task> task = make_task(config.task, DataDirectory::open(data), config.model.kind);
  ModelConfig model = config.model;
  task->complete(model);
  const std::vector<std::string> labels = labels_of(opened.place.run);
  if (!labels.empty() && labels != task->data().labels()) {
    throw Error(data + ": its labels are not those of the model, in the same order",
                "give the data of the model's training");
  }
  const Sums sums = evaluate(*task, *opened.model, *task->dataset(arguments.split), config.train.batch_tokens,
                             config.train.label_smoothing, Group());
  Json json = make_document("evaluation", 2);
  json["split"] = arguments.split;
  json["model"] = opened.place.run.string();
  std::string text;
  for (const auto& [name, value] : task->metrics(sums)) {
    json["metrics"][name] = finite_or_null(value);
    text += fmt::format("{}\t{:.6g}\n", name, value);
  }
  emit(globals, json, text);
}

void evaluate_model(EvaluateArguments arguments, const Globals& globals) {
  if (!arguments.split.empty()) return evaluate_split(arguments, globals);
  if (arguments.tasks.empty())
    throw UsageError("nothing to evaluate on", "give files of tasks as --tasks, or a split of the data as --split");
  EvaluateOptions& options = arguments.options;
  options.resampling.seed = globals.seed;
  std::vector<EvaluationTask> tasks = load_own_tasks(split(arguments.tasks, ','));
  const Evaluated evaluated = open_evaluated(arguments);
  const fs::path& run = evaluated.opened.place.run;
  Generates& model = generator_of(*evaluated.opened.model);
  options.max_length = length_of(model, run, arguments.max_length);
  options.ends = ends_of_texts(run);
  options.repetition_penalty = stated_repetition_penalty(run);
  prepare_output(arguments, evaluated);

  const auto date = static_cast<int64_t>(std::time(nullptr));
  const Stopwatch watch;
  const TextEncoder encoder(evaluated.tokenizer, evaluated.kind);
  std::vector<TaskResult> results;
  for (EvaluationTask& task : tasks) results.push_back(evaluate_task(model, encoder, std::move(task), options));

  Json json = make_document("evaluation", 2);
  json.update(evaluation_json(results));
  json["settings"] = settings_json(arguments, evaluated, globals);
  json["model"] = run.string();
  json["date"] = date;
  json["seconds"] = watch.seconds();
  if (!arguments.out.empty()) {
    write_json(fs::path(arguments.out) / "results.json", json);
    for (const TaskResult& result : results) {
      if (arguments.samples)
        write_file_atomic(fs::path(arguments.out) / ("samples_" + result.task.name + ".jsonl"), samples_text(result));
    }
  }
  emit(globals, json, evaluation_text(results));
  if (verbosity() == Verbosity::verbose) say(fmt::format("evaluated in {}", duration(watch.seconds())));
}

void add_evaluate(CLI::App& app, Globals& globals) {
  auto arguments = std::make_shared<EvaluateArguments>();
  CLI::App* verb = add_verb(app, globals, "evaluate", "Evaluate a language model on tasks of your own",
                            "plumb evaluate runs/gpt2 --tasks questions.jsonl,texts.jsonl --limit 500",
                            [arguments, &globals] { evaluate_model(*arguments, globals); });
  add_json_option(*verb, globals);
  add_seed_option(*verb, globals);
  EvaluateOptions& options = arguments->options;
  verb->add_option("MODEL", arguments->model, kModelHelp)->type_name("RUN_OR_FOLDER")->required();
  CLI::Option* tasks =
      verb->add_option("--tasks", arguments->tasks,
                       "Files of tasks (*.jsonl), separated by commas; benchmarks: `python -m plumb.harness`")
          ->type_name("FILE,...");
  verb->add_option("--split", arguments->split,
                   "Instead of tasks, the loss and other metrics on this split of the data, as in training")
      ->type_name("NAME")
      ->excludes(tasks);
  verb->add_option(
          "--tokenizer", arguments->tokenizer,
          "Data directory with the tokenizer, and the split (default: the run's, or the tokenizer of an imported "
          "model)")
      ->type_name("DIR");
  verb->add_option("--limit", options.limit, "Items of each task; 0: all")->check(not_negative());
  verb->add_option("--max-length", arguments->max_length,
                   "Context length in tokens; 0: the model's number of positions or the length in its config.json, "
                   "else 2048")
      ->check(not_negative());
  verb->add_option("--max-tokens", options.max_tokens, "Maximum tokens of a generated answer")->check(between(1, 1e9));
  verb->add_option("--out", arguments->out,
                   "Directory for results and answers; an interrupted evaluation resumes from it")
      ->type_name("DIR");
  verb->add_flag("--samples", arguments->samples, "Also write every prompt and its answers to --out");
  verb->add_option("--precision", options.scoring.precision, "Precision of matrix products")
      ->check(CLI::IsMember({"float32", "bf16", "int8"}));
  verb->add_option("--batch-tokens", options.scoring.batch_tokens, "Tokens per batch")->check(between(1, 1e9));
  verb->add_option("--interval-samples", options.resampling.samples,
                   "Bootstrap samples of the 95% intervals; 0: no intervals")
      ->check(between(0, 10'000'000));
}

const bool kEvaluateRegistered = register_verb({Heading::models, 120, add_evaluate});

}  // namespace
}  // namespace plumb::app
