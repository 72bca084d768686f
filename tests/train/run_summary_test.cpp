// Run summaries for `plumb runs` and `plumb report`, from intact and damaged run directories.
#include "plumb/run/run_summary.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <fstream>
#include <numbers>
#include <thread>

#include "copy_task.h"
#include "plumb/base/error.h"
#include "plumb/base/input.h"
#include "plumb/base/progress.h"
#include "plumb/base/text.h"
#include "plumb/report/seed_table.h"
#include "plumb/run/directory.h"
#include "plumb/run/run_table.h"
#include "plumb/train/run_training.h"
#include "support/contains.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

std::string table_text(const std::vector<RunSummary>& runs, size_t width = 0) {
  return run_table_text(runs, run_columns(runs), width);
}

/// Three runs of a few steps: "a" and "b" differ in optimizer and learning rate; "stopped" ended early.
class RunSummaries : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new test::TemporaryDirectory;
    test::make_copy_task(*folder_ / "data");
    RunConfig config = test::copy_run(*folder_ / "data");
    config.train.score_every = -1;
    (void)run_training(config, *folder_ / "runs" / "a");
    (void)run_training(config, *folder_ / "runs" / "deep" / "stopped", test::stop_after(7));
    config.train.learning_rate = 1e-4;
    config.train.optimizer = "lion";
    (void)run_training(config, *folder_ / "runs" / "b");
  }
  static void TearDownTestSuite() { delete folder_; }
  static fs::path runs() { return *folder_ / "runs"; }

  /// A copy of run "a" to damage.
  fs::path copy(const std::string& name) const {
    fs::path to = own_ / name;
    fs::copy(runs() / "a", to, fs::copy_options::recursive);
    return to;
  }
  static void write(const fs::path& file, const std::string& text) { std::ofstream(file, std::ios::binary) << text; }

  static test::TemporaryDirectory* folder_;
  test::TemporaryDirectory own_;
};
test::TemporaryDirectory* RunSummaries::folder_ = nullptr;

TEST_F(RunSummaries, FindsRunsAtAnyDepthAndNamesThemByWhereTheyDiffer) {
  const std::vector<RunSummary> found = read_runs({runs().string()});
  std::vector<std::string> names, outcomes;
  for (const RunSummary& run : found) {
    names.push_back(run.name);
    outcomes.push_back(run.outcome);
    EXPECT_EQ(run.trouble, "") << run.name;
  }
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b", "deep/stopped"}));
  EXPECT_EQ(outcomes, (std::vector<std::string>{"finished", "finished", "stopped"}));
  EXPECT_EQ(read_runs({(runs() / "deep").string(), runs().string()}).front().name, "deep/stopped");
  EXPECT_EQ(read_runs({(runs() / "a").string() + "/", (runs() / "a").string()}).size(), 1U);  // once
  EXPECT_EQ(read_runs({(runs() / "a").string()}).front().name, "a");
  EXPECT_THROW(read_runs({(runs() / "none").string()}), Error);
  EXPECT_THROW(read_runs({(*folder_ / "data").string()}), Error);
}

TEST_F(RunSummaries, SaysWhatTheResultSays) {
  const RunSummary run = summarize_run(runs() / "a");
  const TrainResult result = TrainResult::from_json(read_json(runs() / "a" / "result.json"));
  EXPECT_EQ(run.step, 20);
  EXPECT_EQ(run.best_valid_nll, result.best->value);
  EXPECT_EQ(run.best_step, result.best_step());
  EXPECT_EQ(run.seconds, result.seconds);
  EXPECT_EQ(run.history.size(), result.history.size());
  EXPECT_EQ(run.setting("train.learning_rate"), "0.01");
  EXPECT_EQ(run.setting("model.d_model"), "16");
  EXPECT_EQ(run.setting("nothing"), "");
}

TEST_F(RunSummaries, NamesTheKeysThatDiffer) {
  const std::vector<RunSummary> found = read_runs({runs().string()});
  // The options of Adam and of Lion each occur in one configuration only.
  const std::vector<std::string> keys = differing_keys(found);
  EXPECT_EQ(keys[0], "train.optimizer");
  EXPECT_EQ(keys[1], "train.learning_rate");
  for (const std::string& key : keys) {
    EXPECT_TRUE(key == "train.optimizer" || key == "train.learning_rate" || key.starts_with("train.adam.") ||
                key.starts_with("train.lion."))
        << key;
  }
  EXPECT_TRUE(differing_keys({found[0], found[2]}).empty());
}

