#include "plumb/study/config.h"

#include <fmt/format.h>

#include "plumb/base/error.h"

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
}

void describe(Fields& field, TrainingStudy& part) {
  field("warm_ups", part.warm_ups);
  field("learning_rates", part.learning_rates);
  field("layers", part.layers);
  field("bleu_pairs", part.bleu_pairs);
  field("bleu_split", part.bleu_split);
  field("beam", part.beam);
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
}

namespace {

template <typename Part>
void read_part(const Config& config, const std::string& name, std::optional<Part>& part) {
  Part read;
  if (config.read(name, read)) part = read;
}

}  // namespace

StudyConfig read_study(const Config& config) {
  config.allow_only({"study", "data", "model", "train", "gradients", "depth", "signal", "spectrum", "training",
                     "fast_weights", "attention_cost", "language_model", "collapse", "tricks"});
  StudyConfig study;
  config.read("study", study.study);
  config.read("data", study.data);
  config.read("model", study.model);
  config.read("train", study.train);
  read_part(config, "gradients", study.gradients);
  read_part(config, "depth", study.depth);
  read_part(config, "signal", study.signal);
  read_part(config, "spectrum", study.spectrum);
  read_part(config, "training", study.training);
  read_part(config, "fast_weights", study.fast_weights);
  read_part(config, "attention_cost", study.attention_cost);
  read_part(config, "language_model", study.language_model);
  read_part(config, "collapse", study.collapse);
  read_part(config, "tricks", study.tricks);
  if (!study.gradients && !study.depth && !study.signal && !study.spectrum && !study.training && !study.collapse &&
      !study.tricks && !study.fast_weights && !study.attention_cost && !study.language_model) {
    throw Error(fmt::format("{}: the study measures nothing", config.name()),
                "add a section: [gradients], [depth], [signal], [spectrum], [training], [collapse], [tricks], "
                "[fast_weights], [attention_cost] or [language_model]");
  }
  if (study.study.schemes.empty()) throw Error(fmt::format("{}: study.schemes is empty", config.name()));
  return study;
}

std::string write_study(const StudyConfig& study) {
  ConfigWriter writer;
  writer.section("study", study.study).section("data", study.data).section("model", study.model);
  if (study.trains()) writer.section("train", study.train);
  if (study.gradients) writer.section("gradients", *study.gradients);
  if (study.depth) writer.section("depth", *study.depth);
  if (study.signal) writer.section("signal", *study.signal);
  if (study.spectrum) writer.section("spectrum", *study.spectrum);
  if (study.training) writer.section("training", *study.training);
  if (study.fast_weights) writer.section("fast_weights", *study.fast_weights);
  if (study.attention_cost) writer.section("attention_cost", *study.attention_cost);
  if (study.language_model) writer.section("language_model", *study.language_model);
  if (study.collapse) writer.section("collapse", *study.collapse);
  if (study.tricks) writer.section("tricks", *study.tricks);
  return writer.text();
}

}  // namespace plumb
