// Durations in tokens and epochs against a walk through every step of a plan, and runs with such durations.
#include "plumb/train/timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "copy_task.h"
#include "plumb/base/error.h"
#include "plumb/model/encoder_decoder.h"
#include "plumb/run/directory.h"
#include "plumb/train/run_training.h"
#include "plumb/train/step_source.h"
#include "run_contents.h"
#include "support/paths.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

using EpochSteps = std::vector<std::vector<int64_t>>;  // target tokens by epoch and step

/// Epochs of 1 to 9 steps with 0 to 40 tokens each.
EpochSteps ragged_epochs(uint64_t seed, int64_t epochs) {
  Random random(seed, "timeline");
  EpochSteps all(static_cast<size_t>(epochs));
  for (std::vector<int64_t>& epoch : all) {
    for (uint64_t n = 1 + random.below(9); n > 0; --n)
      epoch.push_back(random.below(5) == 0 ? 0 : static_cast<int64_t>(random.below(41)));
    epoch.back() += 1;  // an epoch has tokens
  }
  return all;
}

Timeline timeline_of(const EpochSteps& epochs) {
  return Timeline([epochs](int64_t epoch) { return epochs.at(static_cast<size_t>(epoch)); });
}

/// What has been seen by the end of a step: tokens, and epochs as the fraction numerator/denominator.
struct Place {
  int64_t tokens = 0, numerator = 0, denominator = 1;
};

/// The ends of steps 0, 1, 2, …
std::vector<Place> places_of_steps(const EpochSteps& epochs) {
  std::vector<Place> places = {{}};
  for (size_t e = 0; e < epochs.size(); ++e) {
    const int64_t size = std::ssize(epochs[e]);
    for (int64_t j = 1; j <= size; ++j) {
      const int64_t tokens = places.back().tokens + epochs[e][static_cast<size_t>(j - 1)];
      places.push_back({tokens, static_cast<int64_t>(e) * size + j, size});
    }
  }
  return places;
}

/// Whether `times` the duration has been seen at this place.
bool has_seen(const Place& place, const Duration& duration, int64_t times = 1) {
  if (duration.unit() == Duration::Unit::tokens) return place.tokens >= times * duration.amount();
  return place.numerator * 1'000'000 >= times * duration.amount() * place.denominator;
}

/// The first step that has seen `times` the duration; empty if none has.
std::optional<int64_t> walked_to(const std::vector<Place>& places, const Duration& duration, int64_t times = 1) {
  for (size_t step = 0; step < places.size(); ++step) {
    if (has_seen(places[step], duration, times)) return static_cast<int64_t>(step);
  }
  return std::nullopt;
}

std::vector<Duration> some_durations() {
  std::vector<Duration> all;
  for (const char* text : {"1t", "7t", "40t", "41t", "123t", "0.4kt", "1e", "2e", "3e", "0.5e", "0.25e", "0.333333e",
                           "0.1e", "0.000001e", "1.5e", "2.7e"}) {
    all.push_back(Duration::parse(text));
  }
  return all;
}

TEST(Timeline, FindsTheFirstStepThatHasSeenAsMuch) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const EpochSteps epochs = ragged_epochs(seed, 40);
    const std::vector<Place> places = places_of_steps(epochs);
    Timeline timeline = timeline_of(epochs);
    for (const Duration& duration : some_durations()) {
      EXPECT_EQ(timeline.first_step(duration), walked_to(places, duration)) << duration.text() << ", seed " << seed;
    }
    // Independent of earlier questions.
    EXPECT_EQ(timeline_of(epochs).first_step(Duration::parse("2.7e")), timeline.first_step(Duration::parse("2.7e")));
    EXPECT_EQ(timeline.first_step(Duration::parse("3e")),
              std::ssize(epochs[0]) + std::ssize(epochs[1]) + std::ssize(epochs[2]));
  }
}

TEST(Timeline, APeriodIsDueWhereAMultipleIsFirstReached) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const EpochSteps epochs = ragged_epochs(seed, 12);
    const std::vector<Place> places = places_of_steps(epochs);
    const int64_t last = std::ssize(places) - 1;
    for (const Duration& period : some_durations()) {
      SCOPED_TRACE(period.text());
      std::set<int64_t> expected;  // several multiples may be reached at once
      if (period.amount() > 1) {
        for (int64_t times = 1; const auto step = walked_to(places, period, times); ++times) expected.insert(*step);
      } else {  // due at every step that sees anything
        for (int64_t step = 1; step <= last; ++step) {
          const bool sees = period.unit() == Duration::Unit::epochs ||
                            places[static_cast<size_t>(step)].tokens > places[static_cast<size_t>(step) - 1].tokens;
          if (sees) expected.insert(step);
        }
      }
      Timeline timeline = timeline_of(epochs);
      for (int64_t step = last; step >= 0; --step) {
        EXPECT_EQ(timeline.due(period, step), expected.contains(step)) << step;
      }
      EXPECT_EQ(timeline.due_steps(period, last), std::vector(expected.begin(), expected.end()));
      const auto first = timeline.first_due(period, last, 0);
      EXPECT_EQ(first, expected.empty() ? std::nullopt : std::optional(*expected.begin()));
    }
  }
}

