// Schedules against their formulas, written out.
#include "plumb/optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "options.h"
#include "plumb/base/error.h"
#include "support/errors.h"

namespace plumb {
namespace {

double rate(const std::string& text, const ScheduleFrame& options, int64_t step) {
  return Schedule(text, options)(step);
}

TEST(Schedule, TheInverseSquareRootPeaksAtTheLearningRateWhenWarmUpEnds) {
  const ScheduleFrame options{.learning_rate = 5e-4, .warm_up = 4000};
  const Schedule schedule("constant * linear_warmup * rsqrt_decay", options);
  EXPECT_DOUBLE_EQ(schedule(1), 5e-4 / 4000);
  EXPECT_DOUBLE_EQ(schedule(1000), 5e-4 / 4);
  EXPECT_DOUBLE_EQ(schedule(4000), 5e-4);
  EXPECT_DOUBLE_EQ(schedule(16000), 5e-4 / 2);
  EXPECT_DOUBLE_EQ(schedule(36000), 5e-4 / 3);
}

TEST(Schedule, ConstantIsTheLearningRate) {
  const Schedule schedule("constant", {.learning_rate = 3e-4, .warm_up = 100, .steps = 1000});
  for (const int64_t step : {1, 50, 100, 1000, 5000}) EXPECT_EQ(schedule(step), 3e-4) << step;
}

TEST(Schedule, WithoutWarmUpTheDecayBeginsAtOnceOrWhereItIsTold) {
  const std::string text = "constant*linear_warmup*rsqrt_decay";
  for (const int64_t warm_up : {0, 1}) {
    const ScheduleFrame options{.learning_rate = 1e-3, .warm_up = warm_up};
    EXPECT_DOUBLE_EQ(rate(text, options, 1), 1e-3);
    EXPECT_DOUBLE_EQ(rate(text, options, 100), 1e-4);
  }
  // The same decay as in a run with 4,000 steps of warm-up.
  const ScheduleFrame late{.learning_rate = 1e-3, .warm_up = 0, .decay_start = 4000};
  const ScheduleFrame warm{.learning_rate = 1e-3, .warm_up = 4000};
  EXPECT_DOUBLE_EQ(rate(text, late, 1), 1e-3);
  EXPECT_DOUBLE_EQ(rate(text, late, 4000), 1e-3);
  EXPECT_DOUBLE_EQ(rate(text, late, 9000), rate(text, warm, 9000));
}

TEST(Schedule, TheOriginalTransformersFormula) {
  // d^−½ · min(t^−½, t·w^−1.5), Vaswani et al. 2017; ours divides by the peak w^−½.
  const ScheduleFrame options{.learning_rate = 1 / std::sqrt(4000.0), .warm_up = 4000, .hidden_size = 512};
  const Schedule schedule("constant * linear_warmup * rsqrt_decay * rsqrt_hidden_size", options);
  for (const double t : {1.0, 10.0, 3999.0, 4000.0, 4001.0, 100000.0}) {
    const double expected = std::pow(512.0, -0.5) * std::min(std::pow(t, -0.5), t * std::pow(4000.0, -1.5));
    EXPECT_NEAR(schedule(static_cast<int64_t>(t)), expected, 1e-14) << t;
  }
}

TEST(Schedule, CosineAndLineFromThePeakToTheFloor) {
  ScheduleFrame options{.learning_rate = 2.0, .warm_up = 10, .steps = 110, .decay_floor = 0.1};
  EXPECT_DOUBLE_EQ(rate("constant * linear_warmup * cosine_decay", options, 5), 1.0);
  EXPECT_DOUBLE_EQ(rate("constant * cosine_decay", options, 10), 2.0);
  EXPECT_NEAR(rate("constant * cosine_decay", options, 35), 2 * (0.1 + 0.9 * (1 + std::sqrt(0.5)) / 2), 1e-12);
  EXPECT_NEAR(rate("constant * cosine_decay", options, 60), 2 * 0.55, 1e-12);
  EXPECT_NEAR(rate("constant * cosine_decay", options, 110), 0.2, 1e-12);
  EXPECT_NEAR(rate("constant * cosine_decay", options, 500), 0.2, 1e-12);
  EXPECT_DOUBLE_EQ(rate("constant * linear_decay", options, 10), 2.0);
  EXPECT_NEAR(rate("constant * linear_decay", options, 35), 2 * (1 - 0.9 / 4), 1e-12);
  EXPECT_NEAR(rate("constant * linear_decay", options, 60), 2 * 0.55, 1e-12);
  EXPECT_NEAR(rate("constant * linear_decay", options, 85), 2 * (1 - 0.9 * 3 / 4), 1e-12);
  EXPECT_NEAR(rate("constant * linear_decay", options, 110), 0.2, 1e-12);
  EXPECT_NEAR(rate("constant * linear_decay", options, 200), 0.2, 1e-12);
  options.steps = 5;  // the run ends before the decay begins
  EXPECT_DOUBLE_EQ(rate("constant * linear_decay", options, 9), 2.0);
}

TEST(Schedule, StepDecayMultipliesAfterEachStepNamed) {
  const ScheduleFrame frame{.learning_rate = 1.0};
  const VariantOptions options = test::options("[train.step_decay]\nat = [100, 200]");
  const Schedule schedule("constant * step_decay", frame, options);
  EXPECT_DOUBLE_EQ(schedule(1), 1.0);
  EXPECT_DOUBLE_EQ(schedule(100), 1.0);
  EXPECT_DOUBLE_EQ(schedule(101), 0.1);
  EXPECT_DOUBLE_EQ(schedule(200), 0.1);
  EXPECT_NEAR(schedule(201), 0.01, 1e-15);
  const VariantOptions half = test::options("[train.step_decay]\nat = 5\nfactor = 0.5");
  EXPECT_DOUBLE_EQ(Schedule("constant * step_decay", frame, half)(6), 0.5);
  EXPECT_DOUBLE_EQ(Schedule("constant * step_decay", frame)(6), 1.0);  // no steps are named
  EXPECT_THROW(Schedule("constant * step_decay", frame, test::options("[train.step_decay]\nfactor = -0.5")), Error);
}

TEST(Schedule, StableThenDecaying) {
  // 1,000 steps; the last 200 decay to a tenth.
  const ScheduleFrame frame{.learning_rate = 2.0, .warm_up = 100, .steps = 1000, .decay_floor = 0.1};
  const Schedule root("constant * linear_warmup * stable_decay", frame);
  EXPECT_NEAR(root(50), 1.0, 1e-15);
  EXPECT_NEAR(root(100), 2.0, 1e-15);
  EXPECT_NEAR(root(800), 2.0, 1e-15);
  EXPECT_NEAR(root(850), 2 * (0.1 + 0.9 * (1 - 0.5)), 1e-12);  // √(1/4)
  EXPECT_NEAR(root(1000), 0.2, 1e-15);
  EXPECT_NEAR(root(1500), 0.2, 1e-15);
  const Schedule line("constant * stable_decay", {.learning_rate = 1, .steps = 1000},
                      test::options("[train.stable_decay]\nshare = 0.5\nshape = \"line\"\n"));
  EXPECT_NEAR(line(1), 1.0, 1e-15);
  EXPECT_NEAR(line(500), 1.0, 1e-15);
  EXPECT_NEAR(line(625), 0.75, 1e-12);
  EXPECT_NEAR(line(900), 0.2, 1e-12);
  EXPECT_NEAR(line(1000), 0.0, 1e-15);
  const std::string stable = "constant * stable_decay";
  EXPECT_THROW(Schedule(stable, frame, test::options("[train.stable_decay]\nshare = 0.0\n")), Error);
  EXPECT_THROW(Schedule(stable, frame, test::options("[train.stable_decay]\nshape = \"arc\"\n")), Error);
}

TEST(Schedule, DelayKeepsTheRateAtZeroFirst) {
  const Schedule schedule("constant * delay", {.learning_rate = 0.5}, test::options("[train.delay]\nlength = 3\n"));
  EXPECT_EQ(schedule(1), 0);
  EXPECT_EQ(schedule(3), 0);
  EXPECT_EQ(schedule(4), 0.5);
}

TEST(Schedule, SlantedTriangular) {
  // The paper's constants: cut = 100, and 1/32 of the peak at both ends.
  const Schedule schedule("constant * slanted_triangular", {.learning_rate = 0.01, .steps = 1000});
  EXPECT_NEAR(schedule(1), 0.01 * (1 + 0.01 * 31) / 32, 1e-15);
  EXPECT_NEAR(schedule(50), 0.01 * (1 + 0.5 * 31) / 32, 1e-15);
  EXPECT_NEAR(schedule(100), 0.01, 1e-15);
  EXPECT_NEAR(schedule(550), 0.01 * (1 + 0.5 * 31) / 32, 1e-15);
  EXPECT_NEAR(schedule(1000), 0.01 / 32, 1e-15);
  EXPECT_NEAR(schedule(3000), 0.01 / 32, 1e-15);
  // T = 25, cut = ⌊25·0.3⌋ = 7: the descent is 7·(1/0.3 − 1) steps long.
  const Schedule other("constant * slanted_triangular", {.learning_rate = 1, .steps = 25},
                       test::options("[train.slanted_triangular]\ncut_fraction = 0.3\nratio = 4.0\n"));
  EXPECT_NEAR(other(6), (1 + 6.0 / 7 * 3) / 4, 1e-14);
  EXPECT_NEAR(other(20), (1 + (1 - 13 / (7 * (1 / 0.3 - 1))) * 3) / 4, 1e-14);
  EXPECT_THROW(
      Schedule("constant * slanted_triangular", {}, test::options("[train.slanted_triangular]\ncut_fraction = 1.0\n")),
      Error);
}

TEST(Schedule, OneCycle) {
  // 101 steps; the peak is 0.3·101 − 1 = 29.3 steps after the first, between steps 30 and 31.
  const Schedule cosine("constant * one_cycle", {.learning_rate = 0.5, .steps = 101});
  const double peak = 0.3 * 101 - 1, low = 0.5 / 25, end = 0.5 / 25e4;
  EXPECT_NEAR(cosine(1), low, 1e-15);
  EXPECT_NEAR(cosine(11), 0.5 + (low - 0.5) * (1 + std::cos(M_PI * 10 / peak)) / 2, 1e-14);
  EXPECT_NEAR(cosine(31), end + (0.5 - end) * (1 + std::cos(M_PI * (30 - peak) / (100 - peak))) / 2, 1e-14);
  EXPECT_NEAR(cosine(71), end + (0.5 - end) * (1 + std::cos(M_PI * (70 - peak) / (100 - peak))) / 2, 1e-14);
  EXPECT_NEAR(cosine(101), end, 1e-15);
  EXPECT_NEAR(cosine(200), end, 1e-15);
  const Schedule line("constant * one_cycle", {.learning_rate = 1, .steps = 20},
                      test::options("[train.one_cycle]\nclimb = 0.5\nfirst_divisor = 10.0\nlast_divisor = 10.0\n"
                                    "shape = \"line\"\n"));
  EXPECT_NEAR(line(1), 0.1, 1e-15);
  EXPECT_NEAR(line(4), 0.1 + 0.9 * 3 / 9, 1e-14);
  EXPECT_NEAR(line(10), 1.0, 1e-14);
  EXPECT_NEAR(line(15), 1 - 0.99 / 2, 1e-14);
  EXPECT_NEAR(line(20), 0.01, 1e-14);
  EXPECT_THROW(Schedule("constant * one_cycle", {}, test::options("[train.one_cycle]\nclimb = 0.0\n")), Error);
  EXPECT_THROW(Schedule("constant * one_cycle", {}, test::options("[train.one_cycle]\nshape = \"arc\"\n")), Error);
}

// Every product of up to three factors is either proportional to the learning rate, at every step, or an error.
TEST(Schedule, IsProportionalToTheLearningRateOrRefused) {
  const std::vector<std::string> factors = schedule_factors().names();
  std::vector<std::string> products = factors;
  for (const std::string& a : factors) {
    for (const std::string& b : factors) {
      products.push_back(a + " * " + b);
      for (const std::string& c : factors) products.push_back(a + "*" + b + " *" + c);
    }
  }
  const ScheduleFrame frame{.learning_rate = 0.02, .warm_up = 10, .steps = 50, .hidden_size = 9};
  ScheduleFrame thrice = frame;
  thrice.learning_rate *= 3;
  int64_t accepted = 0;
  for (const std::string& product : products) {
    try {
      const Schedule one(product, frame), three(product, thrice);
      ++accepted;
      for (const int64_t step : {1, 2, 9, 10, 11, 30, 49, 50, 51, 90})
        EXPECT_NEAR(three(step), 3 * one(step), 1e-15) << product << " at step " << step;
    } catch (const Error& error) {
      EXPECT_FALSE(error.hint().empty()) << product;
    }
  }
  const auto n = static_cast<int64_t>(factors.size()) - 1;  // besides constant
  EXPECT_EQ(accepted, 1 + 2 * n + 3 * n * n);
}

TEST(Schedule, WithoutOrWithTwiceTheLearningRateIsAnError) {
  const auto error_of = [](const std::string& text) {
    const Error error = test::error_of([&] { static_cast<void>(Schedule(text, {})); });
    return error.what() + (" (" + error.hint() + ")");
  };
  EXPECT_EQ(error_of("cosine_decay"),
            "schedule \"cosine_decay\": without the factor constant, it ignores train.learning_rate "
            "(\"constant * cosine_decay\")");
  EXPECT_EQ(error_of("constant * constant"),
            "schedule \"constant * constant\": multiplies train.learning_rate 2 times (give the factor constant once)");
  EXPECT_EQ(error_of("rsqrt_hidden_size*constant*rsqrt_decay"), "accepted ()");
}

TEST(Schedule, AWrongNameIsAnErrorThatNamesTheNearest) {
  const Error error = test::error_of([&] { const Schedule schedule("constant * linear_warm_up", {}); });
  EXPECT_STREQ(error.what(), "unknown schedule factor 'linear_warm_up'");
  EXPECT_CONTAINS(error.hint(), "did you mean 'linear_warmup'?");
  EXPECT_THROW(Schedule("constant * ", {}), Error);
  EXPECT_THROW(Schedule("", {}), Error);
}

}  // namespace
}  // namespace plumb
