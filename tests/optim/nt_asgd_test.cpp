// NT-ASGD against algorithm 1 of its paper (arXiv 1708.02182), in plain loops.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "plumb/base/error.h"
#include "trajectory.h"

namespace plumb {
namespace {

using test::Numbers;
using test::numbers;

TEST(NtAsgd, StepsAreThoseOfPlainGradientDescent) {
  test::expect_steps("nt-asgd", "",
                     [](size_t, test::Plain& p, const Numbers& g, double rate, double weight_decay, int) {
                       for (size_t j = 0; j < g.size(); ++j) p.w[j] -= rate * (g[j] + weight_decay * p.w[j]);
                     });
}

class NtAsgdRun {
 public:
  explicit NtAsgdRun(int64_t interval) : toml_(fmt::format("[train.nt-asgd]\nnonmonotone_interval = {}\n", interval)) {
    parameters_.add("a", {3, 2}, Role::weight);
    parameters_.add("b", {2}, Role::bias);
    parameters_.allocate();
    parameters_.flat().copy_(testing::random_tensor({8}, 1));
    optimizer_ = make();
  }
  std::unique_ptr<Optimizer> make() const { return make_optimizer("nt-asgd", parameters_, test::options(toml_)); }

  /// One step with random gradients.
  void step(uint64_t t, bool freezes = false) {
    const std::vector<ParameterStep> settings = {{.learning_rate = 0.1}, {.learning_rate = 0.1, .frozen = freezes}};
    optimizer_->step({testing::random_tensor({3, 2}, t), testing::random_tensor({2}, 1000 + t)}, settings);
  }
  void validate(double nll) { optimizer_->see_validation(nll); }
  /// Continues with a new optimizer that loads the state of the old one.
  void replace() {
    const NamedTensors state = optimizer_->state();
    optimizer_ = make();
    optimizer_->load_state(state, "state");
  }
  Numbers weights() const { return numbers(parameters_.flat()); }
  Numbers evaluated() const { return numbers(optimizer_->evaluation_weights()); }

 private:
  std::string toml_;
  Parameters parameters_{at::kDouble};
  std::unique_ptr<Optimizer> optimizer_;
};

// Two steps between validations, whose values fall, rise and fluctuate.
TEST(NtAsgd, AveragesFromTheValidationOnThatIsNoBestForLong) {
  const std::vector<double> values = {5.0,  4.0,  4.5, 4.2, 3.9, 3.95, 3.8,  3.9,
                                      3.85, 3.81, 3.9, 3.7, 3.6, 3.9,  3.65, 3.7};
  std::vector<int64_t> began;
  for (const int64_t n : {1, 2, 3, 5, 20}) {
    NtAsgdRun whole(n), parts(n);
    std::vector<double> logs;
    int64_t trigger = 0, k = 0;  // T, and the current step
    Numbers sum(8, 0.0);
    for (const double value : values) {
      for (int i = 0; i < 2; ++i) {
        ++k;
        whole.step(static_cast<uint64_t>(k));
        parts.step(static_cast<uint64_t>(k));
        const Numbers w = whole.weights();
        if (trigger > 0) {
          for (size_t j = 0; j < w.size(); ++j) sum[j] += w[j];
        }
        const Numbers found = whole.evaluated();
        for (size_t j = 0; j < w.size(); ++j) {
          const double expected = trigger > 0 ? sum[j] / static_cast<double>(k - trigger + 1) : w[j];
          ASSERT_NEAR(found[j], expected, 1e-13) << "step " << k << ", n = " << n;
        }
      }
      const auto t = std::ssize(logs);
      if (trigger == 0 && t > n && value > *std::min_element(logs.begin(), logs.begin() + (t - n))) {
        trigger = k;
        sum = whole.weights();
      }
      logs.push_back(value);
      whole.validate(value);
      parts.validate(value);
      if (trigger == k) {
        EXPECT_EQ(whole.evaluated(), whole.weights());
      }
      parts.replace();
      EXPECT_EQ(parts.evaluated(), whole.evaluated()) << "step " << k << ", n = " << n;
    }
    began.push_back(trigger);
  }
  EXPECT_EQ(began, (std::vector<int64_t>{8, 20, 22, 28, 0}));  // by hand
}

TEST(NtAsgd, AFrozenParameterIsTheMeanOfTheWeightsThatItHad) {
  NtAsgdRun run(1);
  for (const double value : {1.0, 2.0, 3.0}) run.validate(value);  // averaging begins: 3 > min(1)
  Numbers sum = run.weights();
  for (const bool frozen : {false, true, true, false}) {
    run.step(7, frozen);
    const Numbers w = run.weights();
    for (size_t j = 0; j < w.size(); ++j) sum[j] += j >= 6 && frozen ? 0.0 : w[j];
  }
  const Numbers found = run.evaluated();
  for (size_t j = 0; j < found.size(); ++j) EXPECT_NEAR(found[j], sum[j] / (j >= 6 ? 3 : 5), 1e-14) << j;
}

TEST(NtAsgd, AValidationThatIsNotANumberDecidesNothing) {
  NtAsgdRun run(1);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double value : {3.0, nan, nan, 2.0, nan}) run.validate(value);
  run.step(1);
  EXPECT_EQ(run.evaluated(), run.weights());
  run.validate(2.5);  // above 2.0
  run.step(2);
  EXPECT_NE(run.evaluated(), run.weights());
}

TEST(NtAsgd, TheIntervalIsAtLeastOne) { EXPECT_THROW(NtAsgdRun(0), Error); }

}  // namespace
}  // namespace plumb
