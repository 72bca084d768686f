// Checks of a study's values, before any measurement.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "plumb/base/error.h"
#include "plumb/decode/beam_search.h"
#include "plumb/study/config.h"
#include "plumb/study/trained_run.h"
#include "plumb/study/transfer_recipe.h"

namespace plumb {
namespace {

/// Larger than any count that a study can use.
constexpr int64_t kMostOfAStudy = 10'000'000;

/// Throws Error if a name occurs twice.
void require_distinct(const char* key, std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) throw Error(fmt::format("{} lists {} twice", key, *twice));
}

/// Throws Error, naming the key, if the value is outside [least, most].
void within(const char* key, int64_t value, int64_t least, int64_t most = kMostOfAStudy) {
  if (value < least) throw Error(fmt::format("{} is {}", key, value), fmt::format("the smallest is {}", least));
  if (value > most) throw Error(fmt::format("{} is {}", key, value), fmt::format("the largest is {}", most));
}

/// Throws Error, naming the key, if there are no values, one is outside [least, most], or one occurs twice.
void within(const char* key, const std::vector<int64_t>& values, int64_t least, int64_t most = kMostOfAStudy) {
  if (values.empty()) throw Error(fmt::format("{} is empty", key));
  std::vector<std::string> texts;
  for (const int64_t value : values) {
    within(key, value, least, most);
    texts.push_back(std::to_string(value));
  }
  require_distinct(key, std::move(texts));
}

void check_rates(const char* key, const std::vector<double>& rates) {
  if (rates.empty()) throw Error(fmt::format("{} is empty", key));
  std::vector<std::string> texts;
  for (const double rate : rates) {
    if (!(rate > 0) || !std::isfinite(rate))
      throw Error(fmt::format("{} contains {}", key, rate), "rates are positive");
    texts.push_back(fmt::format("{:g}", rate));  // as in the names of runs
  }
  require_distinct(key, std::move(texts));
}

void check_scale(const ScaleStudy& part) {
  for (const int64_t width : part.widths) within("scale.widths", width, 1);
  for (const int64_t layers : part.layers) within("scale.layers", layers, 1);
  within("scale.seeds", part.seeds, 1);
  if (part.layers.size() != part.widths.size()) {
    throw Error(fmt::format("scale.widths has {} models and scale.layers {}", part.widths.size(), part.layers.size()),
                "list the width and the layers of each model");
  }
  if (part.widths.size() < 4) {
    throw Error(fmt::format("scale.widths has {} models", part.widths.size()),
                "list at least four: a law with three parameters needs three, and one more is held out");
  }
  within("scale.items", part.items, 0);
  if (part.learning_rates.empty()) return;
  check_rates("scale.learning_rates", part.learning_rates);
  within("scale.rate_widths", part.rate_widths, 1);
  within("scale.rate_layers", part.rate_layers, 1);
  within("scale.rate_seeds", part.rate_seeds, 1);
  if (part.rate_widths.size() < 2)
    throw Error("scale.rate_widths has a single width", "list those between which the best learning rate is compared");
}

void check_transfer(const TransferStudy& part) {
  if (part.labels.empty() == part.train.empty()) {
    throw Error("[transfer] needs exactly one source of labeled text",
                "set transfer.labels, a data directory, or transfer.train, a file with lines of label, TAB, text");
  }
  if (part.models.empty()) throw Error("[transfer] has no model", "add [[transfer.model]] with its kind");
  if (!part.examples.empty()) within("transfer.examples", part.examples, 2);
  if (!(part.rate_divisor >= 1))
    throw Error(fmt::format("transfer.rate_divisor is {}", part.rate_divisor), "the smallest is 1");
  within("transfer.length_limit", part.length_limit, 1);
  within("transfer.seeds", part.seeds, 1);
  within("transfer.text_epochs", part.text_epochs, 0);
  within("transfer.epochs", part.epochs, 1);
  within("transfer.few_epochs", part.few_epochs, 1);
  within("transfer.batch_tokens", part.batch_tokens, 1);
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
    if (!scales.empty()) within(key, scales, least);
  }
  within("coordinate_check.layers", part.layers, 1);
  within("coordinate_check.seeds", part.seeds, 1);
  within("coordinate_check.steps", part.steps, 1);
  within("coordinate_check.pairs", part.pairs, 0);
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

/// Throws Error if there is no warm-up to which a decay that begins after it could be tied.
void check_decay(const std::vector<Duration>& warm_ups, TrainConfig train) {
  train.warm_up = longest_of(warm_ups);
  require_decay_start(train);
}

}  // namespace

