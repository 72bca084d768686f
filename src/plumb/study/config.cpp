#include "plumb/study/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "plumb/base/error.h"
#include "plumb/base/text.h"
#include "plumb/decode/beam_search.h"
#include "plumb/study/transfer_recipe.h"

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

namespace {

/// Larger than any count that a study can use.
constexpr int64_t kLargestCount = 10'000'000;

/// Throws Error, naming the key, if there are no values or one is outside [least, most].
void within(const char* key, const std::vector<int64_t>& values, int64_t least, int64_t most = kLargestCount) {
  if (values.empty()) throw Error(fmt::format("{} is empty", key));
  for (const int64_t value : values) {
    if (value < least) throw Error(fmt::format("{} is {}", key, value), fmt::format("the smallest is {}", least));
    if (value > most) throw Error(fmt::format("{} is {}", key, value), fmt::format("the largest is {}", most));
  }
}

void check_rates(const char* key, const std::vector<double>& rates) {
  if (rates.empty()) throw Error(fmt::format("{} is empty", key));
  for (const double rate : rates) {
    if (!(rate > 0) || !std::isfinite(rate))
      throw Error(fmt::format("{} contains {}", key, rate), "rates are positive");
  }
}

void check_scale(const ScaleStudy& part) {
  within("scale.widths", part.widths, 1);
  within("scale.layers", part.layers, 1);
  within("scale.seeds", {part.seeds}, 1);
  if (part.layers.size() != part.widths.size()) {
    throw Error(fmt::format("scale.widths has {} models and scale.layers {}", part.widths.size(), part.layers.size()),
                "list the width and the layers of each model");
  }
  if (part.widths.size() < 4) {
    throw Error(fmt::format("scale.widths has {} models", part.widths.size()),
                "list at least four: a law with three parameters needs three, and one more is held out");
  }
  within("scale.items", {part.items}, 0);
  if (part.learning_rates.empty()) return;
  check_rates("scale.learning_rates", part.learning_rates);
  within("scale.rate_widths", part.rate_widths, 1);
  within("scale.rate_layers", {part.rate_layers}, 1);
  within("scale.rate_seeds", {part.rate_seeds}, 1);
  if (std::set<int64_t>(part.rate_widths.begin(), part.rate_widths.end()).size() < 2)
    throw Error("scale.rate_widths has a single width", "list those between which the best learning rate is compared");
}

/// Throws Error if a name occurs twice.
void require_distinct(const char* key, std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) throw Error(fmt::format("{} lists {} twice", key, *twice));
}

void check_transfer(const TransferStudy& part) {
  if (part.labels.empty() == part.train.empty()) {
    throw Error("[transfer] needs exactly one source of labeled text",
                "set transfer.labels, a data directory, or transfer.train, a file with lines of label, TAB, text");
  }
  if (part.models.empty()) throw Error("[transfer] has no model", "add [[transfer.model]] with its kind");
  std::vector<std::string> counts;
  for (const int64_t count : part.examples) {
    within("transfer.examples", {count}, 2);
    counts.push_back(std::to_string(count));
  }
  require_distinct("transfer.examples", counts);
  if (!(part.rate_divisor >= 1))
    throw Error(fmt::format("transfer.rate_divisor is {}", part.rate_divisor), "the smallest is 1");
  within("transfer.length_limit", {part.length_limit}, 1);
  within("transfer.seeds", {part.seeds}, 1);
  within("transfer.text_epochs", {part.text_epochs}, 0);
  within("transfer.epochs", {part.epochs}, 1);
  within("transfer.few_epochs", {part.few_epochs}, 1);
  within("transfer.batch_tokens", {part.batch_tokens}, 1);
  if (part.arms.empty()) throw Error("transfer.arms is empty");
  for (const std::string& arm : part.arms) (void)transfer_recipe(arm);
  require_distinct("transfer.arms", part.arms);
  std::vector<std::string> kinds;
  for (const TransferModel& model : part.models) {
    kinds.push_back(model.kind);
    check_rates("transfer.model.learning_rates", model.learning_rates);
    check_rates("transfer.model.text_rate", {model.text_rate});
    if (!(model.pretraining_rate >= 0))
      throw Error(fmt::format("transfer.model.pretraining_rate is {}", model.pretraining_rate), "the smallest is 0");
  }
  require_distinct("transfer.model.kind", kinds);
}

