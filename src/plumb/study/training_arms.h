// [training] and its arms, each with its own learning-rate sweep.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plumb/analysis/sweep.h"
#include "plumb/study/trained_run.h"

namespace plumb {

/// [training]
struct TrainingStudy {
  std::vector<Duration> warm_ups;
  std::vector<double> learning_rates = {1e-3, 3e-3};
  std::vector<int64_t> layers = {6};
  int64_t seeds = 1;
  int64_t bleu_pairs = 0;
  std::string bleu_split = "test";
  int64_t beam = 1;
};
void describe(Fields& field, TrainingStudy& part);

/// What updates an arm, at each of its learning rates.
struct ArmOptimizer {
  std::string optimizer;
  std::vector<double> learning_rates;  // in order
  double clip_norm = 0;

  /// "sgd", or "sgd, clipped at 1".
  [[nodiscard]] std::string name() const;
};

/// Runs that differ only in learning rate and seed.
struct ArmId {
  std::string study_arm;
  std::string trained_arm;  // with its warm-up: StudyConfig::trained_arms
  int64_t layers = 0;
  ArmOptimizer optimizer;
  Duration warm_up;
  bool warm_up_is_swept = false;  // by [training]; otherwise it is that of the study's arm
  bool groups_warm_up = false;    // whether groups of the study's arm have a warm-up besides
  // Whether the study's arms differ in theirs; a figure is not named after it then.
  bool own_depth = false;
  bool own_optimizer = false;

  /// "warm-up 80", "no warm-up", "warm-up of its own"
  [[nodiscard]] std::string warm_up_name() const;
  [[nodiscard]] bool warms_up() const { return groups_warm_up || !warm_up.is_zero(); }
  /// "Post-LN, warm-up 80"; only the arm's name if all warm-up it has is its own.
  [[nodiscard]] std::string name() const;
  /// For files and figures: "adam", "sgd-clipped1".
  [[nodiscard]] std::string optimizer_id() const;
};

struct Arm {
  ArmId id;
  std::vector<std::vector<Planned<TrainedRun>>> runs;   // [learning rate][seed]
  std::optional<Planned<std::vector<double>>> initial;  // [seed]: the loss before training; of arms that are compared
  Sweep sweep{};                                        // once the runs are trained

  /// The runs at the best learning rate.
  [[nodiscard]] const std::vector<Planned<TrainedRun>>& best() const {
    return runs[static_cast<size_t>(&sweep.best() - sweep.points.data())];
  }
};

/// Whether two arms are drawn together: they differ only in the arm of the study, with what is its own, and in warm-up.
bool same_figure(const ArmId& a, const ArmId& b);

/// Whether the figure that shows this arm has a sweep, with more than one learning rate.
bool is_swept(const std::vector<Arm>& arms, const ArmId& shown);

/// A figure's id, such as "sweep_adam_layers6" for "sweep", or "sweep_layers6" if it has arms with different
/// optimizers.
std::string figure_name(const char* what, const ArmId& arm);

/// The learning rates that all arms drawn together with this one have in common.
std::vector<double> common_rates(const std::vector<ArmId>& arms, const ArmId& id);

// Of trained arms; the figures have those that are drawn together with `shown`.

/// Final loss by learning rate: the mean of the finished runs, each run as a point, and diverged runs above all others.
Figure sweep_figure(const StudyContext& context, const std::vector<Arm>& arms, const ArmId& shown);
/// Loss by step at the best learning rates.
Figure curves_figure(const StudyContext& context, const std::vector<Arm>& arms, const ArmId& shown);
/// What the watches measured along the runs at the best learning rates.
std::vector<Figure> watch_figures(const StudyContext& context, const std::vector<Arm>& arms, const ArmId& shown);
Table runs_table(const std::vector<Arm>& arms);
Table sweeps_table(const std::vector<Arm>& arms);

}  // namespace plumb
