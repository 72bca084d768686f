// One measurement over several initializations of a model.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "plumb/base/progress.h"
#include "plumb/report/display_name.h"
#include "plumb/study/plan.h"

namespace plumb {

/// What is measured on models initialized with the study's seed and the `seeds − 1` that follow.
struct SeededMeasurement {
  std::string name;   // of the measurement
  std::string label;  // shown with progress
  ModelConfig model;
  int64_t seeds = 1;
  int64_t pairs = 0;               // the first of the measured split; 0: all
  double gradients = 1;            // of the pairs, that one model costs
  Json settings = Json::object();  // what results depend on besides data, pairs, model and seeds
  int64_t batch_tokens = 1024;     // of the measured batches
};

/// Of an arm's models in a part with these options: `what`, such as "collapse", names it.
inline SeededMeasurement initial_models(const StudyContext& context, const InitialModels& part, const std::string& what,
                                        const std::string& arm) {
  return {.name = what + "-" + file_name(arm),
          .label = what + ", " + display_name(arm),
          .model = model_for(context, arm, part.layers),
          .seeds = part.seeds,
          .pairs = part.pairs};
}

/// Plans a measurement whose result is the list of measure(model, batches), [seed].
template <typename Measure>
auto over_seeds(PartPlan& plan, StudyContext& context, const SeededMeasurement& what, const Measure& measure) {
  using Result = std::invoke_result_t<Measure, Model&, const std::vector<Batch>&>;
  MeasurementRequest request;
  request.name = what.name;
  request.label = what.label;
  request.settings = what.settings;
  request.settings.update({{"data", context.batch_settings},
                           {"model", settings_of(what.model)},
                           {"pairs", what.pairs},
                           {"seeds", what.seeds},
                           {"first_seed", context.config.study.seed}});
  request.work =
      work_of(what.model, static_cast<double>(what.seeds) * what.gradients * measured_tokens(context, what.pairs));
  request.measure = [&context, what, measure] {
    const std::vector<Batch> batches = measured_batches(context, what.pairs, what.batch_tokens);
    Progress progress(what.label, what.seeds);
    std::vector<Result> results;
    for (int64_t i = 0; i < what.seeds; ++i) {
      results.push_back(measure(*initialized_model(context, what.model, i), batches));
      progress.update(i + 1);
    }
    return result_json(results);
  };
  return plan.add<std::vector<Result>>(request);
}

}  // namespace plumb