void check_coordinate_check(const CoordinateCheckStudy& part) {
  // An axis with fewer than two scales is not varied. Depths compare the first layer and the last.
  for (const auto& [key, scales, least] : {std::tuple{"coordinate_check.widths", part.widths, int64_t{1}},
                                           {"coordinate_check.depths", part.depths, int64_t{2}},
                                           {"coordinate_check.batch_tokens", part.batch_tokens, int64_t{1}}}) {
    if (scales.empty()) continue;
    within(key, scales, least);
    std::vector<std::string> texts;
    for (const int64_t scale : scales) texts.push_back(std::to_string(scale));
    require_distinct(key, texts);
  }
  within("coordinate_check.layers", {part.layers}, 1);
  within("coordinate_check.seeds", {part.seeds}, 1);
  within("coordinate_check.steps", {part.steps}, 1);
  within("coordinate_check.pairs", {part.pairs}, 0);
  check_rates("coordinate_check.learning_rate", {part.learning_rate});
  if (!(part.margin >= 0)) throw Error(fmt::format("coordinate_check.margin is {}", part.margin), "the smallest is 0");
}

/// Throws Error if there are none, one is negative, two are equal, or their units differ: the longest is compared with
/// no warm-up.
void check_warm_ups(const char* key, const std::vector<Duration>& warm_ups) {
  if (warm_ups.empty()) throw Error(fmt::format("{} is empty", key));
  std::optional<Duration::Unit> unit;
  for (const Duration& each : warm_ups) {
    if (each.amount() < 0) throw Error(fmt::format("{} is {}", key, each.text()), "the smallest is 0");
    if (each.is_zero()) continue;
    if (unit.value_or(each.unit()) != each.unit())
      throw Error(fmt::format("{} mixes units", key), "give all of them in steps, all in tokens or all in epochs");
    unit = each.unit();
  }
  std::vector<std::string> texts;
  for (const Duration& each : warm_ups) texts.push_back(each.text());
  require_distinct(key, std::move(texts));
}