TEST(Timeline, SharesAreOfTheRunThatIsPlanned) {
  const EpochSteps epochs = {{10, 20, 30}, {30, 10, 20}, {20, 20, 20, 5}, {1, 1}};
  const auto tokens_of = [epochs](int64_t epoch) { return epochs.at(static_cast<size_t>(epoch)); };
  const auto expect = [](Timeline timeline, int64_t steps, int64_t tenth, const std::vector<int64_t>& thirds) {
    EXPECT_EQ(timeline.run_steps(), steps);
    EXPECT_EQ(timeline.first_step(Duration::parse("100%")), steps);
    EXPECT_EQ(timeline.first_step(Duration::parse("10%")), tenth);
    EXPECT_EQ(timeline.due_steps(Duration::parse("33.3333%"), steps), thirds);
  };
  expect(Timeline(tokens_of, 50), 50, 5, {17, 34, 50});
  expect(Timeline(tokens_of, 51), 51, 6, {17, 34, 51});
  expect(Timeline(tokens_of, 1), 1, 1, {1});
  expect(Timeline(tokens_of, Duration::parse("3e")), 10, 1, {4, 7, 10});
  expect(Timeline(tokens_of, Duration::parse("130t")), 7, 1, {3, 5, 7});
  expect(Timeline(tokens_of, 1000, 2), 6, 1, {2, 4, 6});  // of the epochs, if they are fewer
  expect(Timeline(tokens_of, 7, 3), 7, 1, {3, 5, 7});
  for (const Duration& of_itself : {Duration::parse("50%"), Duration()}) {
    Timeline timeline(tokens_of, of_itself);
    EXPECT_THROW((void)timeline.run_steps(), Error);
    EXPECT_THROW((void)timeline.first_step(Duration::parse("10%")), Error);
  }
}

TEST(Timeline, AFiniteDecayEndsWithTheEpochs) {
  const EpochSteps epochs(20, {10, 20, 30});
  TrainConfig config;
  config.schedule = "constant * linear_decay";
  config.warm_up = Duration::parse("10%");
  config.epochs = 20;
  Timeline timeline([&](int64_t epoch) { return epochs.at(static_cast<size_t>(epoch)); }, config.steps, config.epochs);
  const TrainConfig found = resolved(config, timeline);
  EXPECT_EQ(found.steps, 60);
  EXPECT_EQ(found.warm_up, 6);
  const Schedule schedule = make_schedule(found, 16);
  EXPECT_NEAR(schedule(33), config.learning_rate / 2, 1e-12);
  EXPECT_EQ(schedule(60), 0);
}

TEST(Timeline, StepsNeedNoPlan) {
  Timeline timeline([](int64_t) -> std::vector<int64_t> { throw Error("planned"); });
  EXPECT_EQ(timeline.first_step(4000), 4000);
  EXPECT_EQ(timeline.first_step(0), 0);
  EXPECT_EQ(timeline.due_steps(3, 10), (std::vector<int64_t>{3, 6, 9}));
  EXPECT_FALSE(timeline.due(3, 0));
  for (const int64_t never : {0, -1}) {
    EXPECT_FALSE(timeline.due(never, 1));
    EXPECT_TRUE(timeline.due_steps(never, 10).empty());
  }
  EXPECT_EQ(timeline.first_due(7, 10, 0), std::optional<int64_t>(7));
  EXPECT_EQ(timeline.first_due(11, 10, 0), std::nullopt);
  EXPECT_THROW((void)timeline.first_step(Duration::parse("1e")), Error);
}

TEST(Timeline, APeriodBeyondTheRunIsNotPlanned) {
  const EpochSteps epochs = {{5, 5}, {5, 5}, {5, 5}};  // asking for a fourth throws
  EXPECT_EQ(timeline_of(epochs).first_due(Duration::parse("1000e"), 1'000'000, 2), std::nullopt);
  EXPECT_EQ(timeline_of(epochs).first_due(Duration::parse("1000e"), 5, 0), std::nullopt);
  EXPECT_EQ(timeline_of(epochs).first_due(Duration::parse("2e"), 1'000'000, 2), std::optional<int64_t>(4));
}

