// Language models that differ in their attention alone.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plumb/base/random.h"
#include "plumb/model/model.h"
#include "plumb/study/part.h"
#include "plumb/train/run.h"

namespace plumb {
namespace {

struct Run {
  std::string kind;
  int64_t parameters = 0;
  TrainResult result;

  [[nodiscard]] double loss() const {
    return result.outcome == "diverged" ? std::numeric_limits<double>::infinity()
                                        : result.valid_nll.value_or(std::nan(""));
  }
};

Run train_run(StudyContext& context, const LanguageModelStudy& part, const std::string& kind) {
  RunConfig config;
  config.model = model_for(context, context.config.model.residual, part.layers);
  config.model.kind = "decoder";
  config.model.attention = kind;
  config.train = context.config.train;
  config.train.seed = context.config.study.seed;
  config.data = context.data.path().string();
  const std::string name = "language-model-" + kind;
  const Json settings = {
      {"data", context.data_settings},
      {"config", ConfigWriter().section("model", config.model).section("train", config.train).text()}};
  // A run of other settings is another run: both stand.
  const std::filesystem::path out =
      context.out / "runs" / fmt::format("{}-{:08x}", name, stream_of(settings.dump()) & 0xFFFFFFFFU);
  const Json json = context.measurements.get(name, settings, [&] {
    TrainHooks hooks;
    hooks.progress = "language model, " + kind;
    if (context.on_point) hooks.point = [&](const TrainPoint& point) { context.on_point(out, point); };
    return run_training(config, out, hooks).to_json();
  });
  return {kind, make_model(config.model)->parameters().count(), TrainResult::from_json(json)};
}

}  // namespace

PartResult measure(StudyContext& context, const LanguageModelStudy& part) {
  std::vector<Run> runs;
  for (const std::string& kind : part.kinds) runs.push_back(train_run(context, part, kind));

  PartResult result;
  const ModelConfig& model = context.config.model;
  Figure curves{"language_model", "Language models by attention: validation loss"};
  curves.caption =
      fmt::format("Negative log-likelihood a token of decoders with {} layers, d_model {}, {} heads, positions {}.",
                  part.layers, model.d_model, model.heads, model.positions);
  curves.kind = "line";
  curves.x = {"step"};
  curves.y = {"validation loss (nats a token)"};
  Table table{"language_models",
              "Language models by attention",
              "Of the validation split at the end of training.",
              {"attention", "parameters", "outcome", "steps", "loss", "perplexity", "seconds"}};
  for (const Run& run : runs) {
    Series series{run.kind, run.kind};
    for (const TrainPoint& point : run.result.history) {
      if (point.valid_nll) series.point(point.step, *point.valid_nll);
    }
    curves.series.push_back(series);
    table.rows.push_back({run.kind, run.parameters, run.result.outcome, run.result.steps, finite_or_null(run.loss()),
                          finite_or_null(std::exp(run.loss())), finite_or_null(run.result.seconds)});
  }
  result.figures.push_back(curves);
  result.tables.push_back(table);

  const auto find = [&](const std::string& kind) {
    return std::find_if(runs.begin(), runs.end(), [&](const Run& run) { return run.kind == kind; });
  };
  const auto softmax = find("softmax");
  const auto delta = find("delta");
  const auto linear = find("linear");
  if (delta != runs.end() && linear != runs.end()) {
    result.verdicts.push_back(
        {"language_model_delta", "In language models the delta rule does better than linear attention",
         "Schlag et al. 2021, section 6.4", confirmed_if(delta->loss() < linear->loss()),
         fmt::format("Validation loss {:.3f} with delta, {:.3f} with linear{}; a single run each.", delta->loss(),
                     linear->loss(),
                     softmax == runs.end() ? "" : fmt::format(", {:.3f} with softmax", softmax->loss())),
         "language_model"});
  }
  const auto best =
      std::min_element(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.loss() < b.loss(); });
  if (best != runs.end() && std::isfinite(best->loss())) {
    result.summary.push_back(fmt::format("Of {} language models that of {} attention is best: perplexity {:.2f}.",
                                         runs.size(), best->kind, std::exp(best->loss())));
  }
  return result;
}

}  // namespace plumb
