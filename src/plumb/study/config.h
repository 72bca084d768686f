// A study as described by a TOML file: schemes, data, measurements and training runs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plumb/base/config.h"
#include "plumb/base/registry.h"
#include "plumb/model/config.h"
#include "plumb/run/config.h"
#include "plumb/study/arms.h"
#include "plumb/study/claims.h"

namespace plumb {

/// [study]
struct StudyHead {
  std::string title = "A study";
  std::string subtitle;
  std::vector<std::string> schemes = {"post-ln", "pre-ln"};
  int64_t seed = 1;
  std::vector<StudyPairing> arms;
  std::vector<StudyAxis> axes;
  std::vector<StudyClaim> claims;
};
void describe(Fields& field, StudyHead& head);

/// [data]: a data directory, raw text files, or the embedded corpus.
struct StudyData {
  std::string directory;
  std::vector<std::string> train;  // two files or one TSV file
  std::vector<std::string> valid;
  std::vector<std::string> test;
  int64_t pairs = 20000;
  int64_t block = 0;
  int64_t vocabulary = 2000;
  std::string measured_split = "valid";
};
void describe(Fields& field, StudyData& data);

struct StudyConfig {
  StudyHead study;
  StudyData data;
  ModelConfig model;
  TrainConfig train;
  TaskConfig task;
  WatchConfig watch;     // what [training] measures along its runs
  VariantOptions parts;  // the parts that are measured, by the name of their section

  /// The part with options of this type; null if it is not measured.
  template <typename Part>
  [[nodiscard]] const Part* part() const {
    for (const VariantOptions::value_type& each : parts) {
      if (const Part* found = each.second.find<Part>()) return found;
    }
    return nullptr;
  }
  /// Whether any part trains or takes optimizer steps with [train]'s settings.
  [[nodiscard]] bool trains() const;
  /// What the study compares. Throws Error as study_arms does.
  [[nodiscard]] std::vector<StudyArm> arms() const;
  /// The same, with `training.warm_ups` as one more axis if there are several.
  [[nodiscard]] std::vector<StudyArm> trained_arms() const;
};

struct StudyContext;
class PartPlan;

/// A part of a study: one question, measured and answered with figures and verdicts. NAME_part.cpp registers it under
/// the name of its section, with its options (study/plan.h).
struct StudyPart {
  int64_t order = 0;       // of measurement, and of the report
  bool any_depth = false;  // arms may differ in their number of layers
  std::function<bool(const Options&)> trains;
  /// Throws Error on values that are invalid together; each by itself lies in its domain.
  std::function<void(const StudyConfig&, const Options&)> check;
  std::function<PartPlan(StudyContext&, const Options&)> plan;
};
Registry<StudyPart>& study_parts();

/// The names of all parts, in the order of measurement.
std::vector<std::string> study_part_names();

/// Reads a study; parts without a section are not measured. Throws Error on unknown keys, values that cannot be
/// measured or an empty study.
StudyConfig read_study(const Config& config);

/// Throws Error on values that cannot be measured, as read_study does.
void check_parts(const StudyConfig& study);

/// The complete study as TOML, with all defaults spelled out.
std::string write_study(const StudyConfig& study);

}  // namespace plumb
