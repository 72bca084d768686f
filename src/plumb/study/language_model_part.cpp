// Language models that differ only in their attention.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plumb/base/text.h"
#include "plumb/study/trained_run.h"

namespace plumb {
namespace {

struct KindRuns {
  std::string kind;
  int64_t parameters = 0;
  std::vector<TrainedRun> by_seed;

  [[nodiscard]] std::vector<double> losses() const {
    std::vector<double> all;
    for (const TrainedRun& run : by_seed) all.push_back(run.loss());
    return all;
  }
};

ModelConfig kind_model(const StudyContext& context, const LanguageModelStudy& part, const std::string& kind) {
  ModelConfig model = model_for(context, context.config.model.residual, part.layers);
  model.kind = "decoder";
  model.attention = kind;
  return model;
}

RunRequest kind_run(const StudyContext& context, const LanguageModelStudy& part, const std::string& kind,
                    int64_t seed) {
  RunRequest request{fmt::format("language-model-{}-seed{}", kind, context.config.study.seed + seed),
                     "language model, " + kind, run_config(context, kind_model(context, part, kind))};
  request.config.train.seed += seed;
  return request;
}

}  // namespace

std::vector<MeasurementRequest> requests(StudyContext& context, const LanguageModelStudy& part) {
  std::vector<MeasurementRequest> list;
  for (const std::string& kind : part.kinds) {
    for (int64_t seed = 0; seed < part.seeds; ++seed)
      list.push_back(run_measurement(context, kind_run(context, part, kind, seed)));
  }
  return list;
}

PartResult measure(StudyContext& context, const LanguageModelStudy& part) {
  std::vector<KindRuns> kinds;
  for (const std::string& kind : part.kinds) {
    kinds.push_back({kind, make_model(kind_model(context, part, kind))->parameters().count(), {}});
    for (int64_t seed = 0; seed < part.seeds; ++seed)
      kinds.back().by_seed.push_back(trained_run(context, kind_run(context, part, kind, seed)));
  }

  PartResult result;
  const ModelConfig& model = context.config.model;
  Figure curves{"language_model", "Language models by attention: validation loss"};
  curves.caption = fmt::format(
      "Negative log-likelihood per token of decoders with {} layers, d_model {}, {} heads, positions {}; first seed.",
      part.layers, model.d_model, model.heads, model.positions);
  curves.kind = "line";
  curves.x = {"step"};
  curves.y = {"validation loss (nats per token)"};
  Table table{"language_models",
              "Language models by attention",
              "On the validation split at the end of training.",
              {"attention", "parameters", "seed", "outcome", "steps", "loss", "perplexity", "seconds"}};
  for (const KindRuns& runs : kinds) {
    curves.series.push_back(runs.by_seed.front().validation_curve(runs.kind, runs.kind));
    for (const TrainedRun& run : runs.by_seed) {
      table.rows.push_back({runs.kind, runs.parameters, run.config.train.seed, run.result.outcome, run.result.steps,
                            finite_or_null(run.loss()), finite_or_null(std::exp(run.loss())),
                            finite_or_null(run.result.seconds)});
    }
  }
  result.figures.push_back(curves);
  result.tables.push_back(table);

  const auto find = [&](const std::string& kind) {
    return std::find_if(kinds.begin(), kinds.end(), [&](const KindRuns& runs) { return runs.kind == kind; });
  };
  const auto delta = find("delta");
  const auto linear = find("linear");
  if (delta != kinds.end() && linear != kinds.end()) {
    result.verdicts.push_back(
        {"language_model_delta", "In language models, the delta rule performs better than linear attention",
         "Schlag et al. 2021, section 6.4", setting_of(context, kind_model(context, part, "delta")),
         "final validation loss of linear − of delta (nats per token), at one learning rate",
         not_testable_because(
             undecided_because(judge_difference(linear->losses(), delta->losses(), Region::above(0.01, 0)), kOneRate),
             training_not_testable(context)),
         "", "language_model"});
  }
  std::vector<std::string> means;
  for (const KindRuns& runs : kinds) {
    const Interval loss = judge(runs.losses(), {}).effect;
    if (loss.count > 0) means.push_back(fmt::format("{} with {}", with_interval(loss), runs.kind));
  }
  result.summary.push_back(fmt::format("Final validation loss of the language models, at one learning rate: {} ({}).",
                                       join(means), seeds_in_words(part.seeds)));
  return result;
}

}  // namespace plumb
