#include "plumb/run/parametrization.h"

#include <fmt/format.h>

#include <cmath>

#include "plumb/base/error.h"

namespace plumb {
namespace {

void require_mup(const ModelConfig& model, const TrainConfig& config) {
  const auto refuse = [](const std::string& what, const char* hint) {
    throw Error(fmt::format("train.parametrization = \"mup\" does not work with {}", what), hint);
  };
  if (config.base_width == 0)
    refuse("train.base_width = 0", "set it to the d_model for which train.learning_rate is meant");
  if (config.optimizer != "adam" && config.optimizer != "adamw")
    refuse(fmt::format("train.optimizer = \"{}\"", config.optimizer), "choose adam or adamw");
  if (model.share_embeddings != "none") {
    refuse(fmt::format("model.share_embeddings = \"{}\"", model.share_embeddings),
           "set model.share_embeddings = \"none\": embeddings and output have different learning rates");
  }
  if (model.embedding_factor > 0) {
    refuse(fmt::format("model.embedding_factor = {:g}", model.embedding_factor),
           "leave it out: embeddings are to be multiplied by √d_model at every width");
  }
  if (model.initialization != "mup" || model.encoder_initialization != "same") {
    refuse(fmt::format("model.initialization = \"{}\"", model.initialization),
           "set model.initialization = \"mup\" for the whole model");
  }
}

/// The learning rate of a parameter relative to that in a model of the width at which the rate was chosen, by the
/// maximal update parametrization (µP) for Adam, with m the ratio of the widths: 1/m for matrices and the output, 1/√m
/// for embeddings, whose values are multiplied by √d_model, and 1 for everything else. Yang et al. 2022, arXiv
/// 2203.03466, table 3.
double mup_rate_factor(const Parameter& parameter, double m) {
  if (parameter.name == "output.weight" || multiplies_each_token(parameter)) return 1 / m;
  return parameter.role == Role::embedding ? 1 / std::sqrt(m) : 1;
}

}  // namespace

std::vector<ParameterSettings> parameter_settings(const Model& model, const TrainConfig& config) {
  const Parameters& parameters = model.parameters();
  std::vector<ParameterSettings> all = parameter_settings(parameters, config.groups, config.weight_decay);
  if (config.parametrization != "mup") return all;
  require_mup(model.config(), config);
  const double m = static_cast<double>(model.config().d_model) / static_cast<double>(config.base_width);
  for (size_t i = 0; i < all.size(); ++i) all[i].rate_factor *= mup_rate_factor(parameters.all()[i], m);
  return all;
}

}  // namespace plumb
