#include "plumb/report/measured_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "plumb/base/text.h"
#include "plumb/report/display_name.h"

namespace plumb {
namespace {

const char* style_of(SubLayerKind kind) {
  if (kind == SubLayerKind::self_attention) return "dashed";
  return kind == SubLayerKind::cross_attention ? "points" : "solid";
}

/// A layer's largest eigenvalue and its band on a logarithmic axis, above whose lower end the band stays.
void add_eigenvalue(Series& line, const LayerId& layer, double value, double low, double high) {
  line.point(layer.number(), value, std::max(low, 1e-3 * value), high);
}

/// "Post-LN's reach from −45 to 24, Pre-LN's from −10 to 9."
std::string reaches(const OfArms<const Spectrum*>& spectra) {
  std::vector<std::string> all;
  for (const auto& [arm, spectrum] : spectra) {
    if (spectrum == nullptr) continue;
    std::string ends = fmt::format("from {:.2g} to {:.2g}", spectrum->min.value, spectrum->max.value);
    replace_all(ends, "-", "−");
    const std::string whose = arm.empty() ? "They" : display_name(arm) + "'s";
    all.push_back(fmt::format("{} {}{}", whose, all.empty() ? "reach " : "", ends));
  }
  return all.empty() ? "" : fmt::format(" {}.", join(all));
}

}  // namespace

Series& add_arm_line(Figure& figure, const std::string& arm, const std::string& what, const std::string& style) {
  if (arm.empty()) return figure.add(what, what, style);
  return figure.add(display_name(arm) + (what.empty() ? "" : ", " + what), arm, style);
}

Series& StackLines::of(const std::string& arm, StackKind stack) {
  Series*& line = lines_[{arm, stack}];
  if (line == nullptr) {
    line =
        &add_arm_line(figure_, arm, to_string(stack), arm.empty() || stack == StackKind::decoder ? "solid" : "dashed");
  }
  return *line;
}

Figure gradient_figure(StackKind stack, const OfArms<FeedForwardNorms>& norms, const std::string& mean) {
  Figure figure{"gradient_by_layer_" + to_string(stack),
                fmt::format("Gradient norm by layer, {}", to_string(stack)),
                fmt::format("Frobenius norm of the mean gradient of the feed-forward matrices; {}. Solid: W₂; dashed: "
                            "W₁.",
                            mean),
                "line",
                {"layer"},
                {"gradient norm", true}};
  const auto fill = [](Series& line, const std::vector<Interval>& values) {
    for (size_t layer = 0; layer < values.size(); ++layer) line.point(layer + 1, values[layer]);
  };
  for (const auto& [arm, of_arm] : norms) {
    fill(add_arm_line(figure, arm, arm.empty() ? "W₂" : ""), of_arm.second);
    fill(add_arm_line(figure, arm, "W₁", "dashed"), of_arm.first);
  }
  return figure;
}

Figure gain_figure(StackKind stack, const OfArms<BackwardGainReport>& reports, int64_t seeds) {
  Figure figure{
      "backward_gain_" + to_string(stack),
      fmt::format("Backward gain of the sub-layers, {}", to_string(stack)),
      fmt::format("Norm of the gradient that a sub-layer passes back, divided by that of the gradient that it "
                  "is given; geometric mean ({}). Solid: feed-forward; dashed: self-attention; points: "
                  "cross-attention.",
                  seeds_in_words(seeds)),
      "line",
      {"layer"},
      {"backward gain", true}};
  for (const auto& [arm, report] : reports) {
    std::map<SubLayerKind, Series*> lines;
    for (const BackwardGainReport::Stack& of_stack : report.stacks) {
      if (of_stack.stack != stack) continue;
      for (const BackwardGainReport::Part& part : of_stack.parts) {
        const LayerId& id = part.point.id;
        if (!id.sub_layer) continue;
        Series*& line = lines[*id.sub_layer];
        if (line == nullptr) line = &add_arm_line(figure, arm, in_words(*id.sub_layer), style_of(*id.sub_layer));
        line->point(id.number(), part.gain);
      }
    }
  }
  return figure;
}

Figure logit_change_figure(const std::string& optimizer, const OfArms<FirstStepReport>& reports, int64_t seeds) {
  Figure figure{"first_step_logits_" + optimizer,
                fmt::format("What the first step of {} does to the logits, by layer", optimizer),
                fmt::format("Root mean square of the derivative of the logits, without their mean over the classes, "
                            "with respect to the learning rate when the parameters of one layer move. {}{}.",
                            reports.contains("") ? "" : "Solid: decoder; dashed: encoder; ", seeds_in_words(seeds)),
                "line",
                {"layer"},
                {"change of the logits per unit of learning rate", true}};
  StackLines lines(figure);
  for (const auto& [arm, report] : reports) {
    for (const LogitChangesReport::Layer& layer : report.logits.by_layer) {
      if (layer.layer) lines.of(arm, layer.layer->stack).point(layer.layer->number(), layer.change);
    }
  }
  return figure;
}

Figure density_figure(const OfArms<const Spectrum*>& spectra) {
  Figure figure{
      "hessian_density",
      "Spectrum of the Hessian",
      fmt::format("How many eigenvalues have which size.{} Bumps come from the method: each value found is spread out.",
                  reaches(spectra)),
      "density",
      {"eigenvalue"},
      {"density", true}};
  figure.y.floor = 1e-9;  // keeps one eigenvalue in millions visible
  for (const auto& [arm, spectrum] : spectra) {
    Series& line = add_arm_line(figure, arm, arm.empty() ? "Hessian" : "");
    if (spectrum == nullptr) {
      line.point(0, std::nan(""));
      continue;
    }
    line.x.assign(spectrum->density.x.begin(), spectrum->density.x.end());
    line.y = spectrum->density.y;
    line.low = spectrum->density.low;
    line.high = spectrum->density.high;
  }
  return figure;
}

Figure block_figure(const OfArms<const std::vector<BlockSpectrum>*>& blocks) {
  Figure figure{"hessian_by_layer",
                "Curvature by layer",
                "The largest eigenvalue of each layer's block of the Hessian, with the other layers held fixed; bands "
                "are the numerical error (the Ritz residual).",
                "line",
                {"layer"},
                {"λ_max of the block", true}};
  StackLines lines(figure);
  for (const auto& [arm, of_arm] : blocks) {
    for (const BlockSpectrum& block : *of_arm) {
      const auto [top, error] = block.spectrum.max;
      add_eigenvalue(lines.of(arm, block.id.stack), block.id, top, top - error, top + error);
    }
  }
  return figure;
}

Figure split_block_figure(StackKind stack, const OfArms<CurvatureSplitReport>& reports, int64_t seeds) {
  Figure figure{"curvature_by_layer_" + to_string(stack),
                fmt::format("Largest curvature within a layer at initialization, {}", to_string(stack)),
                fmt::format("Of each layer's diagonal block, with the other layers held fixed. Solid: Hessian; dashed: "
                            "its Gauss–Newton part; {}.",
                            seeds_in_words(seeds)),
                "line",
                {"layer"},
                {"λ_max of the block", true}};
  for (const auto& [arm, report] : reports) {
    Series& hessian = add_arm_line(figure, arm, "");
    Series& newton = add_arm_line(figure, arm, "Gauss–Newton part", "dashed");
    for (const CurvatureSplitReport::Layer& layer : report.layers) {
      if (layer.id.stack != stack) continue;
      for (const auto& [line, matrix] :
           {std::pair{&hessian, &layer.split.hessian}, {&newton, &layer.split.gauss_newton}}) {
        const Interval& max = matrix->max.over_seeds;
        add_eigenvalue(*line, layer.id, max.mean, max.low, max.high);
      }
    }
  }
  return figure;
}

Table curvature_table(const OfArms<CurvatureSplitReport>& reports) {
  Table table{"curvature_split",
              "Curvature",
              "Extreme eigenvalues of the Hessian H = G + R, of the Gauss–Newton part G = Jᵀ(∂²ℓ/∂z²)J and of the rest "
              "R, of the whole model or of a layer's diagonal block, with 95% intervals over seeds and the largest "
              "Ritz residual of a seed.",
              {"block", "matrix", "λ_max", "low", "high", "residual", "λ_min", "low", "high", "residual"}};
  const bool single = reports.contains("");
  if (!single) table.columns.insert(table.columns.begin(), "arm");
  const auto add_rows = [&](const std::string& arm, const std::string& block, const CurvatureSplitReport::Ends& split) {
    for (const SplitMatrix& matrix : kSplitMatrices) {
      const auto& [max, min] = split.*matrix.report;
      const auto add = [&](const auto&... names) {
        table.row(names..., max.over_seeds, max.error, min.over_seeds, min.error);
      };
      single ? add(block, matrix.name) : add(arm, block, matrix.name);
    }
  };
  for (const auto& [arm, report] : reports) {
    add_rows(arm, "all parameters", report.whole);
    for (const CurvatureSplitReport::Layer& layer : report.layers) add_rows(arm, to_string(layer.id), layer.split);
  }
  return table;
}

}  // namespace plumb