TEST(Timeline, DataWithoutTokensAreAnError) {
  for (const std::vector<int64_t>& nothing : {std::vector<int64_t>{}, std::vector<int64_t>{0, 0}}) {
    Timeline timeline([&](int64_t) { return nothing; });
    EXPECT_THROW((void)timeline.first_step(Duration::parse("1t")), Error);
    EXPECT_THROW((void)timeline.first_step(Duration::parse("1e")), Error);
  }
}

TEST(Timeline, FollowsThePlanOfTheBatches) {
  Random random(5, "timeline");
  std::vector<ExampleCost> costs;
  for (int i = 0; i < 200; ++i)
    costs.push_back({1 + static_cast<int64_t>(random.below(12)), 1 + static_cast<int64_t>(random.below(12))});
  TrainConfig config;
  config.batch_tokens = 60;
  config.seed = 3;
  bool partial = false;
  for (const int64_t accumulate : {1, 2, 3, 7}) {
    for (const std::string kind : {"encoder-decoder", "encoder"}) {
      config.accumulate = accumulate;
      EpochSteps epochs(3);
      for (size_t e = 0; e < epochs.size(); ++e) {
        const auto plan = plan_batches(costs, 60, 3, static_cast<int64_t>(e));
        partial = partial || std::ssize(plan) % accumulate != 0;
        int64_t in_step = 0;  // batches in this step
        for (const std::vector<int64_t>& batch : plan) {
          if (in_step == 0) epochs[e].push_back(0);
          for (const int64_t i : batch) {
            const ExampleCost& cost = costs[static_cast<size_t>(i)];
            epochs[e].back() += kind == "encoder" ? cost.source : cost.target;
          }
          in_step = (in_step + 1) % accumulate;
        }
      }
      const std::vector<Place> places = places_of_steps(epochs);
      Timeline timeline = make_timeline(costs, config, plan_settings(config), kind);
      for (const char* text : {"1e", "2e", "3e", "0.3e", "1.25e", "1t", "100t", "0.7kt", "1kt", "2345t"}) {
        EXPECT_EQ(timeline.first_step(Duration::parse(text)), walked_to(places, Duration::parse(text)))
            << text << ", " << accumulate << ", " << kind;
      }
    }
  }
  EXPECT_TRUE(partial);  // some epoch ends with a step of fewer batches
}

TEST(Timeline, ResolvesAConfigurationAndSaysSo) {
  const EpochSteps epochs = {{10, 20, 30}, {30, 10, 20}, {20, 20, 20}, {60}, {60}};
  TrainConfig config;
  config.warm_up = Duration::parse("30t");
  config.steps = Duration::parse("3e");
  config.validate_every = Duration::parse("1e");
  config.checkpoint_every = Duration::parse("0.1kt");
  config.keep_every = Duration::parse("4e");
  EXPECT_NO_THROW(validate(config));
  EXPECT_THROW((void)make_schedule(config, 16), Error);
  Timeline timeline = timeline_of(epochs);
  const TrainConfig found = resolved(config, timeline);
  EXPECT_EQ(found.warm_up, 2);
  EXPECT_EQ(found.decay_start, 0);
  EXPECT_EQ(found.steps, 9);
  EXPECT_EQ(found.validate_every, config.validate_every);
  EXPECT_NO_THROW((void)make_schedule(found, 16));
  EXPECT_EQ(durations_summary(config, Duration::parse("15t"), timeline),
            "durations: train.warm_up = 30t (2 steps), train.steps = 3e (9 steps), train.validate_every = 1e (first at "
            "step 3), train.checkpoint_every = 100t (first at step 5), train.keep_every = 4e (not within the run), "
            "watch.every = 15t (first at step 2)");
  EXPECT_EQ(durations_summary(TrainConfig(), 100, timeline), "");
}

