#include "plumb/interop/fit.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "plumb/base/error.h"
#include "plumb/base/text.h"
#include "plumb/base/toml_text.h"
#include "plumb/interop/family.h"
#include "plumb/model/kind.h"

namespace plumb {
namespace {

/// The same model, with fixed values for all settings that have no influence on what it computes.
ModelConfig canonical(ModelConfig config) {
  const ModelConfig defaults;
  const bool decoder = kind_of(config).models_language(), encoder = kind_of(config).only_encodes();
  config.initialization = defaults.initialization;
  config.encoder_initialization = defaults.encoder_initialization;
  config.initialization_scale = defaults.initialization_scale;
  config.dropout = defaults.dropout;
  config.attention_dropout = defaults.attention_dropout;
  config.activation_dropout = defaults.activation_dropout;
  config.embedding_size = defaults.embedding_size;
  config.hidden_size = defaults.hidden_size;
  config.layers = defaults.layers;
  if (decoder) {
    config.encoder_layers = defaults.encoder_layers;
    config.source_vocabulary = 0;
    if (config.share_embeddings == "all") config.share_embeddings = "target";
  }
  if (encoder) {
    config.decoder_layers = defaults.decoder_layers;
    config.source_vocabulary = source_vocabulary_of(config);
    config.target_vocabulary = 0;
    if (config.pooling != "none" || config.share_embeddings != "none")  // else its output matrix is a parameter
      config.share_embeddings = defaults.share_embeddings;
  } else if (config.labels == 0) {
    config.pooling = defaults.pooling;
    config.pooler = defaults.pooler;
  }
  if (config.encoder_residual == config.residual) config.encoder_residual = defaults.encoder_residual;
  if (config.positions != "learned") config.max_positions = defaults.max_positions;
  if (config.embedding_factor == 0) config.embedding_factor = std::sqrt(static_cast<double>(config.d_model));
  config.kv_heads = heads_of(config).kv_heads;
  config.head_size = heads_of(config).size;
  const std::set<std::string> chosen = {config.residual, config.attention, config.positions, config.activation};
  std::erase_if(config.options, [&](const auto& item) { return chosen.count(item.first) == 0; });
  if (config.positions == "rotary") {
    RotaryOptions rotary = rotary_options_of(config);
    if (rotary.features == config.head_size) rotary.features = 0;  // all of them
    config.options["rotary"] = Options(rotary);
  }
  return config;
}

std::map<std::string, std::string> values_of(const ModelConfig& config) {
  const auto values = key_values(ConfigWriter().section("model", canonical(config)).text());
  return {values.begin(), values.end()};
}

/// An attempt to express a model in a family.
struct Attempt {
  std::string family;
  Json settings;
  std::vector<std::string> differences;
  bool readable = true;  // whether the family can read the settings
};

/// "model.norm = "layernorm" instead of "rmsnorm"" for each difference.
std::vector<std::string> differences_of(const ModelConfig& ours, const ModelConfig& theirs) {
  const std::map<std::string, std::string> wanted = values_of(ours), found = values_of(theirs);
  std::vector<std::string> differences;
  for (const auto& [key, value] : wanted) {
    const auto other = found.find(key);
    if (other == found.end()) continue;  // an option of a variant that the family lacks; the variant differs, too
    if (other->second != value) differences.push_back(fmt::format("{} = {} instead of {}", key, value, other->second));
  }
  return differences;
}

Attempt attempt(const std::string& name, const Family& family, const ModelConfig& config) {
  Json settings = family.settings(config);
  settings["model_type"] = name;
  if (!settings.contains("architectures")) settings["architectures"] = Json::array({family.classes.front()});
  Attempt result{name, settings, {}};
  try {
    result.differences = differences_of(config, described_by(Settings(settings, "config.json")).config);
  } catch (const Error& error) {
    result.differences = {error.what()};
    result.readable = false;
  }
  return result;
}

}  // namespace

bool compute_the_same(const ModelConfig& one, const ModelConfig& other) { return values_of(one) == values_of(other); }

Json fitting_settings(const ModelConfig& config) {
  std::optional<Attempt> best;
  for (const auto& [name, entry] : families().entries()) {
    if (entry.make.settings == nullptr) continue;
    Attempt tried = attempt(name, entry.make, config);
    if (tried.differences.empty()) return tried.settings;
    const auto closeness = [](const Attempt& one) { return std::pair(!one.readable, one.differences.size()); };
    if (!best || closeness(tried) < closeness(*best)) best = std::move(tried);
  }
  throw Error(fmt::format("no family of `transformers` has this model: {}", join(best->differences)),
              fmt::format("these are its differences from the closest family, {}; `docs/models.md` has a model that "
                          "fits each family",
                          best->family));
}

}  // namespace plumb
