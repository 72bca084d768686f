// Norms compared with their equations in plain tensor operations and float64.
#include "plumb/nn/norm/norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "plumb/base/error.h"
#include "plumb/io/safetensors.h"
#include "support/gradcheck.h"
#include "support/ranks.h"
#include "support/test_names.h"

namespace plumb::norm_test {
namespace {

using testing::random_tensor;

constexpr int64_t kWidth = 5;
constexpr double kEps = 1e-3;

/// A norm with random parameters.
struct Subject {
  explicit Subject(const std::string& kind) : parameters(at::kDouble) {
    norm = norms().at(kind).make(parameters, "norm", kWidth, kEps);
    parameters.allocate();
    parameters.flat().copy_(random_tensor({parameters.count()}, 3) + 0.5);
  }
  [[nodiscard]] Tensor operator()(const Tensor& x, Pass pass = Pass::evaluation) const {
    return (*norm)(x, pass == Pass::training ? ForwardContext(0, 1, 1) : ForwardContext(pass));
  }
  [[nodiscard]] Tensor value(const std::string& name) const { return parameters.at("norm." + name).value.detach(); }
  [[nodiscard]] Tensor buffer(const std::string& name) const {
    for (const Parameter& each : parameters.buffers()) {
      if (each.name == "norm." + name) return each.value;
    }
    throw Error("no buffer " + name);
  }

