// How often each rule errs, by simulation. The table is part of docs/verdicts.md, which must show the same numbers.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "plumb/analysis/rules.h"
#include "plumb/analysis/sweep.h"
#include "plumb/base/files.h"
#include "plumb/base/random.h"

namespace plumb {
namespace {

constexpr int kTrials = 4000;
constexpr double kDiverged = std::numeric_limits<double>::infinity();

/// Shares of the outcomes over all trials, in percent.
struct Rates {
  double supported = 0, contradicted = 0, undecided = 0, not_testable = 0;
};

Rates rates_of(const std::string& name, const std::function<Judgment(Random&)>& trial) {
  Rates rates;
  for (int i = 0; i < kTrials; ++i) {
    Random random(static_cast<uint64_t>(i), name);
    switch (trial(random).outcome) {
      case Outcome::supported:
        rates.supported += 100.0 / kTrials;
        break;
      case Outcome::contradicted:
        rates.contradicted += 100.0 / kTrials;
        break;
      case Outcome::undecided:
        rates.undecided += 100.0 / kTrials;
        break;
      case Outcome::not_testable:
        rates.not_testable += 100.0 / kTrials;
        break;
    }
  }
  return rates;
}

std::vector<double> normal(Random& random, int n, double mean, double deviation) {
  std::vector<double> values;
  for (int i = 0; i < n; ++i) values.push_back(mean + deviation * random.normal());
  return values;
}

std::vector<double> losses(Random& random, int n, double mean, double diverging) {
  std::vector<double> values = normal(random, n, mean, 0.05);
  for (double& value : values) {
    if (random.uniform() < diverging) value = kDiverged;
  }
  return values;
}

/// Losses over four learning rates, the best of them inside the sweep; noise of 0.05 between runs.
Sweep noisy_sweep(Random& random, double best, int seeds) {
  Sweep sweep;
  for (const double excess : {0.3, 0.0, 0.02, 0.4}) {
    sweep.points.push_back(
        {1e-3 * static_cast<double>(sweep.points.size() + 1), normal(random, seeds, best + excess, 0.05)});
  }
  return sweep;
}

struct Case {
  std::string name;
  bool claim_is_true;
  std::function<Judgment(Random&)> trial;
};

std::vector<Case> cases() {
  std::vector<Case> list;
  for (const int n : {2, 3, 5, 10}) {
    const auto above = [n](double mean) {
      return [n, mean](Random& random) { return judge(normal(random, n, mean, 1), Region::above(1)); };
    };
    list.push_back({fmt::format("mean above 1, truly 1 (the edge), {} seeds", n), false, above(1)});
    list.push_back({fmt::format("mean above 1, truly 4, {} seeds", n), true, above(4)});
    list.push_back({fmt::format("mean within ±1, truly 1 (the edge), {} seeds", n), false,
                    [n](Random& random) { return judge(normal(random, n, 1, 1), Region::around(0, 1)); }});
  }
  list.push_back({"mean within ±1, truly 0, noise 0.4, 5 seeds", true,
                  [](Random& random) { return judge(normal(random, 5, 0, 0.4), Region::around(0, 1)); }});
  list.push_back({"ratio above 1, truly 1, 5 seeds", false, [](Random& random) {
                    std::vector<double> ratios = normal(random, 5, 0, 0.3);
                    for (double& ratio : ratios) ratio = std::exp(ratio);
                    return judge(ratios, Region::above(1), Scale::logarithmic);
                  }});
  for (const double diverging : {0.0, 0.3, 0.7, 1.0}) {
    const auto within = [diverging](const Region& region) {
      return [diverging, region](Random& random) {
        const std::vector<double> first = losses(random, 3, 3.1, diverging);
        return judge_difference(first, losses(random, 3, 3, diverging), region);
      };
    };
    list.push_back({fmt::format("loss worse by 0.1, truly by 0.1; {:g}% of all runs diverge, 3 seeds", 100 * diverging),
                    false, within(Region::above(0.1))});
    list.push_back({fmt::format("loss as good within 0.1, truly worse by 0.1; {:g}% of all runs diverge, 3 seeds",
                                100 * diverging),
                    false, within(Region::around(0, 0.1))});
  }
  list.push_back({"loss worse by 0.1, every run of the first arm diverges, 3 seeds", true, [](Random& random) {
                    const std::vector<double> first = losses(random, 3, 3, 1);
                    return judge_difference(first, losses(random, 3, 3, 0), Region::above(0.1));
                  }});
  for (const int n : {3, 5}) {
    const auto best = [n](double loss, const Region& region) {
      return [n, loss, region](Random& random) {
        const Sweep first = noisy_sweep(random, loss, n);
        return judge_best(first, noisy_sweep(random, 3, n), region);
      };
    };
    list.push_back({fmt::format("best rates: loss worse by 0.1, truly by 0.1, {} seeds", n), false,
                    best(3.1, Region::above(0.1))});
    list.push_back({fmt::format("best rates: loss as good within 0.1, truly worse by 0.1, {} seeds", n), false,
                    best(3.1, Region::around(0, 0.1))});
    list.push_back(
        {fmt::format("best rates: loss worse by 0.1, truly by 0.5, {} seeds", n), true, best(3.5, Region::above(0.1))});
  }
  for (const int n : {2, 5}) {
    list.push_back({fmt::format("growth over 4 conditions, none, {} seeds", n), false, [n](Random& random) {
                      std::vector<std::vector<double>> values;
                      for (int i = 0; i < n; ++i) values.push_back(normal(random, 4, 0, 1));
                      return judge_growth(values);
                    }});
  }
  list.push_back({"growth over 4 conditions by their noise each, 5 seeds", true, [](Random& random) {
                    std::vector<std::vector<double>> values;
                    for (int i = 0; i < 5; ++i) {
                      values.push_back(normal(random, 4, 0, 1));
                      for (size_t k = 0; k < 4; ++k) values.back()[k] += static_cast<double>(k);
                    }
                    return judge_growth(values);
                  }});
  return list;
}

TEST(Rules, ErrAtMostInOneOfTwentyCasesAsDocumented) {
  const std::string page = read_file(std::filesystem::path(PLUMB_SOURCE_DIR) / "docs" / "verdicts.md");
  std::string table;
  for (const Case& one : cases()) {
    const Rates rates = rates_of(one.name, one.trial);
    if (!one.claim_is_true) {
      // 5% and three standard errors of the simulation.
      EXPECT_LE(rates.supported, 5 + 300 * std::sqrt(0.05 * 0.95 / kTrials)) << one.name;
    } else {
      EXPECT_LE(rates.contradicted, 5) << one.name;
      EXPECT_GE(rates.supported, 25) << one.name;
    }
    const std::string row =
        fmt::format("| {} | {} | {:.1f} | {:.1f} | {:.1f} | {:.1f} |\n", one.name, one.claim_is_true ? "yes" : "no",
                    rates.supported, rates.contradicted, rates.undecided, rates.not_testable);
    table += row;
    EXPECT_NE(page.find(row), std::string::npos) << row;
  }
  if (HasFailure()) ADD_FAILURE() << "the table for docs/verdicts.md:\n" << table;
}

}  // namespace
}  // namespace plumb
