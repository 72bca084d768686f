// Measurements shared by several processes compared with those of one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "plumb/analysis/curvature/gauss_newton.h"
#include "plumb/analysis/curvature/spectrum.h"
#include "plumb/analysis/initialization.h"
#include "plumb/analysis/probe.h"
#include "plumb/base/error.h"
#include "plumb/train/launched.h"
#include "support/batches.h"
#include "support/contains.h"
#include "support/processor_time.h"
#include "support/ranks.h"
#include "tiny_translator.h"

namespace plumb {
namespace {

using test::as_ranks;
using test::initialized;
using test::tiny_translator;

constexpr double kSharedRounding = 1e-12;

/// The first `count` of four micro-batches with sentences of different lengths; the third has weights.
std::vector<Batch> ragged_batches(int64_t count) {
  using Words = std::vector<int32_t>;
  std::vector<Batch> batches(4);
  append(batches[0], Words{4, 5, 6}, Words{6}, 0);
  append(batches[0], Words{7}, Words{5, 4}, 1);
  append(batches[1], Words{5}, Words{4, 4, 5, 7, 6}, 2);
  append(batches[2], Words{6, 6, 4, 5, 7}, Words{4, 5}, 3);
  append(batches[3], Words{4, 7}, Words{7, 7}, 4);
  append(batches[3], Words{5, 5}, Words{6, 4, 5}, 5);
  append(batches[3], Words{6}, Words{5}, 6);
  batches[2].weights = {1.0, 0.5, 2.0};
  batches.resize(static_cast<size_t>(count));
  return batches;
}

double relative_distance(const Tensor& found, const Tensor& expected) {
  return ((found - expected).norm() / expected.norm()).item<double>();
}

/// Equal within rounding, relative to `scale`; NaN, for undefined values, in both or neither.
void expect_same(double found, double expected, double scale, const std::string& what,
                 double rounding = kSharedRounding) {
  EXPECT_EQ(std::isnan(found), std::isnan(expected)) << what;
  if (!std::isnan(expected)) {
    EXPECT_NEAR(found, expected, rounding * std::abs(scale)) << what;
  }
}
void expect_same(double found, double expected, const std::string& what, double rounding = kSharedRounding) {
  expect_same(found, expected, expected, what, rounding);
}

struct Division {
  int64_t processes, micro_batches;
};

class SharedMeasurement : public ::testing::TestWithParam<Division> {
 protected:
  [[nodiscard]] static int64_t processes() { return GetParam().processes; }
  [[nodiscard]] static std::vector<Batch> batches() { return ragged_batches(GetParam().micro_batches); }

