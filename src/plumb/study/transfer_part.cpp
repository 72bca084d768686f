// Transfer: pretraining, then fine-tuning on the task's text and its labels, by ULMFiT's recipe and variants that
// change one thing (Howard & Ruder 2018, arXiv 1801.06146, section 5), for recurrent models and Transformers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "plumb/analysis/sweep.h"
#include "plumb/base/text.h"
#include "plumb/study/transfer_stages.h"

namespace plumb {
namespace {

/// The smallest difference in error that counts, in percentage points.
constexpr double kClearPoints = 0.5;

/// A trained classifier; without a result if an earlier stage diverged.
struct ClassifierRun {
  double learning_rate = 0;
  int64_t seed = 0;
  std::optional<TrainResult> result;

  [[nodiscard]] bool diverged() const { return !result || result->outcome == "diverged"; }
  /// The share of validation examples with a wrong label, in percent, at the end; infinite if the run diverged.
  [[nodiscard]] double error() const {
    if (diverged()) return std::numeric_limits<double>::infinity();
    return 100 * (1 - result->metrics.get("accuracy").value_or(std::nan("")));
  }
};

struct TransferredArm {
  TransferArm arm;
  int64_t labels = 0;
  std::vector<ClassifierRun> runs;
  Sweep sweep;  // of the error