TEST_F(RunSummaries, ListsDamagedRunsAsWhatTheyAre) {
  fs::remove(copy("killed") / "result.json");
  write(own_ / "killed" / "metrics.jsonl",
        read_file(runs() / "a" / "metrics.jsonl").substr(0, read_file(runs() / "a" / "metrics.jsonl").size() - 60));
  write(copy("configuration") / "config.toml", "[model]\nkind = \"enc");
  write(copy("newer") / "config.toml", "[train]\nlearning_rate = 0.5\nunheard_of = 1\n");
  write(copy("result") / "result.json", "{\"outcome\": ");
  write(copy("metrics") / "metrics.jsonl", "{\"step\": 1, \"loss\": [], \"nll\": 1}\n");
  fs::create_directories(own_ / "empty");
  write(own_ / "empty" / "plumb.json", read_file(runs() / "a" / "plumb.json"));
  write(copy("mark") / "plumb.json", "");
  write(copy("no settings") / "config.toml", "");
  const std::string config = read_file(runs() / "a" / "config.toml");
  write(copy("half of the settings") / "config.toml", config.substr(0, config.find("[train]")));

  std::map<std::string, RunSummary> by_name;
  for (const RunSummary& run : read_runs({own_.path().string()})) by_name[run.name] = run;
  EXPECT_EQ(by_name.size(), 9U);
  EXPECT_CONTAINS(by_name["no settings"].trouble, "config.toml: is empty");
  EXPECT_EQ(by_name["no settings"].setting("model.d_model"), "");  // not a default
  EXPECT_CONTAINS(by_name["half of the settings"].trouble, "config.toml: was changed");
  EXPECT_EQ(by_name["half of the settings"].setting("model.d_model"), "16");
  EXPECT_EQ(by_name["half of the settings"].setting("train.learning_rate"), "");
  EXPECT_EQ(by_name["killed"].outcome, "unfinished");
  EXPECT_EQ(by_name["killed"].trouble, "");
  EXPECT_GE(by_name["killed"].step, 18);
  EXPECT_EQ(by_name["configuration"].outcome, "finished");
  EXPECT_CONTAINS(by_name["configuration"].trouble, "config.toml");
  EXPECT_EQ(by_name["newer"].setting("train.learning_rate"), "0.5");
  EXPECT_EQ(by_name["newer"].setting("train.unheard_of"), "1");  // as its own version reads it
  EXPECT_EQ(by_name["newer"].trouble, "");
  EXPECT_EQ(by_name["result"].outcome, "finished");  // from the last line of metrics.jsonl
  EXPECT_EQ(by_name["result"].step, 20);
  EXPECT_CONTAINS(by_name["result"].trouble, "result.json");
  EXPECT_CONTAINS(by_name["metrics"].trouble, "metrics.jsonl");
  EXPECT_EQ(by_name["metrics"].history.size(), 10U);  // from result.json
  EXPECT_EQ(by_name["empty"].outcome, "unreadable");
  EXPECT_EQ(by_name["mark"].outcome, "finished");
  std::vector<RunSummary> all = read_runs({own_.path().string()});
  EXPECT_CONTAINS(table_text(all), "trouble");
}

