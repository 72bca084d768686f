#include "plumb/study/trained_run.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "plumb/base/random.h"
#include "plumb/train/run.h"

namespace plumb {
namespace {

Json ask_trained_model(const std::filesystem::path& run, const std::function<Json(Model&)>& ask) {
  const std::unique_ptr<Model> model = load_model(run);
  return ask(*model);
}

}  // namespace

double TrainedRun::loss() const {
  return diverged() ? std::numeric_limits<double>::infinity() : result.valid_nll().value_or(std::nan(""));
}

std::string TrainedRun::summary() const {
  return diverged() ? fmt::format("diverged at step {}", result.steps) : fmt::format("loss {:.2f}", loss());
}

Series TrainedRun::validation_curve(const std::string& name, const std::string& group) const {
  Series series{name, group};
  for (const TrainPoint& point : result.history) {
    if (const std::optional<double> loss = point.metrics.get("valid_nll")) series.point(point.step, *loss);
  }
  if (diverged()) series.point(result.steps, std::nan(""));
  return series;
}

RunConfig run_config(const StudyContext& context, const ModelConfig& model) {
  RunConfig config;
  config.model = model;
  config.train = context.config.train;
  config.train.seed = context.config.study.seed;
  config.train.score_every = -1;
  config.task = context.config.task;
  config.data = context.data.path().string();
  return config;
}

TrainedRun trained_run(StudyContext& context, const RunRequest& request) {
  const RunConfig& config = request.config;
  Json settings = {{"data", context.data_settings},
                   {"config", ConfigWriter()
                                  .section("model", config.model)
                                  .section("train", config.train)
                                  .section("task", config.task)
                                  .text()}};
  settings.update(request.more_settings);
  // A run with other settings is another run; both are kept.
  const std::filesystem::path out =
      context.out / "runs" / fmt::format("{}-{:08x}", request.name, stream_of(settings.dump()) & 0xFFFFFFFFU);
  const Json found = context.measurements.get(request.name, settings, [&] {
    TrainHooks hooks;
    hooks.progress = request.label;
    if (context.on_point) hooks.point = [&](const TrainPoint& point) { context.on_point(out, point); };
    const TrainResult result = run_training(config, out, hooks);
    Json json = result.to_json();
    if (request.ask && result.outcome != "diverged") json[request.question] = ask_trained_model(out, request.ask);
    return json;
  });
  return {config, TrainResult::from_json(found), request.ask ? found.value(request.question, Json()) : Json()};
}

}  // namespace plumb