void check_parts(const StudyConfig& study) {
  require_distinct("study.schemes", study.study.schemes);
  require_decay_start(study.train);
  if (const auto& part = study.gradients) {
    within("gradients.layers", part->layers, 1);
    within("gradients.seeds", part->seeds, 1);
    within("gradients.pairs", part->pairs, 0);
  }
  if (const auto& part = study.depth) {
    within("depth.layers", part->layers, 1);
    within("depth.seeds", part->seeds, 1);
    within("depth.pairs", part->pairs, 0);
  }
  if (const auto& part = study.signal) {
    within("signal.layers", part->layers, 1);
    within("signal.widths", part->widths, 2);
    within("signal.seeds", part->seeds, 1);
    within("signal.pairs", part->pairs, 0);
  }
  if (const auto& part = study.spectrum) {
    within("spectrum.layers", part->layers, 1);
    within("spectrum.pairs", part->pairs, 0);
    within("spectrum.steps", part->steps, 1);
    within("spectrum.probes", part->probes, 1);
    within("spectrum.batch_tokens", part->batch_tokens, 1);
    within("spectrum.layer_steps", part->layer_steps, 0);
    within("spectrum.seeds", part->seeds, 1);
    within("spectrum.seed_steps", part->seed_steps, 1);
  }
  if (const auto& part = study.training) {
    within("training.layers", part->layers, 1);
    check_warm_ups("training.warm_ups", part->warm_ups);
    check_decay(part->warm_ups, study.train);
    within("training.seeds", part->seeds, 1);
    within("training.bleu_pairs", part->bleu_pairs, 0);
    within("training.beam", part->beam, 1, kLargestBeam);
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
    within("fast_weights.size", part->size, 1, 65'536);
    within("fast_weights.keys", part->keys, 1);
    within("fast_weights.seeds", part->seeds, 1);
    within("fast_weights.steps", part->steps, 0);
  }
  if (const auto& part = study.attention_cost) {
    within("attention_cost.lengths", part->lengths, 1);
    within("attention_cost.d_model", part->d_model, 1);
    within("attention_cost.heads", part->heads, 1);
    within("attention_cost.runs", part->runs, 1);
    if (part->d_model % part->heads != 0) {
      throw Error(fmt::format("attention_cost.d_model is {} and heads {}", part->d_model, part->heads),
                  "the heads divide d_model");
    }
  }
  if (const auto& part = study.language_model) {
    within("language_model.layers", part->layers, 1);
    within("language_model.seeds", part->seeds, 1);
  }
  if (const auto& part = study.collapse) {
    within("collapse.layers", part->layers, 1);
    within("collapse.seeds", part->seeds, 1);
    within("collapse.pairs", part->pairs, 0);
    within("collapse.steps", part->steps, 0);
  }
  if (const auto& part = study.tricks) {
    within("tricks.layers", part->layers, 1);
    check_rates("tricks.sgd_learning_rate", {part->sgd_learning_rate});
    within("tricks.seeds", part->seeds, 1);
  }
  if (const auto& part = study.norms) {
    within("norms.layers", part->layers, 1);
    within("norms.tokens", part->tokens, 1, 1'000'000'000'000);
    within("norms.batch_tokens", part->batch_tokens, 1);
    within("norms.seeds", part->seeds, 1);
    within("norms.shared_batch_tokens", part->shared_batch_tokens, 1);
    within("norms.processes", part->processes, 1);
  }
  if (const auto& part = study.along_training) {
    within("along_training.layers", part->layers, 1);
    check_warm_ups("along_training.warm_ups", part->warm_ups);
    check_decay(part->warm_ups, study.train);
    if (part->every.amount() < 1)
      throw Error(fmt::format("along_training.every is {}", part->every.text()), "the smallest is 1");
    within("along_training.examples", part->examples, 1);
    within("along_training.reference_products", part->reference_products, 0);
  }
  if (const auto& part = study.backward_gain) {
    within("backward_gain.layers", part->layers, 1);
    within("backward_gain.seeds", part->seeds, 1);
    within("backward_gain.pairs", part->pairs, 0);
  }
  if (const auto& part = study.first_step) {
    within("first_step.layers", part->layers, 1);
    within("first_step.seeds", part->seeds, 1);
    within("first_step.pairs", part->pairs, 0);
    if (part->optimizers.empty()) throw Error("first_step.optimizers is empty");
  }
  if (const auto& part = study.curvature) {
    within("curvature.layers", part->layers, 1);
    within("curvature.seeds", part->seeds, 1);
    within("curvature.pairs", part->pairs, 0);
    within("curvature.steps", part->steps, 1);
    within("curvature.layer_steps", part->layer_steps, 0);
    within("curvature.batch_tokens", part->batch_tokens, 1);
  }
  if (study.coordinate_check) check_coordinate_check(*study.coordinate_check);
  if (study.scale) check_scale(*study.scale);
  if (study.transfer) check_transfer(*study.transfer);
}

}  // namespace plumb