  [[nodiscard]] Interval error() const { return judge(sweep.best().losses, {}).effect; }
};

/// Every recipe with all labels; with fewer, only "scratch" and the usual recipe. If text_epochs is 0, "no-text" would
/// equal the complete recipe, and is left out.
std::vector<TransferArm> transfer_arms(const TransferStudy& part) {
  std::vector<TransferArm> arms;
  for (TransferModel model : part.models) {
    std::sort(model.learning_rates.begin(), model.learning_rates.end());
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

TransferredArm transferred(StudyContext& context, const TransferStages& stages, const TransferStudy& part,
                           const TransferArm& arm) {
  TransferredArm trained{arm, stages.labels_of(arm), {}, {}};
  for (const double learning_rate : arm.model.learning_rates) {
    trained.sweep.points.push_back({learning_rate, {}});
    for (int64_t seed = 0; seed < part.seeds; ++seed) {
      const Json result = context.measurements.get(stages.classifier(arm, learning_rate, seed).measurement);
      ClassifierRun run{learning_rate, context.config.study.seed + seed, {}};
      if (result.is_object()) run.result = TrainResult::from_json(result);
      trained.sweep.points.back().losses.push_back(run.error());
      trained.runs.push_back(std::move(run));
    }
  }
  return trained;
}

const TransferredArm* find_arm(const std::vector<TransferredArm>& arms, const std::string& kind,
                               const std::string& recipe, int64_t examples = 0) {
  const auto found = std::find_if(arms.begin(), arms.end(), [&](const TransferredArm& each) {
    return each.arm.model.kind == kind && each.arm.recipe.name == recipe && each.arm.examples == examples;
  });
  return found == arms.end() ? nullptr : &*found;
}

std::string recipes_figure_id(const std::string& kind) { return "transfer_recipes_" + kind; }

/// What means in captions are taken over.
std::string over_seeds_of(int64_t seeds) {
  return seeds == 1
             ? std::string("one run, no interval")
             : fmt::format("means over {} seeds of the classifier, of one pretrained model, with 95% intervals", seeds);
}

Figure recipes_figure(const std::vector<TransferredArm>& arms, const std::string& kind, int64_t seeds) {
  Figure figure{recipes_figure_id(kind), fmt::format("Error by recipe of fine-tuning, {}", kind)};
  figure.caption = fmt::format(
      "Share of validation examples with a wrong label after training with all labels, each recipe at its best "
      "learning rate; {}. Other validation examples would move all recipes together.",
      over_seeds_of(seeds));
  figure.kind = "bar";
  figure.x = {"recipe"};
  figure.y = {"error (%)"};
  Series series{kind, kind};
  for (const TransferredArm& each : arms) {
    if (each.arm.model.kind != kind || each.arm.examples > 0) continue;
    const Interval error = each.error();
    series.point(each.arm.recipe.description, error.mean, error.low, error.high);
  }
  figure.series.push_back(series);
  return figure;
}

Figure rates_figure(const std::vector<TransferredArm>& arms, const std::string& kind) {
  Figure figure{"transfer_rates_" + kind, fmt::format("Error by learning rate, {}", kind)};
  figure.caption = "Of the classifier, with all labels: means over the seeds that finished.";
  figure.kind = "line";
  figure.x = {"learning rate", true};
  figure.y = {"error (%)"};
  for (const TransferredArm& each : arms) {
    if (each.arm.model.kind != kind || each.arm.examples > 0) continue;
    Series series{each.arm.recipe.description, each.arm.recipe.name};
    for (const Sweep::Point& point : each.sweep.points) {
      std::vector<double> finished = point.losses;
      std::erase_if(finished, [](double error) { return !std::isfinite(error); });
      series.point(point.learning_rate, finished.empty() ? std::nan("") : confidence_interval(finished).mean);
    }
    figure.series.push_back(series);
  }
  return figure;
}

Figure labels_figure(const std::vector<TransferredArm>& arms, const TransferStudy& part) {
  Figure figure{"transfer_labels", "Error by number of labels"};
  figure.caption = fmt::format(
      "Share of validation examples with a wrong label, each arm at its best learning rate; {}. Each seed has other "
      "labels. Dashed: from scratch.",
      over_seeds_of(part.seeds));
  figure.kind = "line";
  figure.x = {"labels", true};
  figure.y = {"error (%)"};
  std::vector<int64_t> counts = part.examples;
  std::sort(counts.begin(), counts.end());
  counts.push_back(0);  // all
  for (const TransferModel& model : part.models) {
    for (const std::string& recipe : {std::string("scratch"), usual_recipe(model.kind, part.arms)}) {
      Series series{fmt::format("{}, {}", model.kind, recipe == "scratch" ? "from scratch" : "pretrained"), model.kind};
      series.style = recipe == "scratch" ? "dashed" : "solid";
      for (const int64_t examples : counts) {
        const TransferredArm* found = find_arm(arms, model.kind, recipe, examples);
        if (found == nullptr) continue;
        const Interval error = found->error();
        series.point(found->labels, error.mean, error.low, error.high);
      }
      if (!series.x.empty()) figure.series.push_back(series);
    }
  }
  return figure;
}

Table classifiers_table(const std::vector<TransferredArm>& arms) {
  Table table{
      "transfer_runs",
      "Classifiers",
      "Run by run, on the validation split at the end. F1 is macro-averaged; MCC is Matthews' correlation "
      "coefficient.",
      {"model", "recipe", "labels", "learning rate", "seed", "outcome", "steps", "error (%)", "F1", "MCC", "seconds"}};
  for (const TransferredArm& each : arms) {
    for (const ClassifierRun& run : each.runs) {
      const auto metric = [&](const char* name) {
        return run.diverged() ? Json() : finite_or_null(run.result->metrics.get(name).value_or(std::nan("")));
      };
      table.rows.push_back({each.arm.model.kind, each.arm.recipe.description, each.labels, run.learning_rate, run.seed,
                            run.result ? run.result->outcome : "an earlier stage diverged",
                            run.result ? Json(run.result->steps) : Json(), finite_or_null(run.error()), metric("f1"),
                            metric("mcc"), run.result ? finite_or_null(run.result->seconds) : Json()});
    }
  }
  return table;
}

Table recipes_table(const std::vector<TransferredArm>& arms) {
  Table table{
      "transfer_recipes",
      "Recipes at their best learning rates",
      "Error in percent, and how much it differs from that of the complete recipe with the same seed and labels, "
      "in percentage points; means with 95% intervals. The note says why a comparison decides nothing.",
      {"model", "recipe", "labels", "best learning rate", "error", "low", "high", "difference", "difference low",
       "difference high", "note"}};
  for (const TransferredArm& each : arms) {
    const Interval error = each.error();
    Json row = {each.arm.model.kind,
                each.arm.recipe.description,
                each.labels,
                each.sweep.best().learning_rate,
                finite_or_null(error.mean),
                finite_or_null(error.low),
                finite_or_null(error.high)};
    const TransferredArm* complete = find_arm(arms, each.arm.model.kind, "complete", each.arm.examples);
    if (complete == nullptr || complete == &each) {
      for (int i = 0; i < 3; ++i) row.push_back(Json());
      row.push_back(each.sweep.open_end());
    } else {
      const Judgment difference = judge_best(each.sweep, complete->sweep, Region::above(kClearPoints, 0));
      for (const double value : {difference.effect.mean, difference.effect.low, difference.effect.high})
        row.push_back(finite_or_null(value));
      row.push_back(difference.reason);
    }
    table.rows.push_back(row);
  }
  return table;
}

/// Adds the row of a language model that classifiers start from.
void add_language_model(StudyContext& context, const std::string& kind, const char* stage, const StageRun& run,
                        Table& table) {
  const Json found = context.measurements.get(run.measurement);
  if (!found.is_object()) {
    table.rows.push_back({kind, stage, "an earlier stage diverged", nullptr, nullptr, nullptr, nullptr});
    return;
  }
  const TrainResult result = TrainResult::from_json(found);
  const double loss = result.valid_nll().value_or(std::nan(""));
  table.rows.push_back({kind, stage, result.outcome, result.steps, finite_or_null(loss), finite_or_null(std::exp(loss)),
                        finite_or_null(result.seconds)});
}

Table language_models_table(StudyContext& context, const TransferStages& stages, const TransferStudy& part) {
  Table table{
      "transfer_language_models",
      "Language models",
      "On the validation split of the text of each stage: in nats per predicted token, which for an encoder is a "
      "masked one.",
      {"model", "stage", "outcome", "steps", "validation loss", "perplexity", "seconds"}};
  for (const TransferModel& model : part.models) {
    add_language_model(context, model.kind, "pretraining", stages.pretraining(model), table);
    if (part.text_epochs > 0) add_language_model(context, model.kind, "the task's text", stages.on_text(model), table);
  }
  return table;
}

/// A claim that an arm has a larger error than the complete recipe or, for a Transformer, that it does not.
struct RecipeClaim {
  bool recurrent;
  const char* recipe;
  const char* id;
  const char* claim;
  const char* source;
};
constexpr RecipeClaim kRecipeClaims[] = {
    {true, "no-unfreezing", "unfreezing", "Gradual unfreezing helps a recurrent model", "Howard & Ruder 2018, Table 7"},
    {true, "no-discriminative", "discriminative", "Discriminative rates help a recurrent model",
     "Howard & Ruder 2018, Table 7"},
    {true, "no-slanted", "slanted", "The slanted triangular schedule helps a recurrent model",
     "Howard & Ruder 2018, Table 7"},
    {true, "last-layer", "last_layer", "Training the last layer alone is worse than the complete recipe",
     "Howard & Ruder 2018, Table 7"},
    {true, "no-text", "text", "Fine-tuning on the task's text before its labels lowers the error",
     "Howard & Ruder 2018, Table 6"},
    {false, "no-unfreezing", "unfreezing", "Gradual unfreezing does not help a Transformer",
     "Devlin et al. 2019, section 3.2, where all layers are trained at once"},
};

/// The setting of a verdict, in words.
std::string transfer_setting(const StudyContext& context, const TransferStages& stages, const TransferStudy& part,
                             const TransferredArm& arm) {
  const int64_t parameters = make_model(stages.pretrained_model(arm.arm.model))->parameters().count();
  return fmt::format("{} of {} parameters, pretrained on {}; {} labels of {}", arm.arm.model.kind,
                     with_thousands(parameters), corpus_of(context), with_thousands(arm.labels),
                     file_names({part.labels.empty() ? part.train : part.labels}));
}

std::string verdict_id(const std::string& kind, const std::string& what) {
  std::string id = fmt::format("transfer_{}_{}", kind, what);
  std::replace(id.begin(), id.end(), '-', '_');
  return id;
}

/// Judges the error of `first` minus that of `second`.
Verdict compared(const StudyContext& context, const TransferredArm& first, const TransferredArm& second,
                 const Region& region) {
  Verdict verdict;
  verdict.quantity = fmt::format(
      "error {} − {} (percentage points), {}", first.arm.recipe.description, second.arm.recipe.description,
      first.sweep.points.size() > 1 ? fmt::format("each at its best of {} learning rates", first.sweep.points.size())
                                    : "at one learning rate");
  verdict.judgment =
      not_testable_because(judge_best(first.sweep, second.sweep, region), training_not_testable(context));
  const auto described = [](const TransferredArm& arm) {
    return fmt::format("{}: {}% at a learning rate of {:g}", arm.arm.recipe.description, with_interval(arm.error()),
                       arm.sweep.best().learning_rate);
  };
  verdict.evidence = fmt::format("Error {}; {}.", described(first), described(second));
  return verdict;
}

void judge_recipes(const StudyContext& context, const TransferStages& stages, const TransferStudy& part,
                   const std::vector<TransferredArm>& arms, const std::string& kind, PartResult& result) {
  const TransferredArm* complete = find_arm(arms, kind, "complete");
  for (const RecipeClaim& claim : kRecipeClaims) {
    const TransferredArm* other = find_arm(arms, kind, claim.recipe);
    if (claim.recurrent != carries_state(kind) || complete == nullptr || other == nullptr) continue;
    Verdict verdict = compared(context, *other, *complete,
                               claim.recurrent ? Region::above(kClearPoints, 0) : Region::below(kClearPoints));
    verdict.id = verdict_id(kind, claim.id);
    verdict.claim = claim.claim;
    verdict.source = claim.source;
    verdict.setting = transfer_setting(context, stages, part, *complete);
    verdict.figure = recipes_figure_id(kind);
    result.verdicts.push_back(std::move(verdict));
  }
}

void judge_pretraining(const StudyContext& context, const TransferStages& stages, const TransferStudy& part,
                       const std::vector<TransferredArm>& arms, const std::string& kind, PartResult& result) {
  std::vector<int64_t> counts = part.examples;
  counts.push_back(0);
  for (const int64_t examples : counts) {
    const TransferredArm* scratch = find_arm(arms, kind, "scratch", examples);
    const TransferredArm* usual = find_arm(arms, kind, usual_recipe(kind, part.arms), examples);
    if (scratch == nullptr || usual == nullptr) continue;
    Verdict verdict = compared(context, *scratch, *usual, Region::above(kClearPoints, 0));
    verdict.id = verdict_id(kind, examples == 0 ? "pretraining" : fmt::format("pretraining_{}", examples));
    verdict.claim = fmt::format("Pretraining lowers the error ({}, {} labels)", kind, with_thousands(usual->labels));
    verdict.source = carries_state(kind)       ? "Howard & Ruder 2018, Table 4 and Figure 3"
                     : is_language_model(kind) ? "Radford et al. 2018, Table 5"
                                               : "Devlin et al. 2019, arXiv 1810.04805";
    verdict.setting = transfer_setting(context, stages, part, *usual);
    verdict.figure = part.examples.empty() ? recipes_figure_id(kind) : "transfer_labels";
    result.verdicts.push_back(std::move(verdict));
  }
}

std::string transfer_summary(const std::vector<TransferredArm>& arms, const std::string& kind, int64_t seeds) {
  std::vector<std::string> errors;
  for (const TransferredArm& each : arms) {
    if (each.arm.model.kind != kind || each.arm.examples > 0) continue;
    const Interval error = each.error();
    errors.push_back(
        fmt::format("{} {}", error.count > 0 ? with_interval(error) : "no run finished", each.arm.recipe.description));
  }
  return fmt::format("Error of {} in percent, with all labels, each recipe at its best learning rate: {} ({}).", kind,
                     join(errors), seeds_in_words(seeds));
}

}  // namespace

std::vector<MeasurementRequest> requests(StudyContext& context, const TransferStudy& part) {
  const TransferStages stages(context, part);
  std::vector<MeasurementRequest> list;
  for (const TransferModel& model : part.models) list.push_back(stages.pretraining(model).measurement);
  for (const TransferModel& model : part.models) {
    if (part.text_epochs > 0) list.push_back(stages.on_text(model).measurement);
  }
  for (const TransferArm& arm : transfer_arms(part)) {
    for (const double learning_rate : arm.model.learning_rates) {
      for (int64_t seed = 0; seed < part.seeds; ++seed)
        list.push_back(stages.classifier(arm, learning_rate, seed).measurement);
    }
  }
  return list;
}

PartResult measure(StudyContext& context, const TransferStudy& part) {
  const TransferStages stages(context, part);
  std::vector<TransferredArm> arms;
  for (const TransferArm& arm : transfer_arms(part)) arms.push_back(transferred(context, stages, part, arm));

  PartResult result;
  for (const TransferModel& model : part.models) {
    result.figures.push_back(recipes_figure(arms, model.kind, part.seeds));
    if (model.learning_rates.size() > 1) result.figures.push_back(rates_figure(arms, model.kind));
    judge_recipes(context, stages, part, arms, model.kind, result);
    judge_pretraining(context, stages, part, arms, model.kind, result);
    result.summary.push_back(transfer_summary(arms, model.kind, part.seeds));
  }
  if (!part.examples.empty()) result.figures.push_back(labels_figure(arms, part));
  result.tables = {recipes_table(arms), language_models_table(context, stages, part), classifiers_table(arms)};
  return result;
}

}  // namespace plumb
