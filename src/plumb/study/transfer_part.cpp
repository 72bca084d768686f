// Transfer: pretraining, then fine-tuning on the task's text and its labels, by ULMFiT's recipe and variants that
// change one thing (Howard & Ruder 2018, arXiv 1801.06146, section 5), for recurrent models and Transformers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <set>

#include "plumb/analysis/sweep.h"
#include "plumb/base/error.h"
#include "plumb/base/text.h"
#include "plumb/model/kind.h"
#include "plumb/study/transfer_stages.h"

namespace plumb {

void describe(Fields& field, TransferModel& model) {
  field("kind", model.kind, "`awd-lstm`, `decoder` or `encoder`", name_in(model_kinds()));
  field("initialization", model.initialization, "as in `[model]`; empty: the same");
  field("pretraining_rate", model.pretraining_rate, "learning rate of pretraining; 0: `train.learning_rate`",
        at_least(0));
  field("text_rate", model.text_rate, "learning rate on the task's text", above(0));
  field("learning_rates", model.learning_rates, "learning rates of the classifier, over which every arm is swept",
        above(0).each_once());
}

void describe(Fields& field, TransferStudy& part) {
  field("labels", part.labels,
        "a data directory made by `plumb data labels`, whose text is encoded anew; if empty, `train` and `valid`");
  field("train", part.train, "a file with lines of label, TAB, text");
  field("valid", part.valid, "the same for validation; if empty, held out from `train`");
  field("length_limit", part.length_limit, "tokens per example; longer ones are truncated", count_from(1));
  std::vector<std::string> recipes;
  for (const TransferRecipe& recipe : transfer_recipes()) recipes.push_back(recipe.name);
  field("arms", part.arms, "the recipes", one_of(recipes).each_once());
  field("examples", part.examples,
        "numbers of labeled examples on which `scratch` and the usual recipe (`complete`, or `all-at-once` for "
        "Transformers) are also trained, besides the full set; at least one per label, drawn anew for each seed",
        count_from(2).no_two_equal());
  field("seeds", part.seeds, "of the classifiers; language models are trained once", count_from(1));
  field("rate_divisor", part.rate_divisor,
        "of arms with discriminative rates, and on the task's text, as in `[finetune]`", at_least(1));
  field("text_epochs", part.text_epochs, "over the task's text; 0: the classifier begins with the pretrained model",
        count_from(0));
  field("epochs", part.epochs, "over all labels", count_from(1));
  field("few_epochs", part.few_epochs, "over fewer labels", count_from(1));
  field("batch_tokens", part.batch_tokens, "`train.batch_tokens` of all stages but pretraining", count_from(1));
  field.sections("model", part.models);
}

namespace {

void check(const StudyConfig&, const TransferStudy& part) {
  if (part.labels.empty() == part.train.empty()) {
    throw Error("[transfer] needs exactly one source of labeled text",
                "set transfer.labels, a data directory, or transfer.train, a file with lines of label, TAB, text");
  }
  if (part.train.empty() && !part.valid.empty())
    throw Error("transfer.valid belongs to transfer.train",
                "leave it out: the directory of transfer.labels has a split");
  if (part.models.empty()) throw Error("[transfer] has no model", "add [[transfer.model]] with its kind");
  std::set<std::string> kinds;
  for (const TransferModel& model : part.models) {
    check_rates("transfer.model.learning_rates", model.learning_rates);
    if (!kinds.insert(model.kind).second) throw Error(fmt::format("transfer.model.kind lists {} twice", model.kind));
  }
}

/// The smallest difference in error that counts, in percentage points.
constexpr double kClearPoints = 0.5;

struct ClassifierRun {
  double learning_rate = 0;
  int64_t seed = 0;
  PlannedStage stage;

  /// Empty if an earlier stage diverged.
  [[nodiscard]] const std::optional<TrainResult>& result() const { return *stage; }
  [[nodiscard]] bool diverged() const { return !result() || result()->outcome == RunOutcome::diverged; }
  /// The share of validation examples with a wrong label, in percent, at the end; infinite if the run diverged.
  [[nodiscard]] double error() const {
    if (diverged()) return std::numeric_limits<double>::infinity();
    return 100 * (1 - result()->metrics.get("accuracy").value_or(std::nan("")));
  }
};

struct TransferredArm {
  TransferArm arm;
  int64_t labels = 0;
  std::vector<ClassifierRun> runs;
  Sweep sweep{};  // of the error, once the runs are trained

