// plumb diff: where do two models begin to compute something else?
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plumb/analysis/model_difference.h"
#include "plumb/base/json_fields.h"
#include "plumb/base/text.h"
#include "plumb/base/toml_text.h"
#include "plumb/data/sequences.h"
#include "plumb/io/safetensors.h"
#include "plumb/run/config.h"
#include "plumb/run/directory.h"
#include "verb.h"

namespace plumb::app {
namespace {

constexpr int kDiffer = 3;

struct DiffArguments {
  std::string first, second, batch;
};

/// A model in float64, whatever its files have.
struct ExactModel {
  RunConfig config;
  std::unique_ptr<Model> model;
};

ExactModel open_exactly(const std::string& name) {
  const RunAndCheckpoint place = locate_run(name);
  ExactModel opened{.config = load_run_config(place.run)};
  opened.model = make_model(opened.config.model, at::kDouble);
  load_parameters(opened.model->parameters(), weights_in(place.checkpoint), name);
  return opened;
}

struct SettingDifference {
  std::string key, first, second;
};

std::vector<SettingDifference> settings_apart(const RunConfig& first, const RunConfig& second) {
  std::map<std::string, std::string> others;
  for (const auto& [key, value] : key_values(to_toml(second))) others[key] = value;
  std::vector<SettingDifference> apart;
  for (const auto& [key, value] : key_values(to_toml(first))) {
    if (!key.starts_with("model.")) continue;
    const std::string other = others.contains(key) ? others[key] : "";
    if (other != value) apart.push_back({key, value, other});
  }
  return apart;
}

std::string size_text(const TensorDifference& one) {
  if (!one.only_in.empty()) return "only in the " + one.only_in;
  if (!one.shapes.empty()) return one.shapes;
  return fmt::format("{:.2g}", one.difference);
}

/// The tensors that differ, or all, as a table; at most `most` of them.
std::string table_of(const std::string& heading, const std::vector<TensorDifference>& tensors, bool all) {
  constexpr size_t kMost = 20;
  std::vector<std::vector<std::string>> rows = {{heading, "relative difference"}};
  size_t differ = 0;
  for (const TensorDifference& one : tensors) {
    if (!all && !one.differs(kRounding)) continue;
    if (all || ++differ <= kMost) rows.push_back({one.name, size_text(one)});
  }
  if (rows.size() == 1) return "";
  std::string text = aligned(rows, 1);
  if (differ > kMost) text += fmt::format("and {} more; --verbose shows all\n", differ - kMost);
  return text + "\n";
}

std::string answer(const ModelDifference& found, bool settings_differ) {
  if (!found.first) {
    double largest = 0;
    for (const TensorDifference& one : found.places) largest = std::max(largest, one.difference);
    return fmt::format("They compute the same: no place differs by more than {:.1g} of its size.\n", largest);
  }
  const FirstDifference& first = *found.first;
  std::string text =
      fmt::format("They part at {}{}.\n", first.place,
                  std::isnan(first.difference) ? "" : fmt::format(", by {:.2g} of its size", first.difference));
  if (!first.last_equal.empty()) text += fmt::format("Up to {} they agree.\n", first.last_equal);
  if (!first.parameters.empty()) return text + "There, these parameters differ: " + join(first.parameters) + ".\n";
  return text + fmt::format("No parameter differs there: the computation does{}.\n",
                            settings_differ ? ", by the settings above" : "");
}

void diff(const DiffArguments& arguments, const Globals& globals) {
  const ExactModel first = open_exactly(arguments.first);
  const ExactModel second = open_exactly(arguments.second);
  const Batch batch = arguments.batch.empty()
                          ? common_batch(first.config.model, second.config.model, globals.seed)
                          : take_json(arguments.batch, [](const Json& document) {
                              return batch_from_json(document.contains("batch") ? document["batch"] : document);
                            });
  const std::vector<SettingDifference> settings = settings_apart(first.config, second.config);
  const ModelDifference found = compare_computations(*first.model, *second.model, batch);
  Json document = make_document("difference", 1);
  document["settings"] = Json::object();
  for (const SettingDifference& one : settings) document["settings"][one.key] = {one.first, one.second};
  document.update(described_json(found));
  std::string text;
  if (!settings.empty()) {
    std::vector<std::vector<std::string>> rows = {{"setting", "first", "second"}};
    for (const SettingDifference& one : settings) rows.push_back({one.key, one.first, one.second});
    text += aligned(rows, 3) + "\n";
  }
  text += table_of("parameter", found.parameters, false);
  text += table_of("place", found.places, globals.verbose);
  text += table_of("gradient of", found.gradients, globals.verbose);
  emit(globals, document, text + answer(found, !settings.empty()));
  if (found.first) throw Ended{kDiffer};
}

void add_diff(CLI::App& app, Globals& globals) {
  const auto arguments = std::make_shared<DiffArguments>();
  CLI::App* verb =
      add_verb(app, globals, "diff", "Find where two models begin to compute something else",
               "plumb diff runs/mine models/reference", [arguments, &globals] { diff(*arguments, globals); });
  verb->add_option("FIRST", arguments->first, kModelHelp)->type_name("RUN_OR_FOLDER")->required();
  verb->add_option("SECOND", arguments->second, "The same for the other model")->type_name("RUN_OR_FOLDER")->required();
  verb->add_option("--batch", arguments->batch,
                   "JSON file with token ids, as for `plumb probe` (default: random ones that both models have)")
      ->type_name("FILE");
  add_json_option(*verb, globals);
  add_seed_option(*verb, globals);
  add_exit_status(*verb, kDiffer, "the models compute different things");
}

const bool kDiffRegistered = register_verb({Heading::measure, 40, add_diff});

}  // namespace
}  // namespace plumb::app
