#include <fmt/format.h>

#include <algorithm>

#include "plumb/model/kind.h"
#include "plumb/study/training_arms.h"

namespace plumb {
namespace {

/// A paper's claim about training its scheme without warm-up.
struct WarmUpClaim {
  const char* scheme;
  const char* optimizer;
  bool needed;
  const char* claim;
  const char* source;
};
constexpr const char* kPostLnNeeds = "Post-LN: training without warm-up is clearly worse, or fails";
constexpr const char* kPreLnNeedsNone = "Pre-LN: trains without warm-up, losing less than 0.1 nats";
constexpr WarmUpClaim kWarmUpClaims[] = {
    {"post-ln", "adam", true, kPostLnNeeds, "Xiong et al. 2020, Figure 2"},
    {"post-ln", "adamw, clipped at 1", true, kPostLnNeeds, "Xiong et al. 2020, Figure 2, for translation with Adam"},
    {"post-ln", "sgd", true, "Post-LN: with SGD too, training without warm-up is clearly worse, or fails",
     "Xiong et al. 2020, Figure 2"},
    {"post-ln", "radam", false, "Post-LN: RAdam trains without warm-up, losing less than 0.1 nats",
     "Liu et al. 2020, arXiv 1908.03265"},
    {"pre-ln", "adam", false, kPreLnNeedsNone, "Xiong et al. 2020, section 4"},
    {"pre-ln", "adamw, clipped at 1", false, kPreLnNeedsNone, "Xiong et al. 2020, section 4"},
    {"residual-dual", "adam", false, "ResiDual: trains without warm-up, losing less than 0.1 nats",
     "Xie et al. 2023, arXiv 2304.14802"},
    {"rezero", "adam", false, "ReZero: trains without warm-up, losing less than 0.1 nats",
     "Bachlechner et al. 2020, arXiv 2003.04887"},
};

/// The difference that counts as "clearly worse", in nats per token.
constexpr double kClearlyWorse = 0.1;

/// The one with the longest warm-up of this arm of the study, with the depth and optimizer of `id`; null without a
/// warm-up.
const Arm* with_warm_up(const std::vector<Arm>& arms, const ArmId& id, const std::string& study_arm) {
  const Arm* found = nullptr;
  for (const Arm& arm : arms) {
    const bool alike = arm.id.layers == id.layers && arm.id.optimizer_id() == id.optimizer_id();
    if (arm.id.study_arm != study_arm || !alike || arm.id.warm_up.is_zero()) continue;
    if (found == nullptr || arm.id.warm_up.amount() > found->id.warm_up.amount()) found = &arm;
  }
  return found;
}

/// Judges the final loss of `first` minus that of `second`. Hyphens of the id become underscores.
void add_verdict(const StudyContext& context, const std::vector<Arm>& arms, const Arm& first, const Arm& second,
                 const Region& region, std::string id, const char* claim, const char* source, const char* difference,
                 const std::string& evidence, PartResult& result) {
  std::replace(id.begin(), id.end(), '-', '_');
  const size_t rates = first.sweep.points.size();
  result.verdicts.push_back(
      {id, claim, source, setting_of(context, model_for(context, first.id.study_arm, first.id.layers)),
       fmt::format("final validation loss {} (nats per token), {}, {}", difference, first.id.optimizer.name(),
                   rates > 1 ? fmt::format("each at its best of {} learning rates", rates) : "at one learning rate"),
       not_testable_because(judge_best(first.sweep, second.sweep, region), training_not_testable(context)), evidence,
       figure_name(is_swept(arms, first.id) ? "sweep" : "loss", first.id), first.id.study_arm});
}

/// Compares an arm without warm-up with the one with the longest.
void judge_effect(const StudyContext& context, const std::vector<Arm>& arms, const Arm& with, const Arm& without,
                  PartResult& result) {
  const ArmId& id = without.id;
  const std::string& optimizer = id.optimizer.optimizer;
  for (const WarmUpClaim& claim : kWarmUpClaims) {
    if (id.study_arm != claim.scheme || id.optimizer.name() != claim.optimizer) continue;
    add_verdict(context, arms, without, with,
                claim.needed ? Region::above(kClearlyWorse, 0) : Region::below(kClearlyWorse),
                id.study_arm + (optimizer == "adam" ? "" : "_" + optimizer) + "_warm_up", claim.claim, claim.source,
                "without warm-up − with",
                fmt::format("With warm-up {} at a learning rate of {:g}, without {} at {:g} (first seeds).",
                            with.best().front()->summary(), with.sweep.best().learning_rate,
                            without.best().front()->summary(), without.sweep.best().learning_rate),
                result);
  }
}

/// What warm-up does at each rate of both arms, as papers compare it: without − with.
void add_effects_by_rate(const Arm& without, const Arm& with, Table& table) {
  const std::vector<double>& rates = with.id.optimizer.learning_rates;
  for (size_t i = 0; i < without.runs.size(); ++i) {
    const double rate = without.id.optimizer.learning_rates[i];
    const auto same = std::find(rates.begin(), rates.end(), rate);
    if (same == rates.end()) continue;
    const Sweep::Point& of_with = with.sweep.points[static_cast<size_t>(same - rates.begin())];
    const Judgment difference =
        judge_difference(without.sweep.points[i].losses, of_with.losses, {}, kConfidence, without.sweep.failed_at);
    table.row(without.id.study_arm, without.id.layers, without.id.optimizer.name(), rate, difference.effect,
              difference.reason);
  }
}

}  // namespace

void judge_warm_up(const StudyContext& context, const std::vector<Arm>& arms, PartResult& result) {
  const std::string failed =
      fmt::format(" No run counts with more than {:.2f}, where it has learned nothing.", label_frequencies(context));
  Table table{"warm_up",
              "Effect of warm-up",
              "Validation loss without warm-up minus that with the longest warm-up, in nats per token, each at its "
              "best learning rate." +
                  failed,
              {"arm", "layers", "optimizer", "rate with", "rate without", "difference", "low", "high", "note"}};
  Table by_rate{"warm_up_by_rate",
                "Effect of warm-up at the same learning rate",
                "Validation loss without warm-up minus that with the longest warm-up, in nats per token." + failed,
                {"arm", "layers", "optimizer", "learning rate", "difference", "low", "high", "note"}};
  const ModelConfig& model = context.config.model;
  const bool predicts_masked = model_kind(model.kind).only_encodes() && model.pooling == "none";
  for (const Arm& without : arms) {
    const ArmId& id = without.id;
    if (id.warms_up()) continue;
    if (const Arm* with = with_warm_up(arms, id, id.study_arm)) {
      const Judgment difference =
          judge_difference(without.sweep.best().losses, with->sweep.best().losses, Region::above(kClearlyWorse, 0),
                           kConfidence, without.sweep.failed_at);
      table.row(id.study_arm, id.layers, id.optimizer.name(), with->sweep.best().learning_rate,
                without.sweep.best().learning_rate, difference.effect, difference.reason);
      add_effects_by_rate(without, *with, by_rate);
      judge_effect(context, arms, *with, without, result);
    }
    const Arm* post_ln = with_warm_up(arms, id, "post-ln");
    if (!predicts_masked || id.study_arm != "pre-ln" || post_ln == nullptr) continue;
    // BERT-base with Pre-LN and without warm-up reached the loss of Post-LN with warm-up in about 60% of the steps, so
    // after the same number of steps its loss is smaller.
    add_verdict(context, arms, without, *post_ln, Region::below(0), "pre_ln_learns_faster_" + id.optimizer_id(),
                "Pre-LN without warm-up learns to predict masked tokens faster than Post-LN with it",
                "Xiong et al. 2020, section 4, for BERT-base", "of Pre-LN without warm-up − of Post-LN with", "",
                result);
  }
  for (const Table& each : {table, by_rate}) {
    if (!each.rows.empty()) result.tables.push_back(each);
  }
}

}  // namespace plumb
