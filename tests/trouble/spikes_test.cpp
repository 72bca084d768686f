// Spikes against medians computed by sorting, and update norms against loops over all elements.
#include "plumb/trouble/spikes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "plumb/base/error.h"
#include "plumb/base/json_fields.h"
#include "plumb/base/random.h"
#include "plumb/model/encoder_decoder.h"
#include "plumb/train/update_norms.h"

namespace plumb {
namespace {

double sorted_median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

TEST(Spikes, AreFarAboveTheMedianInMedianAbsoluteDeviations) {
  constexpr int64_t kWindow = 20;
  constexpr double kThreshold = 5;
  SpikeSeries series("loss", {kWindow, kThreshold});
  Random random(1, "spikes");
  std::vector<double> past;
  int64_t found = 0, expected = 0;
  for (int64_t step = 1; step <= 400; ++step) {
    double value = 5.0 + 0.001 * static_cast<double>(step) + static_cast<double>(random.below(1000)) / 1000;
    if (random.below(4) == 0) value += 0.25 * static_cast<double>(random.below(8));
    value = static_cast<float>(value);
    const std::optional<Spike> spike = series.judge(step, value);
    series.add(value);
    const std::vector<double> window(past.size() > kWindow ? past.end() - kWindow : past.begin(), past.end());
    past.push_back(value);
    if (window.size() < kWindow / 2) {
      EXPECT_FALSE(spike) << step;
      continue;
    }
    const double center = sorted_median(window);
    std::vector<double> distances;
    for (const double each : window) distances.push_back(std::abs(std::log(each) - std::log(center)));
    const double deviations = (std::log(value) - std::log(center)) / std::max(sorted_median(distances), 0.02);
    EXPECT_EQ(spike.has_value(), deviations > kThreshold) << step;
    expected += deviations > kThreshold ? 1 : 0;
    if (!spike) continue;
    ++found;
    EXPECT_EQ(spike->step, step);
    EXPECT_DOUBLE_EQ(spike->median, center);
    EXPECT_NEAR(spike->deviations, deviations, 1e-12);
    EXPECT_DOUBLE_EQ(spike->ratio(), value / center);
  }
  EXPECT_EQ(found, expected);
  EXPECT_GT(found, 5);
}

TEST(Spikes, OfASeriesThatHardlyVariesAreOneFifthAboveIt) {
  SpikeSeries series("update", {16, 10});
  for (int64_t step = 1; step <= 16; ++step) series.add(2.0);
  EXPECT_FALSE(series.judge(17, 2.44));  // 2·e^0.2 = 2.443
  EXPECT_TRUE(series.judge(17, 2.45));
  EXPECT_FALSE(series.judge(18, NAN));
  EXPECT_FALSE(series.judge(18, INFINITY));
  for (const double none : {std::nan(""), 0.0, -1.0, 1e-60}) {
    EXPECT_FALSE(series.judge(18, none)) << none;
    series.add(none);
  }
  EXPECT_EQ(series.median(), 2.0);
}

// A healthy run of 2,000 steps: loss and gradient norm fall, and vary by 20%.
TEST(Spikes, AreNoneOfARunThatFallsSmoothly) {
  const auto loss = [](double step) { return 0.5 + 8 * std::exp(-step / 300); };
  const auto norm = [](double step) { return 1000 / (10 + step) + 0.01; };  // by two orders of magnitude
  SpikeSeries losses("loss", {}), norms("gradient norm", {});
  Random random(5, "spikes");
  for (int64_t step = 1; step <= 2000; ++step) {
    const auto now = static_cast<double>(step);
    const double a = loss(now) * (1 + 0.2 * random.normal()), b = norm(now) * (1 + 0.2 * random.normal());
    EXPECT_FALSE(losses.judge(step, a)) << step;
    EXPECT_FALSE(norms.judge(step, b)) << step;
    losses.add(a);
    norms.add(b);
  }
  EXPECT_TRUE(losses.judge(2001, 5 * loss(2001)));
  EXPECT_TRUE(norms.judge(2001, 5 * norm(2001)));
}

TEST(Spikes, KnowWhereTheyBegan) {
  SpikeSeries series("loss", {16, 5});
  for (int64_t step = 1; step <= 16; ++step) series.add(1.0);
  EXPECT_EQ(series.judge(20, 3.0)->since, 20);
  EXPECT_EQ(series.judge(21, 3.0)->since, 20);
  EXPECT_FALSE(series.judge(25, 1.0));
  EXPECT_EQ(series.judge(37, 3.0)->since, 20);  // 16 steps after the last
  EXPECT_FALSE(series.judge(54, 1.0));
  EXPECT_FALSE(series.last().has_value());
  EXPECT_EQ(series.judge(55, 3.0)->since, 55);
}

TEST(Spikes, SurviveTheirState) {
  SpikeSeries first("loss", {12, 3}), second("loss", {12, 3});
  Random random(2, "spikes");
  const auto next = [&random] { return 1.0 / (1.0 + static_cast<double>(random.below(100000))); };
  for (int64_t step = 1; step <= 30; ++step) first.add(next());
  EXPECT_TRUE(first.judge(31, 5.0));
  const auto load = [&second](const Json& state) {
    JsonReader reader(state);
    describe(reader, second);
  };
  const auto state_of = [](SpikeSeries series) { return described_json(std::move(series)); };
  load(Json::parse(state_of(first).dump()));
  EXPECT_EQ(state_of(second), state_of(first));
  for (int64_t step = 32; step <= 60; ++step) {
    const double value = next();
    const auto a = first.judge(step, value), b = second.judge(step, value);
    ASSERT_EQ(a.has_value(), b.has_value());
    if (a) {
      EXPECT_EQ(described_json(*a), described_json(*b));
    }
    first.add(value);
    second.add(value);
  }
  for (const char* wrong : {"1 2 x", "1 nan", "1 -2", "0"}) EXPECT_THROW(load({{"values", wrong}}), Error) << wrong;
}

class Updates : public ::testing::Test {
 protected:
  Updates() {
    config_.source_vocabulary = config_.target_vocabulary = 30;
    config_.d_model = 16;
    config_.feed_forward = 32;
    config_.heads = 2;
    config_.encoder_layers = config_.decoder_layers = 1;
  }
  ModelConfig config_;
};

TEST_F(Updates, OfGroupsThatAreSmallAreExact) {
  const EncoderDecoder model(config_, at::kDouble);
  UpdateNorms norms(model.parameters());
  norms.before_step();
  std::map<std::string, double> expected;
  Random random(3, "updates");
  for (const Parameter& parameter : model.parameters().all()) {
    const Tensor value = parameter.value.detach().view({-1});
    std::string group = parameter.name;
    for (const char* layer : {"encoder.layers.0.", "decoder.layers.0."}) {
      if (!group.starts_with(layer)) continue;
      const std::string rest = group.substr(std::string(layer).size());
      group = layer;
      if (rest.starts_with("self_attn")) group += "self_attention";
      if (rest.starts_with("multihead_attn")) group += "cross_attention";
      if (rest.starts_with("linear")) group += "feed_forward";
      if (group.ends_with('.')) group.pop_back();
    }
    for (int64_t i = 0; i < value.numel(); ++i) {
      const double change = static_cast<double>(random.below(1000)) / 1000 - 0.5;
      value[i] += change;
      expected[group] += change * change;
    }
  }
  const std::vector<double> found = ops::read(norms.square_norms());
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_TRUE(expected.contains(norms.series()[i].name)) << norms.series()[i].name;
    EXPECT_NEAR(found[i], expected[norms.series()[i].name], 1e-9 * found[i]) << norms.series()[i].name;
    EXPECT_EQ(norms.series()[i].table, norms.series()[i].name.ends_with("_embed.weight")) << norms.series()[i].name;
  }
}

TEST_F(Updates, OfLargeGroupsAreEstimatedWithoutBias) {
  config_.d_model = 64;
  config_.feed_forward = 512;
  const EncoderDecoder model(config_);
  UpdateNorms norms(model.parameters(), 1024);
  norms.before_step();
  const Tensor flat = model.parameters().flat().detach();
  flat.add_(at::randn(flat.sizes(), at::make_generator<at::CPUGeneratorImpl>(7)));
  const std::vector<double> found = ops::read(norms.square_norms());
  for (size_t i = 0; i < found.size(); ++i) {
    double count = 0;
    for (const Parameter& parameter : model.parameters().all()) {
      const auto layer = LayerId::of_parameter(parameter.name);
      const std::string group = layer && layer->layer ? to_string(*layer) : parameter.name;
      if (group == norms.series()[i].name) count += static_cast<double>(parameter.value.numel());
    }
    // Σ z² over s standard normal numbers has standard deviation √(2s).
    EXPECT_NEAR(found[i] / count, 1, 5 * std::sqrt(2 / std::min(count, 1024.0))) << norms.series()[i].name;
  }
}

}  // namespace
}  // namespace plumb
