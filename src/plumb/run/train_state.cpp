#include "plumb/run/train_state.h"

#include <fmt/format.h>

#include "plumb/base/error.h"
#include "plumb/run/point.h"

namespace plumb {

Json to_json(const TrainState& state, const std::string& metric) {
  Json json = make_document("state", 1);
  json["step"] = state.step;
  json["epoch"] = state.epoch;
  json["batch"] = state.batch;
  json["loss_sum"] = state.loss;
  json["nll_sum"] = state.nll;
  json["weight"] = state.weight;
  if (state.tokens) json["tokens"] = *state.tokens;
  if (state.best) json["best_" + metric] = *state.best;
  if (!state.best_list.empty()) json["best_list"] = state.best_list;
  json["best_step"] = state.best_step;
  json["validations_since_best"] = state.validations_since_best;
  json["complete"] = state.complete;
  json["seconds"] = state.seconds;
  if (!state.pending.is_null()) json["pending_point"] = state.pending;
  return json;
}

TrainState train_state_from_json(const Json& json, const std::string& metric, const std::string& origin) {
  try {
    TrainState state;
    state.step = count_of(json.at("step"));
    state.epoch = count_of(json.at("epoch"));
    state.batch = count_of(json.at("batch"));
    state.loss = json.at("loss_sum");
    state.nll = json.at("nll_sum");
    state.weight = json.at("weight");
    state.tokens = json.contains("tokens") ? std::optional(count_of(json["tokens"])) : std::nullopt;
    if (json.contains("best_" + metric)) state.best = json["best_" + metric].get<double>();
    for (const Json& entry : json.value("best_list", Json::array()))
      state.best_list.emplace_back(count_of(entry.at(0)), entry.at(1).get<double>());
    state.best_step = count_of(json.at("best_step"));
    state.validations_since_best = count_of(json.at("validations_since_best"));
    state.complete = json.at("complete");
    state.seconds = json.at("seconds");
    state.pending = json.value("pending_point", Json());
    if (!state.pending.is_null()) (void)point_from_json(state.pending);
    return state;
  } catch (const std::exception& error) {  // from the JSON library or count_of
    throw Error(fmt::format("{}: not the state of a training run: {}", origin, error.what()));
  }
}

}  // namespace plumb
