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
  int64_t seeds = 3;
  std::vector<std::string> tasks;
  int64_t items = 200;
};

void describe(Fields& field, ScaleStudy& part);

/// A member of a family: everything that determines its runs, apart from the seed.
struct ScaleMember {
  std::string arm;
  int64_t width = 0;
  int64_t layers = 0;
};

/// The models of an arm, from smallest to largest. The first arm has all models; the others lack the largest,
/// which is held out to test the prediction.
std::vector<ScaleMember> scale_members(const StudyContext& context, const ScaleStudy& part, const std::string& arm);

/// The arm's model at another width, with the same head size and ratio of feed_forward to d_model. Throws Error if
/// the number of heads would not be whole.
ModelConfig scale_model(const StudyContext& context, const ScaleMember& member);

/// The run that trains the member.
RunRequest scale_run(const StudyContext& context, const ScaleMember& member);

using LossesBySize = std::vector<std::vector<double>>;  // [size][seed]
using ReportAnswers = std::function<void(const LossesBySize&, PartResult&)>;

/// Plans the evaluation of trained members, ordered by size, on the tasks of the study; without tasks, plans nothing.
/// The report gives accuracies and the log-probabilities of right answers by size and loss; how much more reading
/// comprehension gains than reasoning is a quantity of the plan. Throws Error if a task cannot be used with these
/// models.
ReportAnswers plan_scale_evaluation(PartPlan& plan, StudyContext& context, const ScaleStudy& part,
                                    const std::vector<ScaleMember>& members);

}  // namespace plumb
