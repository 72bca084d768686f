#include "plumb/study/initial_loss.h"

#include <fmt/format.h>

#include "plumb/base/json.h"
#include "plumb/study/changed_keys.h"
#include "plumb/task/task.h"

namespace plumb {

MeasurementRequest initial_loss_request(StudyContext& context, const std::string& name, const ModelConfig& config,
                                        int64_t seeds) {
  double tokens = 0;
  if (context.data.has_split("valid")) {
    for (const ExampleCost& cost : context.task.dataset("valid")->costs()) tokens += static_cast<double>(cost.larger());
  }
  MeasurementRequest request;
  request.name = "initial-loss-" + name;
  request.label = "loss before training, " + name;
  request.settings = {{"data", context.data_settings},
                      {"model", settings_of(config)},
                      {"task", changed_keys(context.config.task)},
                      {"batch_tokens", context.config.train.batch_tokens},
                      {"seeds", seeds},
                      {"first_seed", context.config.study.seed}};
  request.work = work_of(config, 0.3 * static_cast<double>(seeds) * tokens);  // forward passes only
  request.measure = [&context, config, seeds] {
    Json all = Json::array();
    for (int64_t i = 0; i < seeds; ++i) {
      if (!context.data.has_split("valid")) {
        all.push_back(nullptr);
        continue;
      }
      const Metrics found =
          context.task.metrics(evaluate(context.task, *initialized_model(context, config, i),
                                        *context.task.dataset("valid"), context.config.train.batch_tokens, 0, {}));
      const std::optional<double> nll = found.get("nll");
      all.push_back(nll ? Json(*nll) : Json());
    }
    return all;
  };
  return request;
}

}  // namespace plumb
