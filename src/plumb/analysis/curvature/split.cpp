#include "plumb/analysis/curvature/split.h"

#include <algorithm>

#include "plumb/analysis/curvature/gauss_newton.h"
#include "plumb/base/error.h"
#include "plumb/parallel/serve_products.h"

namespace plumb {
namespace {

// `which` of a product: {matrix, block}.
constexpr int64_t kHessianPart = 0, kGaussNewtonPart = 1, kAllParameters = -1;

/// The extremes of the three matrices, given the products with H and with G.
SplitExtremes extremes_of_split(const LinearOperator& hessian, const LinearOperator& gauss_newton, int64_t n,
                                const at::TensorOptions& type, int64_t steps, uint64_t seed) {
  const auto extremes = [&](const LinearOperator& multiply) {
    SpectrumOptions options;
    options.steps = steps;
    options.seed = seed;
    const Spectrum spectrum = measure_spectrum(multiply, n, type, options);
    return Extremes{spectrum.max, spectrum.min};
  };
  const LinearOperator rest = [&](const Tensor& v) { return hessian(v) - gauss_newton(v); };
  return {extremes(hessian), extremes(gauss_newton), extremes(rest)};
}

/// `positive`: the matrix has no negative eigenvalues.
CurvatureSplitReport::Value value_of(const std::vector<Extreme>& extremes, bool positive) {
  std::vector<double> values;
  CurvatureSplitReport::Value value;
  for (const Extreme& each : extremes) {
    values.push_back(each.value);
    value.error = std::max(value.error, each.error);
  }
  value.over_seeds = positive ? positive_interval(values) : confidence_interval(values);
  return value;
}

CurvatureSplitReport::Ends report_of_split(const std::vector<SplitExtremes>& splits) {
  const auto matrix = [&](Extremes SplitExtremes::*member) {
    std::vector<Extreme> max;
    std::vector<Extreme> min;
    for (const SplitExtremes& split : splits) {
      max.push_back((split.*member).max);
      min.push_back((split.*member).min);
    }
    const bool positive = member == &SplitExtremes::gauss_newton;
    return CurvatureSplitReport::Matrix{value_of(max, positive), value_of(min, positive)};
  };
  return {matrix(&SplitExtremes::hessian), matrix(&SplitExtremes::gauss_newton), matrix(&SplitExtremes::rest)};
}

}  // namespace

void describe(Fields& field, Extreme& extreme) {
  field("value", extreme.value);
  field("error", extreme.error);
}

void describe(Fields& field, ExtremeOverSeeds& extreme) {
  describe(field, extreme.over_seeds);
  field("error", extreme.error);
}

CurvatureSplit measure_curvature_split(Model& model, const std::vector<Batch>& micro_batches,
                                       const CurvatureSplitOptions& options) {
  const at::TensorOptions& type = model.parameters().options();
  HessianOptions hessian_options;
  hessian_options.label_smoothing = options.label_smoothing;
  hessian_options.graph_memory = options.graph_memory;
  hessian_options.group = options.group;
  HessianOperator hessian(model, micro_batches, hessian_options);
  GaussNewtonOperator gauss_newton(model, micro_batches, options.graph_memory, options.group);
  const std::vector<ParameterBlock> blocks = layer_blocks(model.parameters());
  const ProductFunction multiply = [&](const std::vector<int64_t>& which,
                                       const std::vector<Tensor>& vectors) -> std::vector<Tensor> {
    const bool whole = which.at(1) == kAllParameters;
    if (which[0] == kHessianPart)
      return whole ? hessian.multiply(vectors)
                   : hessian.multiply_blocks({blocks.at(static_cast<size_t>(which[1]))}, vectors);
    return {whole ? gauss_newton(vectors.at(0))
                  : gauss_newton.multiply_block(blocks.at(static_cast<size_t>(which[1])), vectors.at(0))};
  };
  CurvatureSplit result;
  serve_products(options.group, type, multiply, [&](const ProductFunction& products) {
    const auto matrix = [&](int64_t part, int64_t block) -> LinearOperator {
      return [&products, part, block](const Tensor& v) { return products({part, block}, {v}).front(); };
    };
    result.whole = extremes_of_split(matrix(kHessianPart, kAllParameters), matrix(kGaussNewtonPart, kAllParameters),
                                     hessian.size(), type, options.steps, options.seed);
    if (options.layer_steps < 1) return;
    for (int64_t i = 0; i < std::ssize(blocks); ++i) {
      const ParameterBlock& block = blocks[static_cast<size_t>(i)];
      result.layers.push_back({block.id, block.size,
                               extremes_of_split(matrix(kHessianPart, i), matrix(kGaussNewtonPart, i), block.size, type,
                                                 options.layer_steps, options.seed)});
    }
  });
  return result;
}

CurvatureSplitReport summarize(const std::vector<CurvatureSplit>& measurements) {
  if (measurements.empty()) throw Error("no curvature to summarize");
  CurvatureSplitReport report;
  std::vector<SplitExtremes> whole;
  for (const CurvatureSplit& each : measurements) whole.push_back(each.whole);
  report.whole = report_of_split(whole);
  for (size_t i = 0; i < measurements.front().layers.size(); ++i) {
    const CurvatureSplit::Layer& layer = measurements.front().layers[i];
    std::vector<SplitExtremes> splits;
    for (const CurvatureSplit& each : measurements) splits.push_back(each.layers[i].split);
    report.layers.push_back({layer.id, layer.parameters, report_of_split(splits)});
  }
  return report;
}

}  // namespace plumb
