// What a study compares: models and training settings that differ in the keys of its axes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plumb/base/config.h"
#include "plumb/model/config.h"
#include "plumb/run/config.h"

namespace plumb {

/// [[study.axis]]: a key of [model] or [train], and its values.
struct StudyAxis {
  std::string key;
  std::vector<std::string> values;  // as in TOML, without quotes
};
void describe(Fields& field, StudyAxis& axis);

/// [[study.arm]]: settings that belong together, "key=value".
struct StudyPairing {
  std::string name;
  std::vector<std::string> set;
  std::optional<std::vector<double>> learning_rates{};  // its own sweep
};
void describe(Fields& field, StudyPairing& pairing);

/// "no warm-up", "warm-up 400", "warm-up 10Mt".
std::string warm_up_name(const Duration& warm_up);

/// The pairings together are an axis of this name.
inline constexpr const char* kPairingAxis = "arm";

/// One combination of settings. Without axes, a study has an arm for each of its residual schemes, named after it.
struct StudyArm {
  std::string name;                             // "post-ln", "post-ln, rmsnorm", "pre-ln, heads 8"
  std::map<std::string, std::string> axes;      // "model.residual" → "post-ln", "arm" → the pairing's name
  std::map<std::string, std::string> settings;  // these, and every key that a pairing sets
  ModelConfig model;
  TrainConfig train;
  std::vector<double> learning_rates;  // its pairing's own sweep; empty: that of [training]
  bool sets_depth = false;             // an axis is the number of layers, so that parts do not set it
};

/// Every combination of the schemes, the pairings, the values of the axes and several warm-ups, in the order in which
/// they are listed, the first varying most slowly. An axis or a pairing that sets model.residual takes the place of the
/// schemes. Throws Error on keys outside of [model] and [train], values that do not suit them, two axes with one key,
/// and arms of the same name.
std::vector<StudyArm> study_arms(const std::vector<std::string>& schemes, const std::vector<StudyPairing>& pairings,
                                 const std::vector<StudyAxis>& axes, const ModelConfig& model, const TrainConfig& train,
                                 const std::vector<Duration>& warm_ups = {});

}  // namespace plumb