  /// Rank 0's report. Only rank 0 reports progress and has eigenvalues.
  [[nodiscard]] static SpectrumReport spectrum(const SpectrumOptions& options, const ModelConfig& config) {
    SpectrumReport report;
    as_ranks(processes(), [&](const Group& group) {
      const std::unique_ptr<Model> model = initialized(config);
      SpectrumOptions own = options;
      own.hessian.group = group;
      bool reported = false;
      SpectrumReport found =
          measure_spectrum(*model, batches(), own, [&](int64_t, int64_t, const std::string&) { reported = true; });
      EXPECT_EQ(reported, group.rank() == 0);
      EXPECT_EQ(found.whole || !found.blocks.empty(), group.rank() == 0);
      if (group.rank() == 0) report = std::move(found);
    });
    return report;
  }
};

/// What is made of many products, whose every division SharedMeasurement tests.
class SharedSpectrum : public SharedMeasurement {};

void expect_same_spectrum(const Spectrum& found, const Spectrum& one, const std::string& what) {
  const double largest = std::max(std::abs(one.max.value), std::abs(one.min.value));
  expect_same(found.max.value, one.max.value, largest, what + " max");
  expect_same(found.min.value, one.min.value, largest, what + " min");
  expect_same(found.frobenius.mean, one.frobenius.mean, what + " frobenius");
  expect_same(found.trace.mean, one.trace.mean, one.frobenius.mean, what + " trace");
}

void expect_same_report(const SpectrumReport& found, const SpectrumReport& one, int64_t processes) {
  EXPECT_EQ(found.processes, processes);
  EXPECT_EQ(found.parameters, one.parameters);
  EXPECT_EQ(found.tokens, one.tokens);
  EXPECT_EQ(found.micro_batches, one.micro_batches);
  EXPECT_EQ(found.graphs_kept, one.graphs_kept);
  expect_same(found.loss, one.loss, "loss");
  expect_same(found.gradient_norm, one.gradient_norm, "gradient norm");
}

TEST_P(SharedMeasurement, GradientsAndProductsAreThoseOfOneProcess) {
  const std::unique_ptr<Model> model = initialized(tiny_translator());
  const std::vector<ParameterBlock> blocks = layer_blocks(model->parameters());
  HessianOptions options;
  options.label_smoothing = 0.1;
  HessianOperator hessian(*model, batches(), options);
  GaussNewtonOperator gauss_newton(*model, batches());
  const Tensor v = random_probe(hessian.size(), at::kDouble, 3, 0);
  const Tensor part = random_probe(blocks[1].size, at::kDouble, 3, 1);
  const MeanLoss mean = mean_loss(*model, batches(), 0.1);
  const Tensor product = hessian(v), newton = gauss_newton(v);
  const Tensor block = hessian.multiply_blocks({blocks[1]}, {part}).front();
  const Tensor newton_block = gauss_newton.multiply_block(blocks[1], part);
  as_ranks(processes(), [&](const Group& group) {
    const std::unique_ptr<Model> own = initialized(tiny_translator());
    const MeanLoss found = mean_loss(*own, batches(), 0.1, model_loss, group);
    expect_same(found.loss, mean.loss, "loss");
    EXPECT_LT(relative_distance(found.gradient, mean.gradient), kSharedRounding);
    for (const int64_t memory : {int64_t{1} << 30, int64_t{0}}) {  // graphs kept, and rebuilt
      HessianOptions shared = options;
      shared.group = group;
      shared.graph_memory = memory;
      HessianOperator shared_hessian(*own, batches(), shared);
      GaussNewtonOperator shared_newton(*own, batches(), memory, group);
      EXPECT_EQ(shared_hessian.tokens(), hessian.tokens());
      EXPECT_LT(relative_distance(shared_hessian(v), product), kSharedRounding);
      EXPECT_LT(relative_distance(shared_newton(v), newton), kSharedRounding);
      EXPECT_LT(relative_distance(shared_hessian.multiply_blocks({blocks[1]}, {part}).front(), block), kSharedRounding);
      EXPECT_LT(relative_distance(shared_newton.multiply_block(blocks[1], part), newton_block), kSharedRounding);
      const Tensor same = shared_hessian(v);
      for (const Tensor& other : group.all_gather(same)) EXPECT_TRUE(at::equal(other, same));
    }
  });
}

TEST_P(SharedSpectrum, SpectraAreThoseOfOneProcess) {
  const std::unique_ptr<Model> model = initialized(tiny_translator());
  SpectrumOptions options;
  options.steps = 150;  // so that the extremes have converged
  options.probes = options.at_once = 2;
  const SpectrumReport one = measure_spectrum(*model, batches(), options);
  const SpectrumReport found = spectrum(options, tiny_translator());
  expect_same_report(found, one, processes());
  expect_same_spectrum(found.whole.value(), one.whole.value(), "whole");
}

TEST_P(SharedSpectrum, AllEigenvaluesAreThoseOfOneProcess) {
  ModelConfig config = tiny_translator();
  config.kind = "decoder";
  const std::unique_ptr<Model> model = initialized(config);
  SpectrumOptions options;
  options.dense = true;
  options.hessian.label_smoothing = 0.1;
  const SpectrumReport one = measure_spectrum(*model, batches(), options);
  const SpectrumReport found = spectrum(options, config);
  expect_same_report(found, one, processes());
  ASSERT_EQ(found.whole.value().eigenvalues.size(), one.whole.value().eigenvalues.size());
  for (size_t i = 0; i < one.whole->eigenvalues.size(); ++i) {
    expect_same(found.whole->eigenvalues[i], one.whole->eigenvalues[i], one.whole->max.value,
                fmt::format("eigenvalue {}", i));
  }
}

TEST_P(SharedSpectrum, SpectraOfLayersAreThoseOfOneProcess) {
  const std::unique_ptr<Model> model = initialized(tiny_translator());
  SpectrumOptions options;
  options.by_layer = true;
  options.steps = 150;
  const SpectrumReport one = measure_spectrum(*model, batches(), options);
  const SpectrumReport found = spectrum(options, tiny_translator());
  expect_same_report(found, one, processes());
  ASSERT_EQ(found.blocks.size(), one.blocks.size());
  for (size_t i = 0; i < one.blocks.size(); ++i) {
    EXPECT_EQ(found.blocks[i].id, one.blocks[i].id);
    expect_same_spectrum(found.blocks[i].spectrum, one.blocks[i].spectrum, to_string(one.blocks[i].id));
  }
}

// Norms over a batch use the statistics of each micro-batch, whichever process computes it.
TEST_P(SharedMeasurement, NormsOverABatchSeeTheSameBatches) {
  ModelConfig config = tiny_translator();
  config.norm = "batchnorm";
  const std::unique_ptr<Model> model = initialized(config);
  const MeanLoss one = mean_loss(*model, batches());
  as_ranks(processes(), [&](const Group& group) {
    const std::unique_ptr<Model> own = initialized(config);
    const MeanLoss found = mean_loss(*own, batches(), 0, model_loss, group);
    expect_same(found.loss, one.loss, "loss");
    EXPECT_LT(relative_distance(found.gradient, one.gradient), kSharedRounding);
  });
}

void expect_same_interval(const Interval& found, const Interval& one, const std::string& what) {
  EXPECT_EQ(found.count, one.count) << what;
  expect_same(found.mean, one.mean, what);
}

/// Every process gets the whole report, even one without a batch.
TEST_P(SharedMeasurement, ProbesAreThoseOfOneProcess) {
  ProbeOptions options;
  options.seeds = {1, 2};
  options.type = at::kDouble;
  options.label_smoothing = 0.1;
  const ModelConfig config = tiny_translator("pre-ln");
  const ProbeReport one = probe(config, {}, batches(), options);
  as_ranks(processes(), [&](const Group& group) {
    ProbeOptions shared = options;
    shared.group = group;
    const ProbeReport found = probe(config, {}, batches(), shared);
    expect_same_interval(found.loss, one.loss, "loss");
    expect_same_interval(found.loss_label_smoothing, one.loss_label_smoothing, "loss with label smoothing");
    expect_same_interval(found.gradient_norm_total, one.gradient_norm_total, "gradient norm");
    ASSERT_EQ(found.gradient_norm.size(), one.gradient_norm.size());
    for (size_t i = 0; i < one.gradient_norm.size(); ++i) {
      EXPECT_EQ(found.gradient_norm[i].first, one.gradient_norm[i].first);
      expect_same(found.gradient_norm[i].second, one.gradient_norm[i].second, one.gradient_norm_total.mean,
                  one.gradient_norm[i].first);
    }
    ASSERT_EQ(found.signal.size(), one.signal.size());
    for (size_t i = 0; i < one.signal.size(); ++i) {
      const std::string name = to_string(one.signal[i].point);
      EXPECT_EQ(to_string(found.signal[i].point), name);
      expect_same_interval(found.signal[i].mean_square, one.signal[i].mean_square, name);
      expect_same_interval(found.signal[i].delta_at_0_1, one.signal[i].delta_at_0_1, name);
      expect_same_interval(found.signal[i].epsilon_at_0_125, one.signal[i].epsilon_at_0_125, name);
      expect_same_interval(found.signal[i].layer_norm_ratio, one.signal[i].layer_norm_ratio, name);
    }
    ASSERT_EQ(found.feed_forward.size(), one.feed_forward.size());
    for (size_t i = 0; i < one.feed_forward.size(); ++i) {
      expect_same_interval(found.feed_forward[i].batch_mean_gradient_norm, one.feed_forward[i].batch_mean_gradient_norm,
                           one.feed_forward[i].parameter);
    }
  });
}

void expect_same_gains(const BackwardGains& found, const BackwardGains& one) {
  ASSERT_EQ(found.stacks.size(), one.stacks.size());
  for (size_t s = 0; s < one.stacks.size(); ++s) {
    expect_same(found.stacks[s].input_gradient, one.stacks[s].input_gradient, "input gradient");
    ASSERT_EQ(found.stacks[s].parts.size(), one.stacks[s].parts.size());
    for (size_t i = 0; i < one.stacks[s].parts.size(); ++i) {
      const BackwardGain& part = one.stacks[s].parts[i];
      const BackwardGain& other = found.stacks[s].parts[i];
      EXPECT_EQ(to_string(other.point), to_string(part.point));
      expect_same(other.gradient, part.gradient, to_string(part.point));
      expect_same(other.gain, part.gain, to_string(part.point));
      ASSERT_EQ(other.memory_gain.has_value(), part.memory_gain.has_value());
      if (part.memory_gain) expect_same(*other.memory_gain, *part.memory_gain, to_string(part.point));
    }
  }
}

/// Adam divides by the size of each element, and the search by the change of the loss: both amplify rounding.
constexpr double kStepRounding = 1e-8;

void expect_same_step(const FirstStep& found, const FirstStep& one) {
  ASSERT_EQ(found.logits.by_layer.size(), one.logits.by_layer.size());
  for (size_t i = 0; i < one.logits.by_layer.size(); ++i) {
    EXPECT_EQ(found.logits.by_layer[i].layer, one.logits.by_layer[i].layer);
    expect_same(found.logits.by_layer[i].change, one.logits.by_layer[i].change, one.optimizer, kStepRounding);
  }
  expect_same(found.logits.total, one.logits.total, one.optimizer, kStepRounding);
  ASSERT_EQ(found.critical.has_value(), one.critical.has_value()) << one.optimizer;
  if (!one.critical) return;
  EXPECT_EQ(found.critical->passes, one.critical->passes) << one.optimizer;
  expect_same(found.critical->low, one.critical->low, one.optimizer, kStepRounding);
  expect_same(found.critical->high, one.critical->high, one.optimizer, kStepRounding);
}

/// An extreme that has not converged is accurate only to its error.
void expect_same_split(const SplitExtremes& found, const SplitExtremes& one, const std::string& what) {
  for (Extremes SplitExtremes::*matrix :
       {&SplitExtremes::hessian, &SplitExtremes::gauss_newton, &SplitExtremes::rest}) {
    const Extremes& expected = one.*matrix;
    const double rounding = kSharedRounding * std::max(std::abs(expected.max.value), std::abs(expected.min.value));
    EXPECT_NEAR((found.*matrix).max.value, expected.max.value, rounding + expected.max.error) << what;
    EXPECT_NEAR((found.*matrix).min.value, expected.min.value, rounding + expected.min.error) << what;
  }
}

TEST_P(SharedSpectrum, FirstStepsAreThoseOfOneProcess) {
  InitializationOptions options;
  options.gains = true;
  options.first_steps = {"adam", "sgd"};
  options.curvature_steps = 80;
  options.layer_curvature_steps = 40;
  options.label_smoothing = 0.1;
  const InitializationMeasurement one = measure_initialization(*initialized(tiny_translator()), batches(), options);
  as_ranks(processes(), [&](const Group& group) {
    const std::unique_ptr<Model> model = initialized(tiny_translator());
    InitializationOptions shared = options;
    shared.group = group;
    const InitializationMeasurement found = measure_initialization(*model, batches(), shared);
    expect_same_gains(found.gains.value(), one.gains.value());
    ASSERT_EQ(found.first_steps.size(), 2U);
    for (size_t i = 0; i < 2; ++i) expect_same_step(found.first_steps[i], one.first_steps[i]);
    if (group.rank() > 0) return;
    expect_same_split(found.curvature.value().whole, one.curvature.value().whole, "whole");
    ASSERT_EQ(found.curvature->layers.size(), one.curvature->layers.size());
    for (size_t i = 0; i < one.curvature->layers.size(); ++i) {
      const CurvatureSplit::Layer& layer = one.curvature->layers[i];
      EXPECT_EQ(found.curvature->layers[i].id, layer.id);
      expect_same_split(found.curvature->layers[i].split, layer.split, to_string(layer.id));
    }
  });
}

std::string name_of_division(const ::testing::TestParamInfo<Division>& info) {
  return fmt::format("{}Batches{}Processes", info.param.micro_batches, info.param.processes);
}

INSTANTIATE_TEST_SUITE_P(Of, SharedMeasurement,
                         ::testing::Values(Division{1, 4}, Division{2, 4}, Division{3, 4}, Division{3, 2},
                                           Division{2, 1}),
                         name_of_division);
INSTANTIATE_TEST_SUITE_P(Of, SharedSpectrum, ::testing::Values(Division{3, 4}, Division{2, 1}), name_of_division);

// Whichever process fails, and whatever the others wait for.
TEST(SharedMeasurements, AnErrorInOneProcessEndsAllWithItsReason) {
  for (const int64_t failing : {0, 1, 2}) {
    for (const int calls_before : {0, 4}) {  // in the gradient; in a product
      std::mutex mutex;
      std::vector<std::string> messages;
      as_ranks(3, [&](const Group& group) {
        const std::unique_ptr<Model> model = initialized(tiny_translator());
        SpectrumOptions options;
        options.steps = 20;
        options.hessian.group = group;
        options.hessian.graph_memory = 0;
        int calls = 0;
        options.hessian.loss = [&](Model& of, const Batch& batch, const LossOptions& how, ForwardContext& context) {
          if (group.rank() == failing && ++calls > calls_before) throw Error("the sentences are too long");
          return model_loss(of, batch, how, context);
        };
        try {
          group.barrier();  // an error before all have joined is one of joining
          telling_others(group, [&] { return measure_spectrum(*model, ragged_batches(4), options); });
        } catch (const Error& error) {
          const std::lock_guard lock(mutex);
          messages.emplace_back(error.what());
        }
      });
      ASSERT_EQ(messages.size(), 3U);
      for (const std::string& message : messages) EXPECT_CONTAINS(message, "the sentences are too long");
    }
  }
  // Messages sent to a rank that no longer receives do not keep one of its threads busy.
  EXPECT_LT(test::processor_time_of_waiting(), 0.25);
}

TEST(SharedMeasurements, WithoutTokensAreAnErrorInAllProcesses) {
  as_ranks(2, [](const Group& group) {
    const std::unique_ptr<Model> model = initialized(tiny_translator());
    EXPECT_THROW(mean_loss(*model, {}, 0, model_loss, group), Error);
    EXPECT_THROW(measure_gradients(*model, {}, 0, {}, model_loss, group), Error);
    EXPECT_THROW(GaussNewtonOperator(*model, {}, 0, group), Error);
  });
}

}  // namespace
}  // namespace plumb