TEST(Timeline, ResolvesWhenTheRateDecays) {
  const EpochSteps epochs = {{10, 20, 30}, {30, 10, 20}, {20, 20, 20}};
  const char* toml = "[train]\nschedule = \"constant * step_decay\"\n[train.step_decay]\nat = [1, \"2e\", \"130t\"]\n";
  const TrainConfig config = read_run_config(Config::from_string(toml, "test")).train;
  EXPECT_NO_THROW(validate(config));
  Timeline timeline = timeline_of(epochs);
  const Schedule schedule = make_schedule(resolved(config, timeline), 16);
  const double rate = config.learning_rate;
  EXPECT_DOUBLE_EQ(schedule(1), rate);
  EXPECT_DOUBLE_EQ(schedule(2), rate / 10);
  EXPECT_DOUBLE_EQ(schedule(6), rate / 10);  // the last step of epoch 2
  EXPECT_DOUBLE_EQ(schedule(7), rate / 100);
  EXPECT_DOUBLE_EQ(schedule(8), rate / 1000);
  EXPECT_EQ(durations_summary(config, 100, timeline),
            "durations: train.step_decay.at = 2e (6 steps), train.step_decay.at = 130t (7 steps)");
}

class Lasting : public ::testing::Test, protected test::CopyTaskFolder {
 protected:
  Lasting() {
    run_.train.accumulate = 2;
    run_.train.log_every = 1;
    run_.train.score_every = -1;
    run_.train.keep_checkpoints = 1;
    run_.train.steps = Duration::parse("3e");
    run_.train.warm_up = Duration::parse("0.2kt");
    run_.train.validate_every = Duration::parse("0.5e");
    run_.train.checkpoint_every = Duration::parse("150t");
    run_.train.keep_every = Duration::parse("0.75e");
    run_.watch.every = Duration::parse("1.5e");
    run_.watch.what = {"updates"};
  }

  /// The number of steps of each epoch, from the plan of its batches.
  [[nodiscard]] std::vector<int64_t> steps_of_epochs(int64_t epochs) const {
    const auto costs = task()->dataset("train")->costs();
    std::vector<int64_t> steps;
    for (int64_t e = 0; e < epochs; ++e)
      steps.push_back((std::ssize(plan_batches(costs, run_.train.batch_tokens, 1, e)) + 1) / 2);
    return steps;
  }
  [[nodiscard]] std::unique_ptr<Task> task() const {
    return make_task({}, DataDirectory::open(folder_ / "data"), run_.model.kind);
  }

  /// The first steps by whose ends these numbers of quarter epochs have been seen.
  [[nodiscard]] std::vector<int64_t> at_quarters(std::initializer_list<int64_t> quarters) const {
    const std::vector<int64_t> steps = steps_of_epochs(4);
    std::vector<int64_t> found;
    for (const int64_t q : quarters) {
      const auto epoch = static_cast<size_t>(q / 4);
      const int64_t before = std::accumulate(steps.begin(), steps.begin() + q / 4, int64_t{0});
      found.push_back(before + (q % 4 * steps[epoch] + 3) / 4);
    }
    return found;
  }

  static std::vector<int64_t> validated(const TrainResult& result) {
    std::vector<int64_t> steps;
    for (const TrainPoint& point : result.history)
      if (point.metrics.get("valid_nll")) steps.push_back(point.step);
    return steps;
  }
  static std::vector<std::string> checkpoints_in(const fs::path& run) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(run / "checkpoints")) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
  static std::vector<std::string> checkpoint_names(const std::vector<int64_t>& steps) {
    std::vector<std::string> names;
    for (const int64_t step : steps) {
      const std::string digits = std::to_string(step);
      names.push_back("step-" + std::string(6 - digits.size(), '0') + digits);
    }
    return names;
  }
};

