// Backward gains compared with finite differences of the loss in every element of the stream.
#include "plumb/analysis/backward_gain.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "plumb/analysis/loss_function.h"
#include "plumb/base/error.h"
#include "plumb/nn/residual/residual.h"
#include "support/batches.h"
#include "support/small_model.h"

namespace plumb {
namespace {

ModelConfig gain_model(const std::string& kind, const std::string& residual, int64_t layers = 2) {
  ModelConfig config = test::small_model(kind, layers);
  config.residual = residual;
  return config;
}

std::vector<Batch> gain_batches(const std::string& kind) {
  std::vector<Batch> batches(2);
  if (kind == "encoder") {
    for (Batch& batch : batches) {
      batch.source = {4, 5, 6, 7, 8};
      batch.source_layout = Ragged(std::vector<int64_t>{2, 3});
      batch.labels = {0, 2};
    }
    batches[1].source = {8, 8, 4, 4, 5};
    return batches;
  }
  append(batches[0], std::vector<int32_t>{4, 5, 6}, std::vector<int32_t>{7}, 0);
  append(batches[1], std::vector<int32_t>{8, 5}, std::vector<int32_t>{4, 6}, 1);
  return batches;
}

std::unique_ptr<Model> gain_initialized(const ModelConfig& config) {
  std::unique_ptr<Model> model = make_model(config, at::kDouble);
  model->initialize(3);
  return model;
}

/// The mean loss with `tap` between the parts.
double disturbed_loss(Model& model, const std::vector<Batch>& batches, const Tap& tap) {
  const at::NoGradGuard no_graph;
  double sum = 0;
  for (const Batch& batch : batches) {
    ForwardContext context(Pass::measurement);
    context.tap(tap);
    sum += model.loss(batch, {.scale = 1 / total_weight(batches)}, context).value.item<double>();
  }
  return sum;
}

/// √Σ (∂L/∂x)² over the elements of the tensors at each point, by central differences.
std::map<ActivationPoint, double> norms_by_differences(Model& model, const std::vector<Batch>& batches) {
  std::vector<std::pair<ActivationPoint, int64_t>> passages;  // with their number of elements
  disturbed_loss(model, batches, [&](const ActivationPoint& point, const Tensor& x) {
    passages.emplace_back(point, x.numel());
    return x;
  });
  constexpr double kStep = 1e-5;
  std::map<ActivationPoint, double> squares;
  for (size_t place = 0; place < passages.size(); ++place) {
    for (int64_t element = 0; element < passages[place].second; ++element) {
      const auto loss_at = [&](double step) {
        size_t seen = 0;
        return disturbed_loss(model, batches, [&](const ActivationPoint&, const Tensor& x) {
          if (seen++ != place) return x;
          Tensor moved = x.contiguous().clone();
          moved.view({-1})[element].add_(step);
          return moved;
        });
      };
      squares[passages[place].first] += std::pow((loss_at(kStep) - loss_at(-kStep)) / (2 * kStep), 2);
    }
  }
  for (auto& [point, square] : squares) square = std::sqrt(square);
  return squares;
}

struct GainCase {
  std::string kind, residual;
};
// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest looks for this name
void PrintTo(const GainCase& one, std::ostream* out) { *out << one.kind << ' ' << one.residual; }

class BackwardGainOf : public ::testing::TestWithParam<GainCase> {};

TEST_P(BackwardGainOf, EverySubLayerIsThatOfDifferencesOfTheLoss) {
  const auto& [kind, residual] = GetParam();
  const std::unique_ptr<Model> model = gain_initialized(gain_model(kind, residual));
  const std::vector<Batch> batches = gain_batches(kind);
  const std::map<ActivationPoint, double> expected = norms_by_differences(*model, batches);
  const BackwardGains found = measure_backward_gains(*model, batches);
  EXPECT_LT(found.error, 1e-13);
  ASSERT_EQ(found.stacks.size(), kind == "encoder-decoder" ? 2U : 1U);
  for (const StackGains& stack : found.stacks) {
    const size_t sub_layers = kind == "encoder-decoder" && stack.stack == StackKind::decoder ? 6 : 4;
    ASSERT_EQ(stack.parts.size(), sub_layers + 1);
    EXPECT_EQ(stack.parts.back().point, (ActivationPoint{{stack.stack}, Point::result}));
    double before = expected.at({{stack.stack}, Point::input});
    EXPECT_NEAR(stack.input_gradient, before, 1e-7);
    for (const BackwardGain& part : stack.parts) {
      const double given = expected.at(part.point);
      EXPECT_NEAR(part.gradient, given, 1e-7 * (1 + given)) << to_string(part.point);
      EXPECT_NEAR(part.gain, before / given, 1e-6 * (1 + before / given)) << to_string(part.point);
      const bool crosses = part.point.id.sub_layer == SubLayerKind::cross_attention;
      ASSERT_EQ(part.memory_gain.has_value(), crosses);
      if (crosses) {
        EXPECT_NEAR(*part.memory_gain, expected.at({part.point.id, Point::memory}) / given, 1e-6);
      }
      before = given;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, BackwardGainOf,
                         ::testing::Values(GainCase{"encoder-decoder", "post-ln"},
                                           GainCase{"encoder-decoder", "pre-ln"},
                                           GainCase{"encoder-decoder", "residual-dual"}, GainCase{"decoder", "post-ln"},
                                           GainCase{"decoder", "residual-dual"}, GainCase{"encoder", "pre-ln"},
                                           GainCase{"encoder", "post-ln"}));

/// The gradients with respect to the stream as observers see it: a profile that is independent of boundaries.
std::map<ActivationPoint, double> observed_profile(Model& model, const Batch& batch) {
  std::vector<std::pair<ActivationPoint, Tensor>> stream;
  ForwardContext context(Pass::measurement);
  context.watch([&](const ActivationPoint& point, const Tensor& x) {
    if (point.point == Point::stream || point.point == Point::input) stream.emplace_back(point, x);
  });
  const Tensor loss = model.loss(batch, {}, context).value;
  std::map<ActivationPoint, double> norms;
  for (const auto& [point, x] : stream)
    norms[point] = gradients({loss}, {x}, {}, false, /*retain_graph=*/true)[0].norm().item<double>();
  return norms;
}

TEST(BackwardGains, MultiplyOutToTheObservedProfileWithEveryScheme) {
  // Schemes whose streams have several tensors; observers see one of them, or the sum.
  const std::set<std::string> several = {"residual-dual", "siamesenorm", "hyper-connections",
                                         "mhc",           "attnres",     "parallel-ln"};
  for (const std::string& scheme : residual_schemes().names()) {
    const std::unique_ptr<Model> model = gain_initialized(gain_model("encoder-decoder", scheme, 3));
    const Batch batch = gain_batches("encoder-decoder")[0];
    const std::map<ActivationPoint, double> profile = observed_profile(*model, batch);
    const BackwardGains found = measure_backward_gains(*model, {batch});
    EXPECT_LT(found.error, 1e-12) << scheme;
    for (const StackGains& stack : found.stacks) {
      double product = stack.parts.back().gradient;  // at the result
      for (size_t i = stack.parts.size(); i-- > 0;) {
        product *= stack.parts[i].gain;
        const ActivationPoint point = i > 0 ? stack.parts[i - 1].point : ActivationPoint{{stack.stack}, Point::input};
        const double expected = i > 0 ? stack.parts[i - 1].gradient : stack.input_gradient;
        if (expected == 0) break;  // rezero's encoder, which no gradient reaches
        EXPECT_NEAR(product, expected, 1e-12 * expected) << scheme << ' ' << to_string(point);
        if (several.count(scheme) == 0 && i > 0) {
          EXPECT_NEAR(product, profile.at(point), 1e-12 * expected) << scheme << ' ' << to_string(point);
        }
      }
      const double at_input = profile.at({{stack.stack}, Point::input});
      EXPECT_NEAR(stack.input_gradient, at_input, 1e-12 * at_input) << scheme;
    }
  }
}

TEST(BackwardGains, PreLnSubLayerThatAddsNothingPassesAllBack) {
  const std::unique_ptr<Model> model = gain_initialized(gain_model("decoder", "pre-ln"));
  {
    const at::NoGradGuard no_graph;
    for (const Parameter& parameter : model->parameters().all()) {
      if (parameter.name.find("linear2") != std::string::npos) Tensor(parameter.value).zero_();
    }
  }
  const BackwardGains found = measure_backward_gains(*model, gain_batches("decoder"));
  for (const BackwardGain& part : found.stacks.at(0).parts) {
    if (part.point.id.sub_layer == SubLayerKind::feed_forward) {
      EXPECT_DOUBLE_EQ(part.gain, 1);
    }
    if (part.point.id.sub_layer == SubLayerKind::self_attention) {
      EXPECT_NE(part.gain, 1);
    }
  }
}

TEST(BackwardGains, CrossAttentionLosesWhatItsMemoryHasInCommon) {
  // All tokens of a sentence are the same, so their cosine is 1, and the mean of their values is as long as the stream.
  ModelConfig config = gain_model("encoder-decoder", "post-ln");
  config.d_model = config.feed_forward = 128;
  config.positions = "none";
  std::vector<Batch> batches(1);
  append(batches[0], std::vector<int32_t>{4, 4, 4}, std::vector<int32_t>{7, 5, 6, 8}, 0);
  batches[0].source = {4, 4, 4, 4};  // without an end
  const auto cross_attention_gain = [&] {
    double product = 1;
    for (const BackwardGain& part : measure_backward_gains(*gain_initialized(config), batches).stacks.at(1).parts) {
      if (part.point.id.sub_layer == SubLayerKind::cross_attention) product *= part.gain;
    }
    return std::sqrt(product);
  };
  EXPECT_DOUBLE_EQ(predicted_cross_attention_gain(0), 1);
  EXPECT_NEAR(cross_attention_gain(), 1 / std::sqrt(2), 0.03);
  config.center_memory = true;                        // leaves nothing
  EXPECT_NEAR(cross_attention_gain(), 1, 2.0 / 128);  // but for the two of 128 directions that the norm takes out
  config.center_memory = false;
  config.residual = "pre-ln";
  EXPECT_NEAR(cross_attention_gain(), 1, 1e-12);
}

TEST(BackwardGains, SayWhenSomethingGoesAroundTheStream) {
  ModelConfig config = gain_model("decoder", "pre-ln");
  config.value_residual = true;
  EXPECT_GT(measure_backward_gains(*gain_initialized(config), gain_batches("decoder")).error, 1e-6);
}

TEST(BackwardGains, SummaryMultipliesOutToo) {
  const std::unique_ptr<Model> model = make_model(gain_model("encoder-decoder", "post-ln"), at::kDouble);
  std::vector<BackwardGains> measurements;
  for (const uint64_t seed : {1, 2, 3}) {
    model->initialize(seed);
    measurements.push_back(measure_backward_gains(*model, gain_batches("encoder-decoder")));
  }
  const BackwardGainReport report = summarize(measurements);
  for (const BackwardGainReport::Stack& stack : report.stacks) {
    double product = stack.parts.back().gradient.mean;
    for (const BackwardGainReport::Part& part : stack.parts) product *= part.gain.mean;
    EXPECT_NEAR(product, stack.input_gradient.mean, 1e-12 * product);
  }
  const double mean = std::cbrt(measurements[0].stacks[1].parts[2].gain * measurements[1].stacks[1].parts[2].gain *
                                measurements[2].stacks[1].parts[2].gain);
  EXPECT_NEAR(report.stacks[1].parts[2].gain.mean, mean, 1e-12);
  EXPECT_TRUE(report.stacks[1].parts[1].memory_gain.has_value());
  EXPECT_FALSE(report.stacks[1].parts[2].memory_gain.has_value());
  EXPECT_THROW(summarize(std::vector<BackwardGains>{}), Error);
  EXPECT_THROW(measure_backward_gains(*model, {}), Error);
}

}  // namespace
}  // namespace plumb
