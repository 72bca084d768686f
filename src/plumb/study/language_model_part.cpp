// Language models that differ only in their attention.
#include <fmt/format.h>

#include <cmath>

#include "plumb/base/contains.h"
#include "plumb/nn/attention/attention.h"
#include "plumb/study/trained_run.h"

namespace plumb {
namespace {

struct LanguageModelStudy {
  std::vector<std::string> kinds = {"softmax", "linear", "favor", "dpfp", "delta"};
  int64_t layers = 3;
  int64_t seeds = 1;
};

void describe(Fields& field, LanguageModelStudy& part) {
  field("kinds", part.kinds, "the attentions", name_in(attentions()));
  field("layers", part.layers, "layers of each model", count_from(1));
  field("seeds", part.seeds, "runs of each kind", count_from(1));
}

struct KindRuns {
  std::string kind;
  int64_t parameters = 0;
  std::vector<Planned<TrainedRun>> by_seed;
};

ModelConfig kind_model(const StudyContext& context, const LanguageModelStudy& part, const std::string& kind) {
  ModelConfig model = model_for(context, context.config.model.residual, part.layers);
  model.kind = "decoder";
  model.attention = kind;
  return model;
}

PartResult report_language_models(const StudyContext& context, const LanguageModelStudy& part,
                                  const std::vector<KindRuns>& kinds) {
  PartResult result;
  const ModelConfig& model = context.config.model;
  Figure curves{"language_model",
                "Language models by attention: validation loss",
                fmt::format("Decoders with {} layers, d_model {}, {} heads, positions {}; first seed.", part.layers,
                            model.d_model, model.heads, model.positions),
                "line",
                {"step"},
                {"validation loss (nats per token)"}};
  Table table{"language_models",
              "Language models by attention",
              "On the validation split at the end of training.",
              {"attention", "parameters", "seed", "outcome", "steps", "loss", "perplexity", "seconds"}};
  for (const KindRuns& runs : kinds) {
    curves.series.push_back(runs.by_seed.front()->validation_curve(runs.kind, runs.kind));
    for (const Planned<TrainedRun>& run : runs.by_seed) {
      table.row(runs.kind, runs.parameters, run->config.train.seed, to_string(run->result.outcome), run->result.steps,
                run->loss(), std::exp(run->loss()), run->result.seconds);
    }
  }
  result.figures.push_back(curves);
  result.tables.push_back(table);

  const KindRuns* delta = find_by(kinds, &KindRuns::kind, "delta");
  const KindRuns* linear = find_by(kinds, &KindRuns::kind, "linear");
  if (delta != nullptr && linear != nullptr) {
    result.verdicts.push_back(
        {"language_model_delta", "In language models, the delta rule performs better than linear attention",
         "Schlag et al. 2021, section 6.4", setting_of(context, kind_model(context, part, "delta")),
         "final validation loss of linear − of delta (nats per token), at one learning rate",
         judge_at_one_rate(context, linear->by_seed, delta->by_seed, Region::above(0.01, 0)), "", "language_model"});
  }
  std::vector<std::pair<std::string, Interval>> means;
  for (const KindRuns& runs : kinds)
    means.emplace_back(runs.kind, judge(counted_losses(context, runs.by_seed), {}).effect);
  result.summary.push_back(fmt::format("Final validation loss of the language models, at one learning rate: {} ({}).",
                                       with_intervals(means), seeds_in_words(part.seeds)));
  return result;
}

PartPlan plan(StudyContext& context, const LanguageModelStudy& part) {
  PartPlan plan(context);
  std::vector<KindRuns> kinds;
  for (const std::string& kind : part.kinds) {
    const ModelConfig model = kind_model(context, part, kind);
    const RunRequest request{"language-model-" + kind, "language model, " + kind,
                             run_config(context, model, context.config.train)};
    kinds.push_back({kind, make_model(model)->parameters().count(), planned_runs(plan, context, request, part.seeds)});
  }
  plan.report = [&context, part, kinds] { return report_language_models(context, part, kinds); };
  return plan;
}

[[maybe_unused]] const bool kLanguageModel =
    add_part<LanguageModelStudy>("language_model", "language models that differ only in their attention",
                                 "Schlag et al. 2021, arXiv 2102.11174", {.place = 9, .plan = plan, .trains = kAlways});

}  // namespace
}  // namespace plumb
