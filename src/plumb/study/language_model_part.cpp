// Language models that differ only in their attention.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plumb/study/trained_run.h"

namespace plumb {
namespace {

struct KindRun {
  std::string kind;
  int64_t parameters = 0;
  TrainedRun trained;

  [[nodiscard]] double loss() const { return trained.loss(); }
};

KindRun train_run(StudyContext& context, const LanguageModelStudy& part, const std::string& kind) {
  ModelConfig model = model_for(context, context.config.model.residual, part.layers);
  model.kind = "decoder";
  model.attention = kind;
  const RunRequest request{"language-model-" + kind, "language model, " + kind, run_config(context, model)};
  return {kind, make_model(model)->parameters().count(), trained_run(context, request)};
}

}  // namespace

PartResult measure(StudyContext& context, const LanguageModelStudy& part) {
  std::vector<KindRun> runs;
  for (const std::string& kind : part.kinds) runs.push_back(train_run(context, part, kind));

  PartResult result;
  const ModelConfig& model = context.config.model;
  Figure curves{"language_model", "Language models by attention: validation loss"};
  curves.caption =
      fmt::format("Negative log-likelihood per token of decoders with {} layers, d_model {}, {} heads, positions {}.",
                  part.layers, model.d_model, model.heads, model.positions);
  curves.kind = "line";
  curves.x = {"step"};
  curves.y = {"validation loss (nats per token)"};
  Table table{"language_models",
              "Language models by attention",
              "On the validation split at the end of training.",
              {"attention", "parameters", "outcome", "steps", "loss", "perplexity", "seconds"}};
  for (const KindRun& run : runs) {
    curves.series.push_back(run.trained.validation_curve(run.kind, run.kind));
    const TrainResult& trained = run.trained.result;
    table.rows.push_back({run.kind, run.parameters, trained.outcome, trained.steps, finite_or_null(run.loss()),
                          finite_or_null(std::exp(run.loss())), finite_or_null(trained.seconds)});
  }
  result.figures.push_back(curves);
  result.tables.push_back(table);

  const auto find = [&](const std::string& kind) {
    return std::find_if(runs.begin(), runs.end(), [&](const KindRun& run) { return run.kind == kind; });
  };
  const auto softmax = find("softmax");
  const auto delta = find("delta");
  const auto linear = find("linear");
  if (delta != runs.end() && linear != runs.end()) {
    result.verdicts.push_back(
        {"language_model_delta", "In language models, the delta rule performs better than linear attention",
         "Schlag et al. 2021, section 6.4", confirmed_if(delta->loss() < linear->loss()),
         fmt::format("Validation loss {:.3f} with delta, {:.3f} with linear{}; one run each.", delta->loss(),
                     linear->loss(),
                     softmax == runs.end() ? "" : fmt::format(", {:.3f} with softmax", softmax->loss())),
         "language_model"});
  }
  const auto best = std::min_element(runs.begin(), runs.end(),
                                     [](const KindRun& a, const KindRun& b) { return a.loss() < b.loss(); });
  if (best != runs.end() && std::isfinite(best->loss())) {
    result.summary.push_back(fmt::format("Of {} language models, the one with {} attention is best: perplexity {:.2f}.",
                                         runs.size(), best->kind, std::exp(best->loss())));
  }
  return result;
}

}  // namespace plumb
