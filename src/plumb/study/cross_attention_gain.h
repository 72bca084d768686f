// What a decoder's cross-attention passes back: it loses the more of the gradient, the more alike the tokens are that
// it reads.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plumb/analysis/backward_gain.h"
#include "plumb/study/plan.h"

namespace plumb {

/// The gains of one model, and the mean cosine between the tokens that its cross-attention reads.
struct InitialGains : BackwardGains {
  std::optional<double> memory_similarity;
};
void describe(Fields& field, InitialGains& gains);

using Gains = std::vector<InitialGains>;  // [seed]
using GainsByArm = std::map<std::string, Planned<Gains>>;

/// The gains of this stack, or of the only one.
const StackGains& gains_of_stack(const BackwardGains& gains, StackKind stack);

/// The geometric mean of the gain over a stack's sub-layers, or over those of one kind.
double mean_gain(const StackGains& stack, std::optional<SubLayerKind> kind = {});

/// What claims about the cross-attention of encoder-decoders may be about.
void plan_cross_attention(PartPlan& plan, const GainsByArm& measured);

/// Puts a figure and a table before those of a result.
void report_cross_attention(const StudyContext& context, const GainsByArm& measured, int64_t seeds, PartResult& result);

}  // namespace plumb
