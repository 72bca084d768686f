// The models that [scale] compares: a family of growing size, trained alike.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plumb/study/trained_run.h"

namespace plumb {

/// [scale]
struct ScaleStudy {
  std::vector<int64_t> widths = {32, 64, 96, 128, 192, 256};
  std::vector<int64_t> layers = {2, 2, 3, 4, 4, 6};
  std::string parametrization = "standard";
  int64_t seeds = 3;
  std::vector<double> learning_rates;
  std::vector<int64_t> rate_widths = {32, 64, 128};
  int64_t rate_layers = 2;
  int64_t rate_seeds = 3;
  std::vector<std::string> tasks;
  std::string benchmarks = ".";
  int64_t items = 200;
};

void describe(Fields& field, ScaleStudy& part);

/// How a model's initialization and learning rates follow from its width.
enum class Parametrization {
  standard,  // [model] and [train] unchanged at every width
  mup        // maximal update, for Adam: Yang et al. 2022, arXiv 2203.03466, table 3
};
std::string display_name(Parametrization parametrization);  // "standard parametrization", "µP"

/// A member of a family: everything that determines its runs, apart from the seed.
struct ScaleMember {
  std::string arm;
  Parametrization parametrization = Parametrization::standard;
  int64_t width = 0;
  int64_t layers = 0;
  double learning_rate = 0;  // at the width of [model]
};

/// The models of an arm, from smallest to largest. The first arm has all models; the others lack the largest,
/// which is held out to test the prediction.
std::vector<ScaleMember> scale_members(const StudyContext& context, const ScaleStudy& part, const std::string& arm);

/// The arm's model at another width, with the same head size and ratio of feed_forward to d_model. Throws Error if
/// the number of heads would not be whole; with µP, if embeddings are shared, since the output matrix needs another
/// learning rate, or if embeddings are not multiplied by √d.
ModelConfig scale_model(const StudyContext& context, const ScaleMember& member);

/// µP's learning rates relative to those at `base_width`, with m = d_model/base_width: 1/m for matrices and the output,
/// 1/√m for embeddings, whose values are multiplied by √d, and 1 for everything else.
std::vector<ParameterGroup> mup_groups(const ModelConfig& model, int64_t base_width);

/// The run that trains the member. With µP, throws Error on optimizers other than Adam and AdamW, and on
/// [[train.groups]], which would override those of µP.
RunRequest scale_run(const StudyContext& context, const ScaleMember& member);

/// Adds a finding to the report.
using Report = std::function<void(PartResult&)>;

/// Plans sweeps of the learning rate at several widths, with each parametrization. They show how the best rate depends
/// on the width, without µP and with it; without learning rates, plans nothing.
Report plan_scale_rates(PartPlan& plan, StudyContext& context, const ScaleStudy& part);

using LossesBySize = std::vector<std::vector<double>>;  // [size][seed]
using ReportAnswers = std::function<void(const LossesBySize&, PartResult&)>;

/// Plans the evaluation of trained members, ordered by size, on the tasks of the study; without tasks, plans nothing.
/// The report gives accuracies and the log-probabilities of right answers by size and loss, and whether reading
/// comprehension gains more than reasoning (Rae et al. 2021). Throws Error if a task cannot be used with these models.
ReportAnswers plan_scale_evaluation(PartPlan& plan, StudyContext& context, const ScaleStudy& part,
                                    const std::vector<ScaleMember>& members);

}  // namespace plumb
