#include "plumb/study/config.h"

#include <fmt/format.h>

#include <algorithm>

#include "plumb/base/error.h"
#include "plumb/base/text.h"
#include "plumb/nn/residual/residual.h"
#include "plumb/study/changed_keys.h"
#include "plumb/study/training_arms.h"

namespace plumb {

void describe(Fields& field, StudyHead& head) {
  field("title", head.title, "title of the report");
  field("subtitle", head.subtitle, "subtitle of the report");
  field("schemes", head.schemes,
        "the residual schemes to compare, unless an arm or an axis sets `model.residual`; a scheme with a matching "
        "initialization (`deepnorm`) uses it",
        name_in(residual_schemes()).open_choices("/").each_once());
  field("seed", head.seed, "first seed of the measurements; also the seed of data and training");
  field.sections("arm", head.arms);
  field.sections("axis", head.axes);
  field.sections("claim", head.claims);
}

void describe(Fields& field, StudyData& data) {
  field("directory", data.directory, "a data directory; if empty, one is built as the other keys say");
  field("train", data.train,
        "source and target file, or one file of `source TAB target`; if empty, the synthetic corpus");
  field("valid", data.valid, "the same for validation; if empty, held out from `train`");
  field("test", data.test, "the same for the split `test`");
  field("pairs", data.pairs, "size of the synthetic corpus, including validation and test", count_from(1));
  field("block", data.block,
        "for language models: cuts text in one language (one file per split, or the English side of the synthetic "
        "corpus) into sequences of this many tokens; 0: sentence pairs",
        count_from(0));
  field("vocabulary", data.vocabulary, "size of the joint vocabulary", count_from(1));
  field("measured_split", data.measured_split, "the split to measure, starting from its first pair");
}

Registry<StudyPart>& study_parts() {
  static Registry<StudyPart> registry("part of a study");
  return registry;
}

std::vector<std::string> study_part_names() {
  std::vector<std::string> names = study_parts().names();
  std::sort(names.begin(), names.end(), [](const std::string& first, const std::string& second) {
    return study_parts().at(first).make.order < study_parts().at(second).make.order;
  });
  return names;
}

bool StudyConfig::trains() const {
  return std::any_of(parts.begin(), parts.end(),
                     [](const auto& part) { return study_parts().at(part.first).make.trains(part.second); });
}

std::vector<StudyArm> StudyConfig::arms() const {
  return study_arms(study.schemes, study.arms, study.axes, model, train);
}

std::vector<StudyArm> StudyConfig::trained_arms() const {
  const TrainingStudy* training = part<TrainingStudy>();
  return study_arms(study.schemes, study.arms, study.axes, model, train,
                    training == nullptr ? std::vector<Duration>() : training->warm_ups);
}

StudyConfig read_study(const Config& config) {
  StudyConfig study;
  const std::vector<std::string> parts = study_part_names();
  std::vector<std::string> sections = {"study", "data", "model", "train", "task", "watch"};
  sections.insert(sections.end(), parts.begin(), parts.end());
  config.allow_only(sections);
  config.read("study", study.study);
  config.read("data", study.data);
  config.read("model", study.model);
  config.read("train", study.train);
  config.read("task", study.task);
  config.read("watch", study.watch);
  for (const std::string& name : parts) {
    Options part = study_parts().at(name).options;
    if (config.read(name, part)) study.parts.emplace(name, std::move(part));
  }
  if (study.parts.empty()) {
    throw Error(fmt::format("{}: the study measures nothing", config.name()),
                "add at least one of the sections " + join(parts));
  }
  check_parts(study);
  return study;
}

void check_parts(const StudyConfig& study) {
  require_valid("study", study.study);
  require_valid("data", study.data);
  require_valid("watch", study.watch);
  require_decay_start(study.train);
  const StudyData& data = study.data;
  if (data.directory.empty() && data.train.empty() && !(data.valid.empty() && data.test.empty()))
    throw Error("data.valid and data.test belong to data.train, which the study lacks", "set data.train");
  if (study.train.seed != TrainConfig().seed)
    throw Error("train.seed: the seed of a study's runs is study.seed", "set study.seed");
  const std::vector<StudyArm> arms = study.arms();
  check_claims(study.study.claims, study.trained_arms());
  const bool swept = std::any_of(arms.begin(), arms.end(), [](const auto& arm) { return !arm.learning_rates.empty(); });
  if (!study.parts.contains("training")) {
    if (swept)
      throw Error("[[study.arm]]: learning_rates are those of [training], which the study lacks", "add [training]");
    if (!study.watch.every.is_zero())
      throw Error("[watch] measures along the runs of [training], which the study lacks", "add [training]");
  }
  const bool deep = std::any_of(arms.begin(), arms.end(), [](const StudyArm& arm) { return arm.sets_depth; });
  for (const auto& [name, part] : study.parts) {
    require_valid(name, part);
    if (deep && !study_parts().at(name).make.any_depth)
      throw Error(fmt::format("[{}] measures arms of one depth", name),
                  "leave it out, or give the depths one at a time: " + name + ".layers");
    study_parts().at(name).make.check(study, part);
  }
}

std::string write_study(const StudyConfig& study) {
  ConfigWriter writer;
  writer.plugins().section("study", study.study).section("data", study.data).section("model", study.model);
  if (study.trains()) writer.section("train", study.train);
  if (study.trains() || !changed_keys(study.task).empty()) writer.section("task", study.task);
  if (!study.watch.every.is_zero()) writer.section("watch", study.watch);
  for (const std::string& name : study_part_names()) {
    if (study.parts.count(name) != 0) writer.section(name, study.parts.at(name));
  }
  return writer.text();
}

}  // namespace plumb