  [[nodiscard]] Interval error() const { return judge(sweep.best().losses, {}).effect; }
};

/// Every recipe with all labels; with fewer, only "scratch" and the usual recipe. If text_epochs is 0, "no-text" would
/// equal the complete recipe, and is left out.
std::vector<TransferArm> transfer_arms(const TransferStudy& part) {
  std::vector<TransferArm> arms;
  for (TransferModel model : part.models) {
    model.learning_rates = sorted(model.learning_rates);
    for (const std::string& name : part.arms) {
      if (name != "no-text" || part.text_epochs > 0) arms.push_back({model, transfer_recipe(name), 0});
    }
    for (const int64_t examples : part.examples) {
      for (const std::string& name : part.arms) {
        if (name == "scratch" || name == usual_recipe(model.kind, part.arms))
          arms.push_back({model, transfer_recipe(name), examples});
      }
    }
  }
  return arms;
}

/// The errors of an arm's runs, by learning rate.
Sweep sweep_of(const TransferredArm& arm) {
  Sweep sweep;
  for (const ClassifierRun& run : arm.runs) {
    if (sweep.points.empty() || sweep.points.back().learning_rate != run.learning_rate)
      sweep.points.push_back({run.learning_rate, {}});
    sweep.points.back().losses.push_back(run.error());
  }
  return sweep;
}

const TransferredArm* find_arm(const std::vector<TransferredArm>& arms, const std::string& kind,
                               const std::string& recipe, int64_t examples = 0) {
  const auto found = std::find_if(arms.begin(), arms.end(), [&](const TransferredArm& each) {
    return each.arm.model.kind == kind && each.arm.recipe.name == recipe && each.arm.examples == examples;
  });
  return found == arms.end() ? nullptr : &*found;
}

std::string recipes_figure_id(const std::string& kind) { return "transfer_recipes_" + kind; }

/// The arms of one kind of model with all labels.
std::vector<const TransferredArm*> with_all_labels(const std::vector<TransferredArm>& arms, const std::string& kind) {
  std::vector<const TransferredArm*> found;
  for (const TransferredArm& each : arms) {
    if (each.arm.model.kind == kind && each.arm.examples == 0) found.push_back(&each);
  }
  return found;
}

Figure recipes_figure(const std::vector<TransferredArm>& arms, const std::string& kind, int64_t seeds) {
  Figure figure{recipes_figure_id(kind),
                fmt::format("Error by recipe of fine-tuning, {}", kind),
                fmt::format("Share of validation examples with a wrong label, with all labels, each recipe at its best "
                            "learning rate; {} of the classifier, of one pretrained model.",
                            seeds_in_words(seeds)),
                "bar",
                {"recipe"},
                {"error (%)"}};
  Series& bars = figure.add(kind, kind);
  for (const TransferredArm* each : with_all_labels(arms, kind))
    bars.point(each->arm.recipe.description, each->error());
  return figure;
}

Figure rates_figure(const std::vector<TransferredArm>& arms, const std::string& kind) {
  Figure figure{"transfer_rates_" + kind,
                fmt::format("Error by learning rate, {}", kind),
                "With all labels: means over the seeds that finished.",
                "line",
                {"learning rate", true},
                {"error (%)"}};
  for (const TransferredArm* each : with_all_labels(arms, kind)) {
    Series& line = figure.add(each->arm.recipe.description, each->arm.recipe.name);
    for (const auto& [rate, errors] : each->sweep.points) line.point(rate, judge(errors, {}).effect.mean);
  }
  return figure;
}

Figure labels_figure(const std::vector<TransferredArm>& arms, const TransferStudy& part) {
  Figure figure{"transfer_labels",
                "Error by number of labels",
                fmt::format("Each arm at its best learning rate; {}, each with other labels. Dashed: from scratch.",
                            seeds_in_words(part.seeds)),
                "line",
                {"labels", true},
                {"error (%)"}};
  std::vector<int64_t> counts = sorted(part.examples);
  counts.push_back(0);  // all
  for (const TransferModel& model : part.models) {
    for (const std::string& recipe : {std::string("scratch"), usual_recipe(model.kind, part.arms)}) {
      const bool scratch = recipe == "scratch";
      Series line{fmt::format("{}, {}", model.kind, scratch ? "from scratch" : "pretrained"), model.kind};
      line.style = scratch ? "dashed" : "solid";
      for (const int64_t examples : counts) {
        if (const TransferredArm* found = find_arm(arms, model.kind, recipe, examples))
          line.point(found->labels, found->error());
      }
      if (!line.x.empty()) figure.series.push_back(line);
    }
  }
  return figure;
}

/// Cells of a table: outcome, steps and seconds of a stage.
struct StageCells {
  explicit StageCells(const std::optional<TrainResult>& result) {
    if (!result) return;
    outcome = to_string(result->outcome);
    steps = result->steps;
    seconds = result->seconds;
  }
  Json outcome = "an earlier stage diverged", steps, seconds;
};

Table classifiers_table(const std::vector<TransferredArm>& arms) {
  Table table{
      "transfer_runs",
      "Classifiers",
      "On the validation split at the end. F1 is macro-averaged; MCC is Matthews' correlation coefficient.",
      {"model", "recipe", "labels", "learning rate", "seed", "outcome", "steps", "error (%)", "F1", "MCC", "seconds"}};
  for (const TransferredArm& each : arms) {
    for (const ClassifierRun& run : each.runs) {
      const auto metric = [&](const char* name) {
        return run.diverged() ? std::nan("") : run.result()->metrics.get(name).value_or(std::nan(""));
      };
      const StageCells cells(run.result());
      table.row(each.arm.model.kind, each.arm.recipe.description, each.labels, run.learning_rate, run.seed,
                cells.outcome, cells.steps, run.error(), metric("f1"), metric("mcc"), cells.seconds);
    }
  }
  return table;
}

Table recipes_table(const std::vector<TransferredArm>& arms) {
  Table table{
      "transfer_recipes",
      "Recipes at their best learning rates",
      "Error in percent, and its difference from the complete recipe's with the same seed and labels, in percentage "
      "points; means with 95% intervals.",
      {"model", "recipe", "labels", "best learning rate", "error", "low", "high", "difference", "difference low",
       "difference high", "note"}};
  for (const TransferredArm& each : arms) {
    const TransferredArm* complete = find_arm(arms, each.arm.model.kind, "complete", each.arm.examples);
    const double none = std::nan("");
    Judgment difference{.effect = {none, none, none}, .reason = each.sweep.open_end()};
    if (complete != nullptr && complete != &each)
      difference = judge_best(each.sweep, complete->sweep, Region::above(kClearPoints, 0));
    table.row(each.arm.model.kind, each.arm.recipe.description, each.labels, each.sweep.best().learning_rate,
              each.error(), difference.effect, difference.reason);
  }
  return table;
}

/// A language model that classifiers start from.
struct LanguageModelStage {
  std::string kind;
  const char* stage;
  PlannedStage run;
};

Table language_models_table(const std::vector<LanguageModelStage>& stages) {
  Table table{
      "transfer_language_models",
      "Language models",
      "On the validation split of each stage's text, in nats per predicted token: for an encoder, a masked one.",
      {"model", "stage", "outcome", "steps", "validation loss", "perplexity", "seconds"}};
  for (const auto& [kind, stage, run] : stages) {
    const StageCells cells(*run);
    const double loss = *run ? (*run)->valid_nll().value_or(std::nan("")) : std::nan("");
    table.row(kind, stage, cells.outcome, cells.steps, loss, std::exp(loss), cells.seconds);
  }
  return table;
}

/// The error of each recipe, by kind of model and number of labels; to claims, recipes are arms.
void add_quantities(PartPlan& plan, const StudyContext& context, const std::shared_ptr<const TransferStages>& stages,
                    const TransferStudy& part, const std::vector<TransferredArm>& arms) {
  const auto recipes = std::make_shared<std::vector<StudyArm>>();
  for (const std::string& name : part.arms) {
    StudyArm& arm = recipes->emplace_back(context.arms.front());
    arm.name = arm.axes["transfer.arm"] = arm.settings["transfer.arm"] = name;
  }
  plan.arms = recipes;
  for (const TransferredArm& each : arms) {
    const std::string& kind = each.arm.model.kind;
    const int64_t examples = each.arm.examples;
    Quantity& added = plan.quantity(
        "classification_error_" + kind + (examples == 0 ? "" : fmt::format("_labels{}", examples)),
        fmt::format("error at the best learning rate (percentage points), {}, {} labels", kind,
                    with_thousands(each.labels)),
        Scale::linear, each.arm.recipe.name, [each] { return sweep_of(each).best().losses; },
        doubt_of_sweeps([arms, kind, examples](const std::string& recipe) {
          return sweep_of(*find_arm(arms, kind, recipe, examples));
        }));
    added.in_comparison_table = false;
    added.untestable = [&context] { return training_not_testable(context); };
    added.figure = examples == 0 ? recipes_figure_id(kind) : "transfer_labels";
    added.telling = {fmt::format("error in percent with {} labels, {}", with_thousands(each.labels), kind)};
    added.setting = [&context, stages, part, each](const std::string&) {
      const std::unique_ptr<Model> model = make_model(stages->pretrained_model(each.arm.model));
      return fmt::format("{} of {} parameters, pretrained on {}; {} labels of {}", each.arm.model.kind,
                         with_thousands(model->parameters().count()), corpus_of(context), with_thousands(each.labels),
                         file_names({part.labels.empty() ? part.train : part.labels}));
    };
  }
}

PartResult report_transfer(const TransferStudy& part, const std::vector<LanguageModelStage>& language_models,
                           std::vector<TransferredArm> arms) {
  for (TransferredArm& arm : arms) arm.sweep = sweep_of(arm);
  PartResult result;
  for (const TransferModel& model : part.models) {
    result.figures.push_back(recipes_figure(arms, model.kind, part.seeds));
    if (model.learning_rates.size() > 1) result.figures.push_back(rates_figure(arms, model.kind));
  }
  if (!part.examples.empty()) result.figures.push_back(labels_figure(arms, part));
  result.tables = {recipes_table(arms), language_models_table(language_models), classifiers_table(arms)};
  return result;
}

PartPlan plan(StudyContext& context, const TransferStudy& part) {
  PartPlan plan(context);
  const auto stages = std::make_shared<const TransferStages>(context, part);
  std::vector<LanguageModelStage> language_models;
  for (const TransferModel& model : part.models) {
    language_models.push_back({model.kind, "pretraining", planned_stage(plan, stages->pretraining(model))});
    if (part.text_epochs > 0)
      language_models.push_back({model.kind, "the task's text", planned_stage(plan, stages->on_text(model))});
  }
  std::vector<TransferredArm> arms;
  for (const TransferArm& arm : transfer_arms(part)) {
    TransferredArm& planned = arms.emplace_back(TransferredArm{arm, stages->labels_of(arm), {}});
    for (const double rate : arm.model.learning_rates) {
      for (int64_t seed = 0; seed < part.seeds; ++seed) {
        planned.runs.push_back(
            {rate, context.config.study.seed + seed, planned_stage(plan, stages->classifier(arm, rate, seed))});
      }
    }
  }
  add_quantities(plan, context, stages, part, arms);
  plan.report = [part, language_models, arms] { return report_transfer(part, language_models, arms); };
  return plan;
}

[[maybe_unused]] const bool kTransfer = add_part<TransferStudy>(
    "transfer", "pretraining, then fine-tuning on a task's text and its labels, by recipes that change one thing",
    "Howard & Ruder 2018, arXiv 1801.06146", {.order = 19, .plan = plan, .trains = kTrainsAlways, .check = check});

}  // namespace
}  // namespace plumb