  Parameters parameters;
  std::unique_ptr<Norm> norm;
};

const Tensor kInput = random_tensor({7, kWidth}, 1) * 2 + 1;

void expect_equal(const Tensor& found, const Tensor& expected) {
  EXPECT_LT((found - expected).abs().max().item<double>(), 1e-12);
}

TEST(Norm, LayerNormAndRmsNorm) {
  const Subject layer("layernorm");
  const Tensor centered = kInput - kInput.mean(1, true);
  expect_equal(layer(kInput), centered / (centered.square().mean(1, true) + kEps).sqrt() * layer.value("weight") +
                                  layer.value("bias"));
  const Subject rms("rmsnorm");
  expect_equal(rms(kInput), kInput / (kInput.square().mean(1, true) + kEps).sqrt() * rms.value("weight"));
}

TEST(Norm, ScaleNormAndNoam) {
  const Tensor length = (kInput.square().sum(1, true) + kEps).sqrt();
  const Subject scale("scalenorm");
  expect_equal(scale(kInput), scale.value("weight") * kInput / length);
  const Subject noam("noam");
  expect_equal(noam(kInput), std::sqrt(5.0) * kInput / length);
  EXPECT_EQ(noam.parameters.count(), 0);
}

TEST(Norm, DynamicTanhAndNone) {
  const Subject tanh("dynamic-tanh");
  expect_equal(tanh(kInput), at::tanh(tanh.value("alpha") * kInput) * tanh.value("weight") + tanh.value("bias"));
  expect_equal(Subject("none")(kInput), kInput);
}

TEST(Norm, BatchNormUsesTheBatchAndKeepsAverages) {
  const Subject batch("batchnorm");
  const Tensor mean = kInput.mean(0);
  const Tensor variance = (kInput - mean).square().mean(0);
  const auto formula = [&](const Tensor& m, const Tensor& v) {
    return (kInput - m) / (v + kEps).sqrt() * batch.value("weight") + batch.value("bias");
  };
  expect_equal(batch(kInput, Pass::measurement), formula(mean, variance));
  expect_equal(batch(kInput), formula(at::zeros_like(mean), at::ones_like(mean)));
  expect_equal(batch(kInput, Pass::training), formula(mean, variance));
  const Tensor running_mean = 0.1 * mean;
  const Tensor running_variance = 0.9 + 0.1 * variance * 7 / 6;  // the unbiased one
  expect_equal(batch.buffer("running_mean"), running_mean);
  expect_equal(batch.buffer("running_var"), running_variance);
  expect_equal(batch(kInput), formula(running_mean, running_variance));
}

// A single token has no variance, and normalizing it by its own mean would pass no gradient on to earlier layers.
TEST(Norm, BatchNormOfOneTokenIsThatOfEvaluation) {
  const Subject batch("batchnorm");
  static_cast<void>(batch(kInput, Pass::training));
  const Tensor mean = batch.buffer("running_mean").clone(), variance = batch.buffer("running_var").clone();
  const Tensor one = kInput.narrow(0, 2, 1).clone().requires_grad_(true);
  const Tensor y = batch(one, Pass::training);
  expect_equal(y, (one - mean) / (variance + kEps).sqrt() * batch.value("weight") + batch.value("bias"));
  expect_equal(gradients({y.sum()}, {one}, {})[0], batch.value("weight") / (variance + kEps).sqrt());
  expect_equal(batch.buffer("running_mean"), mean);
  expect_equal(batch.buffer("running_var"), variance);
}

/// Rows rank, rank + size, … of a matrix.
Tensor rows_of(const Tensor& x, const Group& group) {
  return x.slice(0, group.rank(), x.size(0), group.size()).contiguous();
}

TEST(Norm, BatchNormCountsTheTokensOfAllRanks) {
  const Tensor x = random_tensor({11, kWidth}, 1), weights = random_tensor({11, kWidth}, 2);
  // The formula over all tokens.
  const Tensor whole = x.clone().requires_grad_(true);
  const Tensor expected = (whole - whole.mean(0)) / (whole.var(0, false) + kEps).sqrt();
  const Tensor gradient = gradients({(expected * weights).sum()}, {whole}, {})[0];
  test::as_ranks(3, [&](const Group& group) {
    const Subject batch("batchnorm");
    batch.value("weight").detach().fill_(1);
    batch.value("bias").detach().fill_(0);
    ForwardContext context(0.0, 1, 1, group);
    const Tensor share = rows_of(x, group).requires_grad_(true);
    const Tensor y = (*batch.norm)(share, context);
    expect_equal(y, rows_of(expected, group));
    expect_equal(gradients({(y * rows_of(weights, group)).sum()}, {share}, {})[0], rows_of(gradient, group));
    expect_equal(batch.buffer("running_mean"), 0.1 * x.mean(0));
    expect_equal(batch.buffer("running_var"), 0.9 + 0.1 * x.var(0, true));
  });
}

// The same numbers as for all tokens in one process; a rank without tokens of its own adds nothing, and passes nothing
// on.
TEST(Norm, PowerNormCountsTheTokensOfAllRanks) {
  const Tensor x = random_tensor({11, kWidth}, 1), weights = random_tensor({11, kWidth}, 2);
  const Tensor nu = random_tensor({kWidth}, 5);
  const Tensor phi = x.square().mean(0), psi = (phi + kEps).sqrt(), y = x / psi;
  test::as_ranks(4, [&](const Group& group) {
    const Subject power("powernorm");
    power.value("weight").detach().fill_(1);
    power.value("bias").detach().fill_(0);
    power.buffer("running_nu").copy_(nu);
    ForwardContext context(0.0, 1, 1, group);
    const bool idle = group.rank() == 3;
    context.set_placeholder(idle);
    const auto own = [&](const Tensor& all) { return all.slice(0, group.rank(), all.size(0), 3).contiguous(); };
    const Tensor share = (idle ? 10 * x : own(x)).detach().requires_grad_(true);
    const Tensor found = (*power.norm)(share, context);
    const Tensor loss = (found * (idle ? 0 * weights : own(weights))).sum();
    const Tensor gradient = gradients({loss}, {share}, {})[0];
    if (idle) {
      expect_equal(gradient, at::zeros_like(x));
    } else {
      expect_equal(found, own(y));
      expect_equal(gradient, own((weights - nu * y) / psi));
    }
    expect_equal(power.buffer("running_phi"), phi);
    expect_equal(power.buffer("running_nu"), nu * (1 - 0.1 * y.square().mean(0)) + 0.1 * (weights * y).mean(0));
  });
}

// Σx² − (Σx)²/n of numbers around 1000 has no correct digit in float32.
TEST(Norm, BatchNormKeepsItsDigitsFarFromZeroOverRanks) {
  const Tensor x = (random_tensor({20, kWidth}, 1) + 1000).to(at::kFloat);
  const Tensor exact = x.to(at::kDouble);
  const Tensor expected = (exact - exact.mean(0)) / (exact.var(0, false) + kEps).sqrt();
  test::as_ranks(2, [&](const Group& group) {
    Parameters parameters(at::kFloat);
    const auto norm = norms().at("batchnorm").make(parameters, "norm", kWidth, kEps);
    parameters.allocate();
    parameters.at("norm.weight").value.detach().fill_(1);
    const Tensor y = (*norm)(rows_of(x, group), ForwardContext(Pass::measurement, group));
    EXPECT_LT((y - rows_of(expected, group)).abs().max().item<double>(), 1e-4);
  });
}

TEST(Norm, BuffersAreSavedAndLoaded) {
  const Subject trained("batchnorm");
  static_cast<void>(trained(kInput, Pass::training));
  const NamedTensors saved = named_values(trained.parameters);
  EXPECT_EQ(saved.size(), 4U);
  const Subject loaded("batchnorm");
  load_parameters(loaded.parameters, saved, "here");
  expect_equal(loaded(kInput), trained(kInput));
  EXPECT_THROW(load_parameters(loaded.parameters, {saved[0], saved[1], saved[2]}, "here"), Error);
}

TEST(Norm, PowerNormOfABatchAndOfAnAverage) {
  const Subject power("powernorm");
  const Tensor square = kInput.square().mean(0);
  const auto formula = [&](const Tensor& x, const Tensor& phi) {
    return x / (phi + kEps).sqrt() * power.value("weight") + power.value("bias");
  };
  expect_equal(power(kInput, Pass::measurement), formula(kInput, square));
  expect_equal(power(kInput), formula(kInput, at::ones_like(square)));
  expect_equal(power(kInput, Pass::training), formula(kInput, square));  // the first step: its own batch
  const Tensor next = random_tensor({4, kWidth}, 9);
  expect_equal(power(next, Pass::training), formula(next, square));  // the second: the average before it
  const Tensor averaged = 0.9 * square + 0.1 * next.square().mean(0);
  expect_equal(power(next), formula(next, averaged));
}

TEST(Norm, PowerNormsGradientIsThatOfThePaper) {
  const Subject power("powernorm");
  static_cast<void>(power(kInput, Pass::training));
  const Tensor nu = random_tensor({kWidth}, 5);
  power.buffer("running_nu").copy_(nu);
  const Tensor psi = (power.buffer("running_phi") + kEps).sqrt();
  const Tensor x = random_tensor({4, kWidth}, 9).requires_grad_(true);
  const Tensor weights = random_tensor({4, kWidth}, 11);
  const Tensor found = gradients({power(x, Pass::training)}, {x}, {weights})[0];
  const Tensor y = x.detach() / psi;
  const Tensor h = power.value("weight") * weights;
  expect_equal(found, (h - nu * y) / psi);
  expect_equal(power.buffer("running_nu"), nu * (1 - 0.1 * y.square().mean(0)) + 0.1 * (h * y).mean(0));
}

class EveryNorm : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryNorm, CanBeDifferentiatedTwice) {
  const Subject subject(GetParam());
  for (const Pass pass : {Pass::measurement, Pass::evaluation}) {
    testing::expect_both(
        [&](const std::vector<Tensor>& inputs) { return std::vector<Tensor>{subject(inputs[0], pass)}; },
        {random_tensor({4, kWidth}, 7)});
  }
}

INSTANTIATE_TEST_SUITE_P(Norm, EveryNorm, ::testing::ValuesIn(norms().names()), test::name_of_test);

}  // namespace
}  // namespace plumb::norm_test
