// Figures and tables of what is measured on models: of the arms of a study, or of a single model, as on the pages of
// `plumb probe` and `plumb spectrum`.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plumb/analysis/backward_gain.h"
#include "plumb/analysis/curvature/spectrum.h"
#include "plumb/analysis/curvature/split.h"
#include "plumb/analysis/initialization.h"
#include "plumb/report/report_parts.h"

namespace plumb {

/// One for each arm. That of a single model has the name "".
template <typename Report>
using OfArms = std::map<std::string, Report>;

/// Adds an arm's line: "Post-LN, encoder", or "Post-LN" if `what` is "", in the arm's color. That of a single model is
/// "encoder", in a color of its own.
Series& add_arm_line(Figure& figure, const std::string& arm, const std::string& what,
                     const std::string& style = "solid");

/// Lines over the layers of both stacks of each arm: solid for the decoder, dashed for the encoder; of a single model,
/// both are solid.
class StackLines {
 public:
  explicit StackLines(Figure& figure) : figure_(figure) {}

  /// Added to the figure when it is first asked for.
  Series& of(const std::string& arm, StackKind stack);

 private:
  Figure& figure_;
  std::map<std::pair<std::string, StackKind>, Series*> lines_;
};

/// The norms of the gradients of one stack's feed-forward matrices, [layer].
struct FeedForwardNorms {
  std::vector<Interval> first, second;  // of W₁ and W₂
};
/// "gradient_by_layer_decoder". `mean`: "geometric mean (5 seeds, 95% intervals)", for the caption.
Figure gradient_figure(StackKind stack, const OfArms<FeedForwardNorms>& norms, const std::string& mean);

/// The backward gains of a stack's sub-layers: "backward_gain_decoder", with a line for each arm and kind of sub-layer.
Figure gain_figure(StackKind stack, const OfArms<BackwardGainReport>& reports, int64_t seeds);

/// What an optimizer's first step does to the logits if one layer takes it: "first_step_logits_adam".
Figure logit_change_figure(const std::string& optimizer, const OfArms<FirstStepReport>& reports, int64_t seeds);

/// The density of the Hessian's eigenvalues: "hessian_density". No curve is drawn for a null spectrum.
Figure density_figure(const OfArms<const Spectrum*>& spectra);

/// The largest eigenvalue of each layer's block of the Hessian: "hessian_by_layer".
Figure block_figure(const OfArms<const std::vector<BlockSpectrum>*>& blocks);
/// The same of one stack, over seeds, beside those of the Gauss–Newton part: "curvature_by_layer_decoder".
Figure split_block_figure(StackKind stack, const OfArms<CurvatureSplitReport>& reports, int64_t seeds);

/// A matrix of which curvature consists, and its name.
struct SplitMatrix {
  const char* name;
  CurvatureSplitReport::Matrix CurvatureSplitReport::Ends::*report;
};
inline constexpr SplitMatrix kSplitMatrices[] = {
    {"Hessian", &CurvatureSplitReport::Ends::hessian},
    {"Gauss–Newton part", &CurvatureSplitReport::Ends::gauss_newton},
    {"rest", &CurvatureSplitReport::Ends::rest},
};
/// The extreme eigenvalues of these matrices, of all parameters and of each layer's block: "curvature_split".
Table curvature_table(const OfArms<CurvatureSplitReport>& reports);

}  // namespace plumb
