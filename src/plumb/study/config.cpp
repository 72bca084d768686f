#include "plumb/study/config.h"

#include <fmt/format.h>

#include <algorithm>

#include "plumb/base/error.h"
#include "plumb/base/text.h"

namespace plumb {

void describe(Fields& field, StudyHead& head) {
  field("title", head.title);
  field("subtitle", head.subtitle);
  field("schemes", head.schemes);
  field("seed", head.seed);
}

void describe(Fields& field, StudyData& data) {
  field("directory", data.directory);
  field("train", data.train);
  field("valid", data.valid);
  field("test", data.test);
  field("pairs", data.pairs);
  field("block", data.block);
  field("vocabulary", data.vocabulary);
  field("measured_split", data.measured_split);
}

void describe(Fields& field, GradientStudy& part) {
  field("layers", part.layers);
  field("seeds", part.seeds);
  field("pairs", part.pairs);
}

void describe(Fields& field, DepthStudy& part) {
  field("layers", part.layers);
  field("seeds", part.seeds);
  field("pairs", part.pairs);
}

void describe(Fields& field, SignalStudy& part) {
  field("layers", part.layers);
  field("widths", part.widths);
  field("seeds", part.seeds);
  field("pairs", part.pairs);
}

void describe(Fields& field, SpectrumStudy& part) {
  field("layers", part.layers);
  field("pairs", part.pairs);
  field("steps", part.steps);
  field("probes", part.probes);
  field("batch_tokens", part.batch_tokens);
  field("graph_memory_gib", part.graph_memory_gib);
  field("layer_steps", part.layer_steps);
  field("seeds", part.seeds);
  field("seed_steps", part.seed_steps);
}

void describe(Fields& field, TrainingArm& arm) {
  field("optimizer", arm.optimizer);
  field("learning_rates", arm.learning_rates);
  field("clip_norm", arm.clip_norm);
  field("schemes", arm.schemes);
}

std::string TrainingArm::name() const {
  return clip_norm > 0 ? fmt::format("{}, clipped at {:g}", optimizer, clip_norm) : optimizer;
}

void describe(Fields& field, TrainingStudy& part) {
  field("warm_ups", part.warm_ups);
  field("learning_rates", part.learning_rates);
  field("layers", part.layers);
  field("seeds", part.seeds);
  field("bleu_pairs", part.bleu_pairs);
  field("bleu_split", part.bleu_split);
  field("beam", part.beam);
  field.sections("arm", part.arms);
}

void describe(Fields& field, FastWeightsStudy& part) {
  field("kinds", part.kinds);
  field("size", part.size);
  field("keys", part.keys);
  field("seeds", part.seeds);
  field("steps", part.steps);
}

void describe(Fields& field, AttentionCostStudy& part) {
  field("kinds", part.kinds);
  field("lengths", part.lengths);
  field("d_model", part.d_model);
  field("heads", part.heads);
  field("runs", part.runs);
}

void describe(Fields& field, LanguageModelStudy& part) {
  field("kinds", part.kinds);
  field("layers", part.layers);
  field("seeds", part.seeds);
}

void describe(Fields& field, CollapseStudy& part) {
  field("layers", part.layers);
  field("seeds", part.seeds);
  field("pairs", part.pairs);
  field("steps", part.steps);
}

void describe(Fields& field, TricksStudy& part) {
  field("layers", part.layers);
  field("sgd_learning_rate", part.sgd_learning_rate);
  field("seeds", part.seeds);
}

void describe(Fields& field, NormsStudy& part) {
  field("norms", part.norms);
  field("layers", part.layers);
  field("tokens", part.tokens);
  field("batch_tokens", part.batch_tokens);
  field("seeds", part.seeds);
  field("shared_batch_tokens", part.shared_batch_tokens);
  field("processes", part.processes);
}

void describe(Fields& field, BackwardGainStudy& part) {
  field("layers", part.layers);
  field("seeds", part.seeds);
  field("pairs", part.pairs);
}

void describe(Fields& field, FirstStepStudy& part) {
  field("layers", part.layers);
  field("seeds", part.seeds);
  field("pairs", part.pairs);
  field("optimizers", part.optimizers);
}

void describe(Fields& field, CurvatureStudy& part) {
  field("layers", part.layers);
  field("seeds", part.seeds);
  field("pairs", part.pairs);
  field("steps", part.steps);
  field("layer_steps", part.layer_steps);
  field("batch_tokens", part.batch_tokens);
  field("graph_memory_gib", part.graph_memory_gib);
}

void describe(Fields& field, CoordinateCheckStudy& part) {
  field("widths", part.widths);
  field("depths", part.depths);
  field("batch_tokens", part.batch_tokens);
  field("layers", part.layers);
  field("seeds", part.seeds);
  field("steps", part.steps);
  field("learning_rate", part.learning_rate);
  field("margin", part.margin);
  field("pairs", part.pairs);
}

void describe(Fields& field, AlongTrainingStudy& part) {
  field("layers", part.layers);
  field("warm_ups", part.warm_ups);
  field("every", part.every);
  field("examples", part.examples);
  field("reference_products", part.reference_products);
}

void describe(Fields& field, ScaleStudy& part) {
  field("widths", part.widths);
  field("layers", part.layers);
  field("parametrization", part.parametrization);
  field("seeds", part.seeds);
  field("learning_rates", part.learning_rates);
  field("rate_widths", part.rate_widths);
  field("rate_layers", part.rate_layers);
  field("rate_seeds", part.rate_seeds);
  field("tasks", part.tasks);
  field("benchmarks", part.benchmarks);
  field("items", part.items);
}

void describe(Fields& field, TransferModel& model) {
  field("kind", model.kind);
  field("initialization", model.initialization);
  field("pretraining_rate", model.pretraining_rate);
  field("text_rate", model.text_rate);
  field("learning_rates", model.learning_rates);
}

void describe(Fields& field, TransferStudy& part) {
  field("labels", part.labels);
  field("train", part.train);
  field("valid", part.valid);
  field("length_limit", part.length_limit);
  field("arms", part.arms);
  field("examples", part.examples);
  field("seeds", part.seeds);
  field("rate_divisor", part.rate_divisor);
  field("text_epochs", part.text_epochs);
  field("epochs", part.epochs);
  field("few_epochs", part.few_epochs);
  field("batch_tokens", part.batch_tokens);
  field.sections("model", part.models);
}

bool StudyConfig::masks() const {
  if (model.kind == "encoder" && model.pooling == "none") return true;
  return transfer && std::any_of(transfer->models.begin(), transfer->models.end(),
                                 [](const TransferModel& model) { return model.kind == "encoder"; });
}

StudyConfig read_study(const Config& config) {
  StudyConfig study;
  std::vector<std::string> sections = {"study", "data", "model", "train", "task"};
  std::vector<std::string> parts;
  for_each_part(study, [&](const char* name, const auto&) { parts.emplace_back(name); });
  sections.insert(sections.end(), parts.begin(), parts.end());
  config.allow_only(sections);
  config.read("study", study.study);
  config.read("data", study.data);
  config.read("model", study.model);
  config.read("train", study.train);
  config.read("task", study.task);
  bool empty = true;
  for_each_part(study, [&](const char* name, auto& part) {
    typename std::decay_t<decltype(part)>::value_type read;
    if (!config.read(name, read)) return;
    part = read;
    empty = false;
  });
  if (empty) {
    throw Error(fmt::format("{}: the study measures nothing", config.name()),
                "add at least one of the sections " + join(parts));
  }
  if (study.study.schemes.empty()) throw Error(fmt::format("{}: study.schemes is empty", config.name()));
  check_parts(study);
  return study;
}

std::string own_task(const TaskConfig& task) {
  const auto text = [](const TaskConfig& of) { return ConfigWriter().section("task", of).text(); };
  return text(task) == text({}) ? "" : text(task);
}

std::string write_study(const StudyConfig& study) {
  ConfigWriter writer;
  writer.section("study", study.study).section("data", study.data).section("model", study.model);
  if (study.trains()) writer.section("train", study.train);
  if (study.trains() || !own_task(study.task).empty()) writer.section("task", study.task);
  for_each_part(study, [&](const char* name, const auto& part) {
    if (part) writer.section(name, *part);
  });
  return writer.text();
}

}  // namespace plumb
