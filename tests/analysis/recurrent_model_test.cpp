// Measurements of a recurrent model: its probe, and its Hessian compared with differences of gradients and with an
// independent dense one.
#include <gtest/gtest.h>

#include <cmath>

#include "plumb/analysis/curvature/dense.h"
#include "plumb/analysis/curvature/hessian.h"
#include "plumb/analysis/probe.h"
#include "plumb/base/json.h"
#include "plumb/data/sequences.h"
#include "plumb/io/safetensors.h"
#include "support/gradcheck.h"
#include "support/paths.h"

namespace plumb {
namespace {

/// The model, weights and batch from the files NAME.toml, NAME.safetensors and NAME.json.
struct RecurrentCase {
  std::unique_ptr<Model> model;
  Json golden;
  Batch batch;

  explicit RecurrentCase(const std::filesystem::path& base) {
    const auto with = [&](const char* extension) { return std::filesystem::path(base).concat(extension); };
    ModelConfig config;
    Config::from_file(with(".toml")).read("model", config);
    model = make_model(config, at::kDouble);
    load_parameters(model->parameters(), load_safetensors(with(".safetensors")), "golden");
    golden = read_json(with(".json"));
    batch = batch_from_json(golden["batch"]);
  }
};

TEST(RecurrentProbe, ShowsTheLayersAndNoTheory) {
  const RecurrentCase given(test::source_directory() / "tests" / "golden" / "awd_lstm_tiny");
  ProbeOptions options;
  options.seeds = {1, 2};
  options.type = at::kDouble;
  const ProbeReport report = probe(given.model->config(), std::nullopt, {given.batch}, options);
  EXPECT_EQ(report.gradient_norm.size(), given.model->parameters().all().size());
  for (const int64_t layer : {0, 1}) {
    const SignalReport* output = report.find(ActivationPoint{{StackKind::decoder, layer}, Point::output});
    ASSERT_NE(output, nullptr) << layer;
    EXPECT_GT(output->mean_square.mean, 0);
    EXPECT_FALSE(output->theory.has_value());
  }
  EXPECT_TRUE(report.feed_forward.empty());
  EXPECT_TRUE(report.theory.layer_slopes.empty());
  EXPECT_FALSE(report.theory.theorem_1.has_value());
  EXPECT_EQ(report.theory.differs.front(), "the layers are recurrent");
}

// With the weights of a file, the probe reports the loss and gradients of the file.
TEST(RecurrentProbe, OfGivenWeightsHasTheirLossAndGradients) {
  const RecurrentCase given(test::source_directory() / "tests" / "golden" / "awd_lstm_tiny");
  ProbeOptions options;
  options.type = at::kDouble;
  const ProbeReport report =
      probe(given.model->config(), named_values(given.model->parameters()), {given.batch}, options);
  EXPECT_NEAR(report.loss.mean, given.golden["loss"].get<double>(), 1e-10);
  for (const auto& [name, norm] : report.gradient_norm)
    EXPECT_NEAR(norm, given.golden["gradient_norm"].at(name).get<double>(), 1e-10) << name;
}

TEST(RecurrentCurvature, HessianVectorProductsAreDifferencesOfGradients) {
  RecurrentCase given(test::source_directory() / "tests" / "golden" / "awd_lstm_tiny");
  HessianOperator hessian(*given.model, {given.batch});
  const Tensor u = testing::random_tensor({hessian.size()}, 1), v = testing::random_tensor({hessian.size()}, 2);
  const Tensor product = hessian(v);
  EXPECT_NEAR(u.dot(product).item<double>(), v.dot(hessian(u)).item<double>(), 1e-10);

  const Tensor flat = given.model->parameters().flat();
  const Tensor there = flat.clone();
  const auto gradient_at = [&](double step) {
    flat.copy_(there + step * v);
    Tensor gradient = mean_loss(*given.model, {given.batch}).gradient;
    flat.copy_(there);
    return gradient;
  };
  constexpr double kStep = 1e-5;
  const Tensor quotient = (gradient_at(kStep) - gradient_at(-kStep)) / (2 * kStep);
  EXPECT_LT((product - quotient).abs().max().item<double>(), 1e-7);
}

TEST(RecurrentCurvature, DenseSpectrumIsTheIndependentOne) {
  PLUMB_REQUIRE_SHARED("golden/awd_tiny.json");
  RecurrentCase given(test::shared_directory() / "golden" / "awd_tiny");
  HessianOperator hessian(*given.model, {given.batch});
  const DenseSpectrum found =
      dense_spectrum([&](const Tensor& v) { return hessian(v); }, hessian.size(), given.model->parameters().options());
  const Json& expected = given.golden["hessian"];
  double trace = 0, squares = 0;
  for (const double value : found.eigenvalues) {
    trace += value;
    squares += value * value;
  }
  EXPECT_NEAR(trace, expected["trace"].get<double>(), 1e-9);
  EXPECT_NEAR(std::sqrt(squares), expected["frobenius"].get<double>(), 1e-9);
  const auto bottom = expected["bottom"].get<std::vector<double>>(), top = expected["top"].get<std::vector<double>>();
  for (size_t i = 0; i < bottom.size(); ++i) EXPECT_NEAR(found.eigenvalues[i], bottom[i], 1e-9) << i;
  for (size_t i = 0; i < top.size(); ++i)
    EXPECT_NEAR(found.eigenvalues[found.eigenvalues.size() - top.size() + i], top[i], 1e-9) << i;
}

}  // namespace
}  // namespace plumb
