// How often each rule errs, by simulation. The table is part of docs/verdicts.md, which must show the same numbers.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "plumb/analysis/rules.h"
#include "plumb/analysis/sweep.h"
#include "plumb/base/input.h"
#include "plumb/base/random.h"
#include "support/contains.h"
#include "support/paths.h"

namespace plumb {
namespace {

constexpr int kTrials = 4000;
constexpr double kFailed = std::numeric_limits<double>::infinity();

/// Shares of the outcomes over all trials, in percent.
struct Rates {
  double supported = 0, contradicted = 0, smaller = 0, undecided = 0, not_testable = 0;
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
      case Outcome::smaller:
        rates.smaller += 100.0 / kTrials;
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

std::vector<double> losses(Random& random, int n, double mean, double failing) {
  std::vector<double> values = normal(random, n, mean, 0.05);
  for (double& value : values) {
    if (random.uniform() < failing) value = kFailed;
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

/// A sweep as they are measured: the mean loss is a parabola of the logarithm of the rate, whose minimum lies anywhere
/// between two of four rates (a factor of 4 apart) or on one of them, and training becomes unstable beyond it.
struct Landscape {
  double minimum = 3;
  double curvature = 0.3;  // loss one step of the sweep away from the minimum, minus the minimum
  double noise = 0.05;     // between runs
  double edge = 9;         // steps beyond the minimum from which the mean is 2 higher and the noise 1
  double wander = 0;       // deviation of a seed's own minimum from that of the arm, in steps
  double failed_at = kNoLimit;
};

Sweep swept(Random& random, const Landscape& landscape, int seeds) {
  const double optimum = 1 + random.uniform() - 0.5;       // in steps from the first rate
  std::vector<double> own(static_cast<size_t>(seeds), 0);  // how far a seed's minimum lies from the arm's
  if (landscape.wander > 0) own = normal(random, seeds, 0, landscape.wander);
  Sweep sweep{{}, landscape.failed_at};
  for (int step = 0; step < 4; ++step) {
    const double away = step - optimum;
    const bool unstable = away > landscape.edge;
    Sweep::Point point{1e-3 * std::pow(4, step), normal(random, seeds, 0, unstable ? 1 : landscape.noise)};
    for (size_t seed = 0; seed < own.size(); ++seed) {
      const double distance = away - own[seed];
      point.losses[seed] += landscape.minimum + landscape.curvature * distance * distance + (unstable ? 2 : 0);
    }
    sweep.points.push_back(point);
  }
  return sweep;
}

using Rule = std::function<Judgment(const Sweep&, const Sweep&, const Region&)>;

Judgment judge_sweeps(const Sweep& first, const Sweep& second, const Region& region) {
  return judge_best(first, second, region);
}

/// For comparison: arms at the best rates of their sweeps, whatever lies between these.
Judgment judge_at_rates(const Sweep& first, const Sweep& second, const Region& region) {
  return undecided_because(judge_difference(first.best_losses(), second.best_losses(), region),
                           first.open_end() + second.open_end());
}

/// For comparison: each seed at the rate that is best for the other seeds.
Judgment judge_by_others(const Sweep& first, const Sweep& second, const Region& region) {
  std::string open;
  const auto losses = [&open](const Sweep& sweep) {
    std::vector<double> found;
    for (size_t seed = 0; seed < sweep.points.front().losses.size(); ++seed) {
      Sweep others = sweep;
      for (Sweep::Point& point : others.points) point.losses.erase(point.losses.begin() + static_cast<int64_t>(seed));
      open += others.open_end();
      found.push_back(sweep.points[static_cast<size_t>(&others.best() - others.points.data())].losses[seed]);
    }
    return found;
  };
  const std::vector<double> of_first = losses(first);
  return undecided_because(judge_difference(of_first, losses(second), region), open);
}

struct Case {
  std::string name;
  bool claim_is_true;
  std::function<Judgment(Random&)> trial;
  bool never_contradicts = false;  // the claim is false, but not the other way around
  bool used = true;                // no: for comparison, without a bound on its errors
};

std::vector<Case> cases() {
  std::vector<Case> list;
  for (const int n : {3, 5, 10}) {
    const auto above = [n](double mean) {
      return [n, mean](Random& random) { return judge(normal(random, n, mean, 1), Region::above(1)); };
    };
    list.push_back({fmt::format("mean above 1, truly 1 (the edge), {} seeds", n), false, above(1)});
    list.push_back({fmt::format("mean above 1, truly 4, {} seeds", n), true, above(4)});
    list.push_back({fmt::format("mean within ±1, truly 1 (the edge), {} seeds", n), false,
                    [n](Random& random) { return judge(normal(random, n, 1, 1), Region::around(0, 1)); }});
    for (const double mean : {0.0, 0.5}) {
      list.push_back({fmt::format("increase of more than 1, truly {}, noise 0.3, {} seeds", mean, n), false,
                      [n, mean](Random& random) { return judge(normal(random, n, mean, 0.3), Region::above(1, 0)); },
                      true});
    }
  }
  list.push_back({"mean within ±1, truly 0, noise 0.4, 5 seeds", true,
                  [](Random& random) { return judge(normal(random, 5, 0, 0.4), Region::around(0, 1)); }});
  list.push_back({"ratio above 1, truly 1, 5 seeds", false, [](Random& random) {
                    std::vector<double> ratios = normal(random, 5, 0, 0.3);
                    for (double& ratio : ratios) ratio = std::exp(ratio);
                    return judge(ratios, Region::above(1), Scale::logarithmic);
                  }});
  for (const double failing : {0.0, 0.3, 0.7, 1.0}) {
    const auto within = [failing](const Region& region) {
      return [failing, region](Random& random) {
        const std::vector<double> first = losses(random, 3, 3.1, failing);
        return judge_difference(first, losses(random, 3, 3, failing), region);
      };
    };
    list.push_back({fmt::format("loss worse by 0.1, truly by 0.1; {:g}% of all runs fail, 3 seeds", 100 * failing),
                    false, within(Region::above(0.1))});
    list.push_back(
        {fmt::format("loss as good within 0.1, truly worse by 0.1; {:g}% of all runs fail, 3 seeds", 100 * failing),
         false, within(Region::around(0, 0.1))});
  }
  // Of text, runs that fail count with the loss of the labels' frequencies, 5 here. The expected difference is 0.1.
  const auto averaged = [](int n, double worse, double first_failing, double second_failing, const Region& region) {
    return [=](Random& random) {
      const std::vector<double> first = losses(random, n, 3 + worse, first_failing);
      return judge_difference(first, losses(random, n, 3, second_failing), region, kConfidence, 5);
    };
  };
  for (const int n : {3, 5}) {
    const auto add = [&, n](const std::string& name, bool is_true, const std::function<Judgment(Random&)>& trial,
                            bool used = true) {
      list.push_back({fmt::format("{} and count with 5, {} seeds", name, n), is_true, trial, false, used});
    };
    for (const double failing : {0.3, 0.7}) {
      const double worse = 0.1 / (1 - failing);
      const std::string runs = fmt::format("by 0.1; {:g}% of all runs fail", 100 * failing);
      add("loss worse by 0.1, truly " + runs, false, averaged(n, worse, failing, failing, Region::above(0.1)));
      add("loss as good within 0.1, truly worse " + runs, false,
          averaged(n, worse, failing, failing, Region::around(0, 0.1)));
    }
    add("loss worse by 0.1, truly by 0.1, as 30% and 25% of the runs fail", false,
        averaged(n, 0, 0.3, 0.25, Region::above(0.1)));
    add("loss worse by 0.1, truly by 1.8, as 90% of the first arm's runs fail", true,
        averaged(n, 0, 0.9, 0, Region::above(0.1)));
    // No rule can judge by a failure that no run shows.
    add("loss as good within 0.1, truly worse by 0.1, as 5% of the first arm's runs fail", false,
        averaged(n, 0, 0.05, 0, Region::around(0, 0.1)), false);
  }
  list.push_back({"loss worse by 0.1, every run of the first arm fails, 3 seeds", true, [](Random& random) {
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
  // A law's prediction of one measurement, and what no law would predict: the one before, which is larger by `fall`.
  const auto predicted = [](double off, double fall) {
    return [off, fall](Random& random) {
      const std::vector<double> measured = normal(random, 3, 3, 0.01);
      const std::vector<double> by_law = normal(random, 3, 3 - off, 0.005), before = normal(random, 3, 3 + fall, 0.01);
      std::vector<double> errors, guess_errors;
      for (size_t seed = 0; seed < 3; ++seed) {
        errors.push_back(measured[seed] - by_law[seed]);
        guess_errors.push_back(measured[seed] - before[seed]);
      }
      return judge_prediction(errors, guess_errors, "a guess", 0.05);
    };
  };
  list.push_back({"prediction within ±0.05, off by 0.05, a guess by 0.2, 3 seeds", false, predicted(0.05, 0.2)});
  list.push_back({"prediction within ±0.05, right, but a guess off by 0.05, 3 seeds", false, predicted(0, 0.05)});
  list.push_back({"prediction within ±0.05, right, a guess off by 0.2, 3 seeds", true, predicted(0, 0.2)});
  const struct {
    const char* name;
    Landscape first, second;
  } arms[] = {
      {"best rates off the grid", {}, {}},
      {"off the grid, unequal curvature", {3, 0.6}, {3, 0.15}},
      {"off the grid, unequal noise and edge", {3, 0.3, 0.065, 0.8}, {3, 0.3, 0.012, 1.8}},
      {"off the grid, unequal curvature, noise and edge", {3, 0.6, 0.065, 0.8}, {3, 0.15, 0.012, 1.8}},
      {"off the grid, unequal curvature, noise and edge, failed runs count with 5",
       {3, 0.6, 0.065, 0.8, 0, 5},
       {3, 0.15, 0.012, 1.8, 0, 5}},
      {"off the grid, each seed with its own optimum", {3, 0.3, 0.05, 9, 0.5}, {3, 0.3, 0.05, 9, 0.5}},
  };
  for (const auto& pair : arms) {
    for (const int n : {3, 5}) {
      const auto trial = [&pair, n](double worse, const Region& region, const Rule& rule) {
        return [first = pair.first, second = pair.second, n, worse, region, rule](Random& random) {
          Landscape raised = first;
          raised.minimum += worse;
          const Sweep one = swept(random, raised, n);
          return rule(one, swept(random, second, n), region);
        };
      };
      const auto name = [&](const char* what) { return fmt::format("{}: {}, {} seeds", pair.name, what, n); };
      list.push_back({name("worse by 0.1, truly by 0.1"), false, trial(0.1, Region::above(0.1), judge_sweeps)});
      list.push_back(
          {name("worse by less than 0.1, truly by 0.1"), false, trial(0.1, Region::below(0.1), judge_sweeps)});
      list.push_back({name("worse by 0.1, truly by 0.5"), true, trial(0.5, Region::above(0.1), judge_sweeps)});
      if (n < 5) continue;
      list.push_back({name("worse by 0.1, truly by 0.1") + ", without the rule on what lies between", false,
                      trial(0.1, Region::above(0.1), judge_at_rates), false, false});
      list.push_back({name("worse by 0.1, truly by 0.1") + ", the same with rates chosen by the other seeds", false,
                      trial(0.1, Region::above(0.1), judge_by_others), false, false});
    }
  }
  return list;
}

TEST(Rules, ErrAtMostInOneOfTwentyCasesAsDocumented) {
  const std::string page = read_file(test::source_directory() / "docs" / "verdicts.md");
  std::string table;
  for (const Case& one : cases()) {
    const Rates rates = rates_of(one.name, one.trial);
    if (!one.used) {
      // Shows what the rule is for.
    } else if (!one.claim_is_true) {
      // 5% and three standard errors of the simulation.
      EXPECT_LE(rates.supported, 5 + 300 * std::sqrt(0.05 * 0.95 / kTrials)) << one.name;
      if (one.never_contradicts) {
        EXPECT_LE(rates.contradicted, 2.5 + 300 * std::sqrt(0.025 * 0.975 / kTrials)) << one.name;
      }
    } else {
      EXPECT_LE(rates.contradicted, 5) << one.name;
      EXPECT_GE(rates.supported, 25) << one.name;
    }
    const std::string row = fmt::format("| {} | {} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {:.1f} |\n", one.name,
                                        one.claim_is_true ? "yes" : "no", rates.supported, rates.contradicted,
                                        rates.smaller, rates.undecided, rates.not_testable);
    table += row;
    EXPECT_CONTAINS(page, row);
  }
  if (HasFailure()) ADD_FAILURE() << "the table for docs/verdicts.md:\n" << table;
}

}  // namespace
}  // namespace plumb
