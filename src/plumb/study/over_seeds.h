// One measurement over several initializations of a model.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plumb/base/progress.h"
#include "plumb/study/part.h"

namespace plumb {

/// A measurement whose result is the list of measure(model), for models initialized from the study's seed and the
/// `seeds − 1` that follow. `settings` has what the results depend on besides data, model and seeds; `tokens` is the
/// number of tokens that one model processes, forward and backward. The result type of `measure` needs to_json.
template <typename Measure>
MeasurementRequest over_seeds(StudyContext& context, const std::string& name, const std::string& label,
                              const ModelConfig& config, int64_t seeds, Json settings, double tokens,
                              const Measure& measure) {
  settings["data"] = context.batch_settings;
  settings["model"] = settings_of(config);
  settings["seeds"] = seeds;
  settings["first_seed"] = context.config.study.seed;
  MeasurementRequest request;
  request.name = name;
  request.label = label;
  request.settings = std::move(settings);
  request.work = work_of(config, static_cast<double>(seeds) * tokens);
  request.measure = [&context, label, config, seeds, measure] {
    Progress progress(label, seeds);
    Json all = Json::array();
    for (int64_t i = 0; i < seeds; ++i) {
      all.push_back(to_json(measure(*initialized_model(context, config, i))));
      progress.update(i + 1);
    }
    return all;
  };
  return request;
}

/// Results by seed as a JSON list, and such lists by scheme, for results.json.
template <typename Result>
Json list_of(const std::vector<Result>& results) {
  Json all = Json::array();
  for (const Result& each : results) all.push_back(to_json(each));
  return all;
}
template <typename Result>
Json lists_of(const std::map<std::string, std::vector<Result>>& by_scheme) {
  Json lists = Json::object();
  for (const auto& [scheme, results] : by_scheme) lists[scheme] = list_of(results);
  return lists;
}

/// Results of a request made by `over_seeds`, [seed]. `Result` needs from_json.
template <typename Result>
std::vector<Result> results_over_seeds(StudyContext& context, const MeasurementRequest& request) {
  std::vector<Result> results;
  for (const Json& each : context.measurements.get(request)) results.push_back(each.get<Result>());
  return results;
}

}  // namespace plumb
