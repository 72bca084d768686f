// A study with warm-ups in tokens.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "plumb/analysis/statistics.h"
#include "plumb/run/directory.h"
#include "plumb/run/metrics_file.h"
#include "plumb/study/study.h"
#include "plumb/study/trained_run.h"
#include "study/label_entropy.h"
#include "study/parts.h"
#include "support/entries.h"
#include "train/copy_task.h"

namespace plumb {
namespace {

/// Pre-LN on the copy task, which is written to `data`; its parts are still to be chosen.
StudyConfig copy_study(const std::filesystem::path& data) {
  test::make_copy_task(data);
  const RunConfig run = test::copy_run(data);
  StudyConfig config;
  config.study.schemes = {"pre-ln"};
  config.data.directory = data.string();
  config.model = run.model;
  config.train = run.train;
  return config;
}

TEST(WarmUpStudy, ComparesWarmUpsInTokens) {
  const test::TemporaryDirectory folder;
  StudyConfig config = copy_study(folder / "data");
  config.train.steps = 60;  // enough to learn something
  config.train.log_every = 1;
  config.parts = test::parts(R"(
[training]
warm_ups = [0, "1kt", "10kt"]
learning_rates = [1e-2, 1e-3]
layers = [1]
seeds = 3
)");
  const Json results = run_study(config, folder / "out");

  std::vector<Json> warm_ups;
  std::map<std::pair<std::string, double>, std::vector<double>> losses;  // by warm-up and rate
  for (const Json& row : test::entry(results["tables"], "id", "runs")["rows"]) {
    if (warm_ups.empty() || warm_ups.back() != row[3]) warm_ups.push_back(row[3]);
    losses[{row[3].dump(), row[4]}].push_back(row[8]);
  }
  EXPECT_EQ(warm_ups, (std::vector<Json>{0, "1kt", "10kt"}));
  const double most = test::label_entropy(*make_task({}, DataDirectory::open(folder / "data"), "encoder-decoder"));
  const Json& compared = test::entry(results["tables"], "id", "comparisons")["rows"];
  EXPECT_EQ(compared.size(), 6U);  // two warm-ups against none, at their best rates and at each
  for (const double rate : {1e-2, 1e-3}) {
    const auto row = std::find_if(compared.begin(), compared.end(), [&](const Json& each) {
      return each[0] == fmt::format("final validation loss at a learning rate of {:g} (nats per token)", rate) &&
             each[1] == "warm-up 10kt" && each[2] == "no warm-up";
    });
    ASSERT_TRUE(row != compared.end()) << compared;
    const std::vector<double>&without = losses.at({"0", rate}), &with = losses.at({"\"10kt\"", rate});
    std::vector<double> difference;
    bool all_failed = true;
    for (size_t seed = 0; seed < 3; ++seed) {
      difference.push_back(std::min(with[seed], most) - std::min(without[seed], most));
      all_failed = all_failed && with[seed] >= most && without[seed] >= most;
    }
    if (all_failed) {
      EXPECT_TRUE((*row)[4].is_null()) << *row;
      continue;
    }
    const Interval expected = confidence_interval(difference);
    EXPECT_NEAR((*row)[4].get<double>(), expected.mean, 1e-12);
    EXPECT_NEAR((*row)[5].get<double>(), expected.low, 1e-12);
  }
  const Json& summary = results["summary"];
  EXPECT_TRUE(std::any_of(summary.begin(), summary.end(), [](const Json& sentence) {
    return sentence.get<std::string>().starts_with(
        "Over seeds, the final losses of two arms at their best learning rates");
  })) << summary;

  // Learning rates: the run takes only the first of the many steps of a linear warm-up over 10,000 tokens.
  int checked = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "out" / "runs")) {
    const std::string name = entry.path().filename();
    const std::vector<TrainPoint> points = read_metrics(entry.path() / "metrics.jsonl");
    ASSERT_GE(points.size(), 3U);
    if (name.find("-warmup0-") != std::string::npos) {
      ++checked;
      // The decay begins where the longest warm-up ends, not at step 1.
      const double rate = load_run_config(entry.path()).train.learning_rate;
      for (size_t i = 0; i < 3; ++i) EXPECT_DOUBLE_EQ(points[i].learning_rate, rate) << i;
    }
    if (name.find("-warmup10kt-") == std::string::npos) continue;
    ++checked;
    EXPECT_LT(points[2].learning_rate, 0.5e-2);
    EXPECT_DOUBLE_EQ(points[2].learning_rate, 3 * points[0].learning_rate);
  }
  EXPECT_EQ(checked, 12);
}

/// An arm whose groups warm up is not called one without a warm-up.
TEST(WarmUpStudy, KnowsAnArmsOwnWarmUp) {
  const test::TemporaryDirectory folder;
  StudyConfig config = copy_study(folder / "data");
  config.train.steps = 4;
  config.train.schedule = "constant * linear_warmup";
  const auto results_in = [&](const std::string& out, const std::string& warm_ups) {
    config.parts = test::parts(fmt::format(
        "[train]\nschedule = \"constant * linear_warmup\"\n[training]\nwarm_ups = [{}]\nlearning_rates = [1e-3]\n"
        "layers = [1]\nbleu_pairs = 2\nbleu_split = \"valid\"",
        warm_ups));
    return run_study(config, folder / out);
  };
  const auto line = [](const Json& results) {
    const Json& drawn = results["figures"].front()["series"].front();
    return drawn["name"].get<std::string>() + "; " + drawn["style"].get<std::string>();
  };
  const auto bars = [](const Json& results) {
    return test::entry(results["figures"], "id", "bleu")["series"][0]["x"].get<std::vector<std::string>>();
  };
  EXPECT_EQ(line(results_in("none", "0")), "Pre-LN, no warm-up, lr 0.001; dashed");
  config.train.groups = {{.pattern = {"*"}, .warm_up = 2}};
  EXPECT_EQ(line(results_in("own", "0")), "Pre-LN, lr 0.001; solid");
  EXPECT_EQ(bars(results_in("own, both", "0, 3")),
            (std::vector<std::string>{"1+1, adam, warm-up of its own", "1+1, adam, warm-up 3"}));
}

// With every schedule: the runs differ only until the longest warm-up is over.
TEST(WarmUpStudy, ComparesRunsWithTheSameRatesAfterwards) {
  const std::vector<Duration> warm_ups = {0, 3, 20, 7};
  for (const std::string factor : {"rsqrt_decay", "cosine_decay", "linear_decay", "step_decay", "stable_decay"}) {
    for (const int64_t decay_start : {0, 5}) {
      TrainConfig train;
      train.schedule = "constant * linear_warmup * " + factor;
      train.decay_start = decay_start;
      train.steps = 60;
      const Schedule longest = make_schedule(with_warm_up(train, 20, warm_ups), 16);
      for (const Duration& warm_up : warm_ups) {
        const Schedule schedule = make_schedule(with_warm_up(train, warm_up, warm_ups), 16);
        // Cosine and line end at the last step wherever they begin, so only an inverse square root needs to be tied.
        const bool tied = decay_start > 0 || factor == "rsqrt_decay";
        for (const int64_t step : {20, 21, 40, 60}) {
          EXPECT_NEAR(schedule(step), longest(step), tied ? 1e-15 : 0.5 * train.learning_rate)
              << factor << ", warm-up " << warm_up.text() << ", step " << step;
        }
      }
    }
  }
}

}  // namespace
}  // namespace plumb