TEST_F(RunSummaries, SeesWhoIsTraining) {
  const fs::path run = copy("busy");
  EXPECT_FALSE(is_being_trained(run));
  const int descriptor = ::open(run.c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(::flock(descriptor, LOCK_EX), 0);
  EXPECT_TRUE(is_being_trained(run));
  EXPECT_EQ(summarize_run(run).outcome, "running");
  EXPECT_EQ(summarize_run(run).step, 20);
  ::close(descriptor);
  EXPECT_EQ(summarize_run(run).outcome, "finished");
  // Another program may keep a lock in the directory, of either kind.
  std::ofstream(run / "my.lock") << "";
  for (const bool by_flock : {true, false}) {
    EXPECT_FALSE(is_being_trained(run));
    const Descriptor file(::open((run / "my.lock").c_str(), O_RDWR));
    struct flock lock {};
    lock.l_type = F_WRLCK;
    ASSERT_EQ(by_flock ? ::flock(file.get(), LOCK_EX) : ::fcntl(file.get(), F_OFD_SETLK, &lock), 0);
    EXPECT_TRUE(is_being_trained(run)) << by_flock;
  }
}

TEST_F(RunSummaries, AskingWhoIsTrainingKeepsNobodyFromIt) {
  const fs::path run = copy("asked");
  std::atomic<bool> done = false;
  std::thread asking([&] {
    while (!done) (void)is_being_trained(run);
  });
  for (int i = 0; i < 300; ++i) EXPECT_NO_THROW(OpenRun(run).place());
  done = true;
  asking.join();
}

TEST_F(RunSummaries, TellOfDamageWithinTheHistoryAndReadWhatFollows) {
  const std::string history = read_file(runs() / "a" / "metrics.jsonl");
  std::string damaged = history;
  const size_t third = damaged.find('\n', damaged.find('\n') + 1) + 1;  // after the heading and the first point
  std::fill_n(damaged.begin() + static_cast<std::ptrdiff_t>(third), 50, '\xB1');
  write(copy("damaged") / "metrics.jsonl", damaged);
  const RunSummary whole = summarize_run(runs() / "a"), run = summarize_run(own_ / "damaged");
  EXPECT_CONTAINS(run.trouble, "metrics.jsonl: line 3: is no JSON object");
  EXPECT_EQ(run.history.size(), whole.history.size());  // from result.json
  EXPECT_EQ(run.outcome, "finished");
  fs::remove(own_ / "damaged" / "result.json");
  const RunSummary alone = summarize_run(own_ / "damaged");
  EXPECT_CONTAINS(alone.trouble, "metrics.jsonl: line 3: is no JSON object");
  EXPECT_EQ(alone.history.size(), whole.history.size() - 1);
  EXPECT_EQ(alone.best_valid_nll, whole.best_valid_nll);
  EXPECT_EQ(alone.outcome, "finished");  // the last line says so
  const std::string text = table_text({alone});
  EXPECT_CONTAINS(text, "line 3");
}

// A cosine falls more slowly in a run that was planned to be longer.
TEST_F(RunSummaries, TellALongerRunFromOneThatWasPlannedSo) {
  RunConfig config = test::copy_run(*folder_ / "data");
  config.train.score_every = -1;
  config.train.schedule = "constant * linear_warmup * cosine_decay";
  config.train.learning_rate = 0.01;  // reached at step 5
  RunConfig longer = config;
  longer.train.steps = 40;
  const auto rate = [](int64_t step, double steps) {
    return 0.01 * (1 + std::cos(std::numbers::pi * static_cast<double>(step - 5) / (steps - 5))) / 2;
  };
  run_training(longer, own_ / "planned");
  run_training(config, own_ / "finished");
  run_training(config, own_ / "stopped", test::stop_after(13));
  for (const auto& [name, step] : {std::pair{"finished", 20}, {"stopped", 13}}) {
    set_verbosity(Verbosity::normal);
    ::testing::internal::CaptureStderr();
    run_training(longer, own_ / name);
    const std::string said = ::testing::internal::GetCapturedStderr();
    set_verbosity(Verbosity::quiet);
    EXPECT_CONTAINS(said, fmt::format("the learning rate at step {} is {:.3g}; it was {:.3g} at step {}", step + 1,
                                      rate(step + 1, 40), rate(step, 20), step));
    EXPECT_EQ(summarize_run(own_ / name).setting("plan.changes"), fmt::format("[\"20 steps until step {}\"]", step));
  }
  const std::vector<RunSummary> all = read_runs({own_.path().string()});
  EXPECT_EQ(differing_keys(all), std::vector<std::string>{"plan.changes"});
  EXPECT_CONTAINS(table_text(all), "20 steps until step 13");
  EXPECT_EQ(run_training(longer, own_ / "finished").steps, 40);  // the record is no other configuration
  // A run of another name that begins with such a configuration has no such past.
  run_training(load_run_config(own_ / "finished"), own_ / "new");
  EXPECT_EQ(summarize_run(own_ / "new").setting("plan.changes"), "");
  // A schedule that knows no end stays the same.
  config.train.schedule = longer.train.schedule = "constant * linear_warmup * rsqrt_decay";
  run_training(config, own_ / "endless");
  run_training(longer, own_ / "endless");
  EXPECT_EQ(summarize_run(own_ / "endless").setting("plan.changes"), "");
}

// By hand: 100 tokens at 50/s take 2 s, and 300 more at 100/s make it 5 s.
TEST(TrainingSeconds, AreTokensOverTheirRates) {
  std::vector<TrainPoint> history(3);
  history[0].tokens = 100;
  history[0].tokens_per_second = 50;
  history[2].tokens = 400;
  history[2].tokens_per_second = 100;
  const auto times = training_seconds(history);
  EXPECT_EQ(times[0], 2.0);
  EXPECT_EQ(times[1], std::nullopt);
  EXPECT_EQ(times[2], 5.0);
}

TEST_F(RunSummaries, PointsCountTokensFromTheFirstStep) {
  // Each sentence of the copy task is seen once per epoch; the last epoch of the run is incomplete.
  const RunSummary run = summarize_run(runs() / "a");
  int64_t before = 0;
  for (const TrainPoint& point : run.history) {
    EXPECT_GT(point.tokens, before);
    before = point.tokens;
  }
  const RunConfig config = load_run_config(runs() / "a");
  const auto task = make_task(config.task, DataDirectory::open(config.data), config.model.kind);
  const std::unique_ptr<Dataset> examples = task->dataset("train");
  int64_t expected = 0, steps = 0;
  for (int64_t epoch = 0; steps < 20; ++epoch) {
    for (const auto& batch : plan_batches(examples->costs(), config.train.batch_tokens, 1, epoch)) {
      if (steps++ < 20) expected += examples->batch(batch).tokens();
    }
  }
  EXPECT_EQ(before, expected);
}

TEST_F(RunSummaries, SortsByAnyColumn) {
  std::vector<RunSummary> found = read_runs({runs().string()});
  const auto names = [&] {
    std::vector<std::string> list;
    for (const RunSummary& run : found) list.push_back(run.name);
    return join(list);
  };
  sort_runs(found, "learning_rate", false);
  EXPECT_EQ(names(), "b, a, deep/stopped");
  sort_runs(found, "train.learning_rate", true);
  EXPECT_EQ(names(), "a, deep/stopped, b");
  sort_runs(found, "step", false);
  EXPECT_EQ(names(), "deep/stopped, a, b");
  found[1].best_valid_nll = std::nullopt;  // a has no value: last in either order
  sort_runs(found, "loss", false);
  EXPECT_EQ(found.back().name, "a");
  sort_runs(found, "loss", true);
  EXPECT_EQ(found.back().name, "a");
  try {
    sort_runs(found, "learning_rats", false);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_CONTAINS(error.hint(), "learning_rate");
  }
}

TEST_F(RunSummaries, ShowsNamesOnOneLineWithoutControlCharacters) {
  fs::rename(copy("x"), own_ / "a\n\x1b[31mred");
  fs::rename(copy("x"), own_ / "b");
  const std::vector<RunSummary> found = read_runs({own_.path().string()});
  for (const std::string& text : {table_text(found), seed_table_text(found)}) {
    EXPECT_CONTAINS(text, "a\\n\\x1b[31mred");
    EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
  }
  EXPECT_EQ(split(table_text(found), '\n').size(), 4U);  // heading, two runs, the end
}

TEST_F(RunSummaries, ANarrowTableNamesTheSettingsThatItLeavesOut) {
  std::vector<RunSummary> found = read_runs({(runs() / "a").string(), (runs() / "b").string()});
  const std::string whole = table_text(found);
  size_t width = 0;
  for (const std::string& line : split(whole, '\n')) width = std::max(width, line.size());
  EXPECT_EQ(table_text(found, width), whole);
  const std::string narrow = table_text(found, width - 1);
  const std::vector<std::string> lines = split(narrow, '\n');
  ASSERT_EQ(lines.size(), 5U) << narrow;
  // It leaves out a setting that only one of the two runs has.
  EXPECT_CONTAINS(lines[0], "train.lion.beta1  outcome") << narrow;
  EXPECT_EQ(lines[3], "1 more setting differs: train.lion.beta2");
  const std::vector<std::string> narrowest = split(table_text(found, 1), '\n');
  EXPECT_TRUE(narrowest[0].starts_with("run  outcome")) << narrowest[0];
  EXPECT_EQ(narrowest[3],
            "7 more settings differ: train.adam.beta1, train.adam.beta2, train.adam.eps, train.learning_rate, "
            "train.lion.beta1, train.lion.beta2, train.optimizer");
}

TEST_F(RunSummaries, ShowsFirstWhatDiffers) {
  std::vector<RunSummary> found = read_runs({(runs() / "a").string(), (runs() / "b").string()});
  const std::vector<std::string> lines = split(table_text(found), '\n');
  ASSERT_EQ(lines.size(), 4U);  // the last is empty
  EXPECT_TRUE(lines[0].starts_with("run  optimizer  learning_rate")) << lines[0];
  EXPECT_TRUE(lines[1].starts_with("a    adam                0.01")) << lines[1];
  EXPECT_TRUE(lines[2].starts_with("b    lion              0.0001")) << lines[2];
  EXPECT_LACKS(lines[0], "trouble");
  const Json json = run_table_json(found);
  EXPECT_EQ(json["schema"], "plumb.runs/1");
  EXPECT_EQ(json["runs"][1]["settings"]["train.optimizer"], "lion");
  EXPECT_EQ(json["runs"][0]["step"], 20);
  EXPECT_TRUE(json["runs"][0]["best_valid_nll"].is_number());
}

}  // namespace
}  // namespace plumb