/// Throws Error on values that cannot be measured, before any measurement.
void check_parts(const StudyConfig& study) {
  if (const auto& part = study.gradients) {
    within("gradients.layers", {part->layers}, 1);
    within("gradients.seeds", {part->seeds}, 1);
    within("gradients.pairs", {part->pairs}, 0);
  }
  if (const auto& part = study.depth) {
    within("depth.layers", part->layers, 1);
    within("depth.seeds", {part->seeds}, 1);
    within("depth.pairs", {part->pairs}, 0);
  }
  if (const auto& part = study.signal) {
    within("signal.layers", {part->layers}, 1);
    within("signal.widths", part->widths, 2);
    within("signal.seeds", {part->seeds}, 1);
    within("signal.pairs", {part->pairs}, 0);
  }
  if (const auto& part = study.spectrum) {
    within("spectrum.layers", {part->layers}, 1);
    within("spectrum.pairs", {part->pairs}, 0);
    within("spectrum.steps", {part->steps}, 1);
    within("spectrum.probes", {part->probes}, 1);
    within("spectrum.batch_tokens", {part->batch_tokens}, 1);
    within("spectrum.layer_steps", {part->layer_steps}, 0);
    within("spectrum.seeds", {part->seeds}, 1);
    within("spectrum.seed_steps", {part->seed_steps}, 1);
  }
  if (const auto& part = study.training) {
    within("training.layers", part->layers, 1);
    check_warm_ups("training.warm_ups", part->warm_ups);
    within("training.seeds", {part->seeds}, 1);
    within("training.bleu_pairs", {part->bleu_pairs}, 0);
    within("training.beam", {part->beam}, 1, kLargestBeam);
    check_rates("training.learning_rates", part->learning_rates);
    std::set<std::pair<std::string, std::string>> trained;
    for (const TrainingArm& arm : part->arms) {
      check_rates("training.arm.learning_rates", arm.learning_rates);
      const std::vector<std::string>& all = study.study.schemes;
      for (const std::string& scheme : arm.schemes.empty() ? all : arm.schemes) {
        if (std::find(all.begin(), all.end(), scheme) == all.end())
          throw Error(fmt::format("training.arm.schemes: {} is not among study.schemes", scheme));
        if (!trained.emplace(arm.name(), scheme).second)
          throw Error(fmt::format("[[training.arm]]: two arms train {} with {}", scheme, arm.name()));
      }
    }
  }
  if (const auto& part = study.fast_weights) {
    within("fast_weights.size", {part->size}, 1, 65'536);
    within("fast_weights.keys", part->keys, 1);
    within("fast_weights.seeds", {part->seeds}, 1);
    within("fast_weights.steps", {part->steps}, 0);
  }
  if (const auto& part = study.attention_cost) {
    within("attention_cost.lengths", part->lengths, 1);
    within("attention_cost.d_model", {part->d_model}, 1);
    within("attention_cost.heads", {part->heads}, 1);
    within("attention_cost.runs", {part->runs}, 1);
  }
  if (const auto& part = study.language_model) {
    within("language_model.layers", {part->layers}, 1);
    within("language_model.seeds", {part->seeds}, 1);
  }
  if (const auto& part = study.collapse) {
    within("collapse.layers", {part->layers}, 1);
    within("collapse.seeds", {part->seeds}, 1);
    within("collapse.pairs", {part->pairs}, 0);
    within("collapse.steps", {part->steps}, 0);
  }
  if (const auto& part = study.tricks) {
    within("tricks.layers", {part->layers}, 1);
    check_rates("tricks.sgd_learning_rate", {part->sgd_learning_rate});
    within("tricks.seeds", {part->seeds}, 1);
  }
  if (const auto& part = study.norms) {
    within("norms.layers", {part->layers}, 1);
    within("norms.tokens", {part->tokens}, 1, 1'000'000'000'000);
    within("norms.batch_tokens", part->batch_tokens, 1);
    within("norms.seeds", {part->seeds}, 1);
    within("norms.shared_batch_tokens", {part->shared_batch_tokens}, 1);
    within("norms.processes", part->processes, 1);
  }
  if (const auto& part = study.along_training) {
    within("along_training.layers", {part->layers}, 1);
    check_warm_ups("along_training.warm_ups", part->warm_ups);
    if (part->every.amount() < 1)
      throw Error(fmt::format("along_training.every is {}", part->every.text()), "the smallest is 1");
    within("along_training.examples", {part->examples}, 1);
    within("along_training.reference_products", {part->reference_products}, 0);
  }
  if (const auto& part = study.backward_gain) {
    within("backward_gain.layers", {part->layers}, 1);
    within("backward_gain.seeds", {part->seeds}, 1);
    within("backward_gain.pairs", {part->pairs}, 0);
  }
  if (const auto& part = study.first_step) {
    within("first_step.layers", {part->layers}, 1);
    within("first_step.seeds", {part->seeds}, 1);
    within("first_step.pairs", {part->pairs}, 0);
    if (part->optimizers.empty()) throw Error("first_step.optimizers is empty");
  }
  if (const auto& part = study.curvature) {
    within("curvature.layers", {part->layers}, 1);
    within("curvature.seeds", {part->seeds}, 1);
    within("curvature.pairs", {part->pairs}, 0);
    within("curvature.steps", {part->steps}, 1);
    within("curvature.layer_steps", {part->layer_steps}, 0);
    within("curvature.batch_tokens", {part->batch_tokens}, 1);
  }
  if (study.coordinate_check) check_coordinate_check(*study.coordinate_check);
  if (study.scale) check_scale(*study.scale);
  if (study.transfer) check_transfer(*study.transfer);
}

}  // namespace

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

std::string write_study(const StudyConfig& study) {
  ConfigWriter writer;
  writer.section("study", study.study).section("data", study.data).section("model", study.model);
  if (study.trains()) writer.section("train", study.train).section("task", study.task);
  for_each_part(study, [&](const char* name, const auto& part) {
    if (part) writer.section(name, *part);
  });
  return writer.text();
}

}  // namespace plumb