TEST_F(Lasting, ARunDoesEverythingAtItsStep) {
  std::vector<int64_t> saved;
  test::Moments moments;
  moments.checkpoint = [&](const Trainer& trainer) { saved.push_back(trainer.step()); };
  const TrainResult result = run_training(run_, folder_ / "run", moments);
  EXPECT_EQ(result.outcome, RunOutcome::finished);
  EXPECT_EQ(result.steps, at_quarters({12}).front());
  EXPECT_EQ(validated(result), at_quarters({2, 4, 6, 8, 10, 12}));
  std::vector<int64_t> watched;
  for (const WatchRecord& record : result.watched) watched.push_back(record.step);
  EXPECT_EQ(watched, (std::vector<int64_t>{0, 1, at_quarters({6}).front(), at_quarters({12}).front()}));

  ASSERT_EQ(std::ssize(result.history), result.steps);
  size_t point_of = 0;
  for (const int64_t steps : steps_of_epochs(3)) {
    for (int64_t j = 1; j <= steps; ++j, ++point_of) {
      const TrainPoint& point = result.history[point_of];
      EXPECT_EQ(point.epochs, static_cast<double>(point.epoch) + static_cast<double>(j) / static_cast<double>(steps));
    }
  }
  EXPECT_EQ(result.history.back().epochs, 3);

  // Expected checkpoints and warm-up, from the tokens that the run counted.
  std::set<int64_t> expected;
  const std::vector<int64_t> kept = at_quarters({3, 6, 9, 12});
  expected.insert(kept.begin(), kept.end());
  int64_t before = 0, warm_up = 0;
  for (const TrainPoint& point : result.history) {
    if (point.tokens / 150 > before / 150) expected.insert(point.step);
    if (before < 200 && point.tokens >= 200) warm_up = point.step;
    before = point.tokens;
  }
  EXPECT_EQ(saved, std::vector(expected.begin(), expected.end()));
  ASSERT_GT(warm_up, 1);
  // In addition to those kept for good, the newest of the others is left.
  std::set<int64_t> left(kept.begin(), kept.end());
  for (auto step = saved.rbegin(); step != saved.rend(); ++step) {
    if (left.insert(*step).second) break;
  }
  EXPECT_EQ(checkpoints_in(folder_ / "run"), checkpoint_names({left.begin(), left.end()}));

  // The same as a run with these durations in steps.
  RunConfig plain = run_;
  plain.watch = {};
  plain.train.steps = result.steps;
  plain.train.warm_up = warm_up;
  plain.train.validate_every = 1'000'000;
  const TrainResult again = run_training(plain, folder_ / "plain");
  ASSERT_EQ(again.history.size(), result.history.size());
  for (size_t i = 0; i < result.history.size(); ++i) {
    EXPECT_EQ(again.history[i].nll, result.history[i].nll);
    EXPECT_EQ(again.history[i].learning_rate, result.history[i].learning_rate);
  }
  // config.toml has the durations as given.
  EXPECT_EQ(load_run_config(folder_ / "run").train, run_.train);
  EXPECT_EQ(load_run_config(folder_ / "run").watch, run_.watch);
}

TEST_F(Lasting, AnInterruptedRunGoesOnToTheSameBytes) {
  const TrainResult whole = run_training(run_, folder_ / "whole");
  struct Kill {};
  for (const int64_t at : {int64_t{3}, whole.steps - 2}) {
    test::Moments moments;
    moments.point = [at](const TrainPoint& point) {
      if (point.step == at) throw Kill();
    };
    const fs::path out = folder_ / ("killed-" + std::to_string(at));
    EXPECT_THROW(run_training(run_, out, moments), Kill);
    EXPECT_EQ(run_training(run_, out).steps, whole.steps);
    EXPECT_EQ(test::contents_of_run(out), test::contents_of_run(folder_ / "whole"));
  }
}

TEST_F(Lasting, NeitherProcessesNorMicroBatchesChangeTheSteps) {
  ::setenv("PLUMB_PROGRAM", test::plumb_program().c_str(), 1);
  run_.watch = {};
  const fs::path out = folder_ / "run";
  TrainResult last;
  const std::vector<std::pair<int64_t, int64_t>> divisions = {{2, 0}, {1, 20}, {3, 0}, {1, 0}};
  for (const auto& division : divisions) {
    run_.train.processes = division.first;
    run_.train.micro_batch_tokens = division.second;
    test::Moments moments;
    moments.stop = [stops = &division != &divisions.back(), left = 4]() mutable { return stops && --left == 0; };
    last = run_training(run_, out, moments);
  }
  ::unsetenv("PLUMB_PROGRAM");
  EXPECT_EQ(last.outcome, RunOutcome::finished);
  EXPECT_EQ(last.steps, at_quarters({12}).front());
  EXPECT_EQ(validated(last), at_quarters({2, 4, 6, 8, 10, 12}));
  const std::vector<std::string> kept = checkpoint_names(at_quarters({3, 6, 9, 12})), found = checkpoints_in(out);
  EXPECT_TRUE(std::includes(found.begin(), found.end(), kept.begin(), kept.end()));
  EXPECT_LE(found.size(), kept.size() + 1);  // and the newest of the others
}

TEST_F(Lasting, ARunMayBeMadeLongerInItsUnit) {
  run_.train.steps = Duration::parse("2e");
  const fs::path out = folder_ / "run";
  EXPECT_EQ(run_training(run_, out).steps, at_quarters({8}).front());
  run_.train.steps = 1000;
  EXPECT_THROW(run_training(run_, out), Error);
  run_.train.steps = Duration::parse("3e");
  EXPECT_EQ(run_training(run_, out).steps, at_quarters({12}).front());
  EXPECT_EQ(load_run_config(out).train.steps, Duration::parse("3e"));
}

}  // namespace
}  // namespace plumb
