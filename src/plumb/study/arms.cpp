#include "plumb/study/arms.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "plumb/base/error.h"
#include "plumb/base/text.h"
#include "plumb/nn/init/init.h"
#include "plumb/report/report_parts.h"
#include "plumb/run/run_summary.h"

namespace plumb {
namespace {

constexpr const char* kResidual = "model.residual";

/// A value of an axis.
struct AxisValue {
  std::string label;
  std::vector<std::string> set;  // "key=value"
  std::vector<double> learning_rates{};
};
struct ArmAxis {
  std::string axis;  // its key; "arm" for the pairings
  std::vector<AxisValue> values;
};

std::string key_of(const std::string& assignment) { return assignment.substr(0, assignment.find('=')); }

/// "rmsnorm" for a word; "heads 8" where the value alone says nothing.
std::string label_of(const std::string& key, const std::string& value) {
  if (key == kResidual) return value;
  const bool says_nothing = value.empty() || value == "true" || value == "false" || value == "none" ||
                            value.find_first_not_of("0123456789.+-e%") == std::string::npos;
  if (!says_nothing) return value;
  std::string name = last_key_part(key);
  std::replace(name.begin(), name.end(), '_', ' ');
  return name + ' ' + value;
}

ArmAxis axis_of(const StudyAxis& axis) {
  ArmAxis made{axis.key, {}};
  for (const std::string& value : axis.values)
    made.values.push_back({label_of(axis.key, value), {axis.key + "=" + value}});
  return made;
}

ArmAxis axis_of(const std::vector<Duration>& warm_ups) {
  ArmAxis made{"train.warm_up", {}};
  for (const Duration& each : warm_ups) made.values.push_back({warm_up_name(each), {made.axis + "=" + each.text()}});
  return made;
}

ArmAxis axis_of(const std::vector<StudyPairing>& pairings) {
  ArmAxis made{kPairingAxis, {}};
  for (const StudyPairing& pairing : pairings) {
    if (pairing.name.empty()) throw Error("[[study.arm]]: an arm has no name", "give it one: the report calls it so");
    std::set<std::string> keys;
    for (const std::string& assignment : pairing.set) {
      if (!keys.insert(key_of(assignment)).second)
        throw Error(fmt::format("[[study.arm]]: '{}' sets {} twice", pairing.name, key_of(assignment)),
                    "leave one of them out");
    }
    made.values.push_back({pairing.name, pairing.set, pairing.learning_rates.value_or(std::vector<double>{})});
  }
  return made;
}

bool sets(const std::vector<ArmAxis>& all, const std::string& key) {
  return std::any_of(all.begin(), all.end(), [&](const ArmAxis& axis) {
    return std::any_of(axis.values.begin(), axis.values.end(), [&](const AxisValue& value) {
      return std::any_of(value.set.begin(), value.set.end(), [&](const auto& set) { return key_of(set) == key; });
    });
  });
}

void require_model_or_train(const std::string& assignment) {
  const std::string key = key_of(assignment);
  if (key == "train.seed")
    throw Error("study: train.seed cannot be an axis", "the parts of a study have keys for the number of seeds");
  if (assignment.find('=') != std::string::npos && (key.starts_with("model.") || key.starts_with("train."))) return;
  throw Error(fmt::format("study: '{}' is not a key of [model] or [train]", key),
              "an axis has key = \"model.norm\", and an arm set = [\"model.norm=rmsnorm\"]");
}

/// A scheme that has an initialization of its own is not itself without it, in either stack.
void give_own_initialization(StudyArm& arm) {
  if (arm.settings.contains("model.initialization")) return;
  ModelConfig& model = arm.model;
  const auto own = [usual = model.initialization](const std::string& scheme) {
    return initializations().entries().contains(scheme) ? scheme : usual;
  };
  const std::string encoder = own(residual_of(model, StackKind::encoder));
  model.initialization = own(model.residual);
  if (encoder != model.initialization && model.encoder_initialization == "same") model.encoder_initialization = encoder;
}

/// The arm with these values, one of each axis.
StudyArm combined(const std::vector<std::pair<const ArmAxis*, const AxisValue*>>& chosen, const ModelConfig& model,
                  const TrainConfig& train) {
  StudyArm arm{.model = model, .train = train};
  Config config;
  std::vector<std::string> labels, fixed;
  for (const auto& [axis, value] : chosen) {
    (axis->values.size() > 1 ? labels : fixed).push_back(value->label);
    arm.axes[axis->axis] = arm.settings[axis->axis] = value->label;
    if (!value->learning_rates.empty()) arm.learning_rates = value->learning_rates;
    for (const std::string& assignment : value->set) {
      require_model_or_train(assignment);
      config.set(assignment);
      const std::string key = key_of(assignment);
      arm.settings[key] = assignment.substr(assignment.find('=') + 1);
      arm.sets_depth = arm.sets_depth || key == "model.encoder_layers" || key == "model.decoder_layers";
    }
  }
  arm.name = join(labels.empty() ? fixed : labels);
  try {
    config.read("model", arm.model);
    config.read("train", arm.train);
  } catch (const Error& error) {
    const std::string what = error.what();  // "--set model.norm=dyt: unknown norm 'dyt'"
    throw Error(fmt::format("[study], the arm '{}': {}", arm.name, what.starts_with("--set ") ? what.substr(6) : what),
                error.hint());
  }
  give_own_initialization(arm);
  return arm;
}

/// Throws Error if an axis changes no arm, which the report would take for "no effect".
void require_effect(const StudyAxis& axis, const std::vector<StudyArm>& arms) {
  constexpr std::string_view kModel = "model.";
  if (!axis.key.starts_with(kModel)) return;
  const std::string key = axis.key.substr(kModel.size());
  if (std::any_of(arms.begin(), arms.end(), [&](const auto& arm) { return has_what_it_sets(arm.model, key); })) return;
  const std::string& kind = arms.front().model.kind;
  throw Error(fmt::format("[[study.axis]]: {} changes nothing, since model.kind is \"{}\"", axis.key, kind),
              key == "layers" ? "the depth of a Transformer is model.encoder_layers and model.decoder_layers"
                              : "`plumb help " + axis.key + "` says what reads it");
}

}  // namespace

void describe(Fields& field, StudyAxis& axis) {
  field("key", axis.key, "a key of [model] or [train], such as `model.norm`");
  field("values", axis.values, "its values", Domain().of_any_type().each_once());
}

void describe(Fields& field, StudyPairing& pairing) {
  field("name", pairing.name, "what the report calls it");
  field("set", pairing.set, "settings such as `model.norm=rmsnorm`");
  field("learning_rates", pairing.learning_rates, "its own `training.learning_rates`", above(0).each_once());
}

std::string warm_up_name(const Duration& warm_up) {
  return warm_up.is_zero() ? "no warm-up" : "warm-up " + warm_up.text();
}

std::vector<StudyArm> study_arms(const std::vector<std::string>& schemes, const std::vector<StudyPairing>& pairings,
                                 const std::vector<StudyAxis>& axes, const ModelConfig& model, const TrainConfig& train,
                                 const std::vector<Duration>& warm_ups) {
  std::vector<ArmAxis> all;
  if (!pairings.empty()) all.push_back(axis_of(pairings));
  for (const StudyAxis& axis : axes) {
    if (std::any_of(all.begin(), all.end(), [&](const ArmAxis& other) { return other.axis == axis.key; }))
      throw Error(fmt::format("[[study.axis]]: two axes have the key {}", axis.key), "give all values to one of them");
    if (!pairings.empty() && sets({all.front()}, axis.key))
      throw Error(fmt::format("[[study.axis]]: an arm sets {} too", axis.key), "set it in one place");
    all.push_back(axis_of(axis));
  }
  if (warm_ups.size() > 1) all.push_back(axis_of(warm_ups));
  if (!sets(all, kResidual)) all.insert(all.begin(), axis_of(StudyAxis{kResidual, schemes}));

  std::vector<StudyArm> arms;
  std::map<std::string, std::string> files;  // the name of an arm
  std::vector<std::pair<const ArmAxis*, const AxisValue*>> chosen;
  const auto choose = [&](const auto& next, size_t axis) -> void {
    if (axis == all.size()) {
      const StudyArm& arm = arms.emplace_back(combined(chosen, model, train));
      if (const auto [same, added] = files.emplace(file_name(arm.name), arm.name); !added) {
        throw Error(same->second == arm.name
                        ? fmt::format("[study]: two arms are called '{}'", arm.name)
                        : fmt::format("[study]: '{}' and '{}' would have the same files", same->second, arm.name),
                    "give them different settings, or names that differ in letters or digits");
      }
      return;
    }
    for (const AxisValue& value : all[axis].values) {
      chosen.emplace_back(&all[axis], &value);
      next(next, axis + 1);
      chosen.pop_back();
    }
  };
  choose(choose, 0);
  for (const StudyAxis& axis : axes) require_effect(axis, arms);
  return arms;
}

}  // namespace plumb
