// [watch]: when a run is measured, that measuring does not change it, and that a resumed run measures the same.
#include "plumb/run/watch.h"

#include <gtest/gtest.h>

#include <cmath>

#include "copy_task.h"
#include "plumb/analysis/watch/critical_rate.h"
#include "plumb/analysis/watch/curvature.h"
#include "plumb/analysis/watch/updates.h"
#include "plumb/base/error.h"
#include "plumb/base/input.h"
#include "plumb/base/json_fields.h"
#include "plumb/io/safetensors.h"
#include "plumb/run/directory.h"
#include "plumb/run/metrics_file.h"
#include "plumb/train/run_training.h"
#include "run_contents.h"
#include "support/errors.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

class Watched : public ::testing::Test, protected test::CopyTaskFolder {
 protected:
  Watched() {
    run_.watch.every = 4;
    run_.watch.examples = 6;
    Config::from_string(
        "[watch.gradient_noise]\nbatches = 2\nexamples = 3\n[watch.curvature]\nproducts = 3\nfirst_products = 5\n",
        "test")
        .read("watch", run_.watch);
  }

  static std::vector<int64_t> steps_of(const std::vector<WatchRecord>& records) {
    std::vector<int64_t> steps;
    for (const WatchRecord& record : records) steps.push_back(record.step);
    return steps;
  }

  /// The records as text, without times.
  static std::vector<std::string> timeless(std::vector<WatchRecord> records) {
    std::vector<std::string> lines;
    for (WatchRecord& record : records) {
      for (auto& [name, measurement] : record.watches) measurement.seconds = 0;
      lines.push_back(to_json(record).dump());
    }
    return lines;
  }

  static void expect_same_tensors(const fs::path& a, const fs::path& b) {
    const NamedTensors first = load_safetensors(a), second = load_safetensors(b);
    ASSERT_EQ(first.size(), second.size());
    for (size_t i = 0; i < first.size(); ++i) {
      EXPECT_EQ(first[i].first, second[i].first);
      EXPECT_TRUE(at::equal(first[i].second, second[i].second)) << first[i].first;
    }
  }

  std::string error_of(const std::string& toml) {
    RunConfig config = run_;
    const std::string message = test::message_of([&] {
      Config::from_string(toml, "run.toml").read("watch", config.watch);
      run_training(config, folder_ / "refused");
    });
    EXPECT_FALSE(fs::exists(folder_ / "refused"));
    return message;
  }
};

TEST_F(Watched, BeforeTrainingAfterTheFirstStepAndEveryN) {
  std::vector<int64_t> seen;
  test::Moments moments;
  moments.watch = [&](const WatchRecord& record) { seen.push_back(record.step); };
  const TrainResult result = run_training(run_, folder_ / "run", moments);
  const std::vector<int64_t> expected = {0, 1, 4, 8, 12, 16, 20};
  EXPECT_EQ(seen, expected);
  EXPECT_EQ(steps_of(result.watched), expected);
  EXPECT_EQ(steps_of(read_records(folder_ / "run" / "metrics.jsonl").watched), expected);
  for (const WatchRecord& record : result.watched) {
    for (const std::string& name : run_.watch.what) {
      const auto found = record.watches.find(name);
      ASSERT_EQ(found != record.watches.end(), record.step > 0 || name != "updates") << record.step << name;
      if (found == record.watches.end()) continue;
      EXPECT_EQ(found->second.error, "") << name;
      EXPECT_FALSE(found->second.values.is_null()) << name;
      EXPECT_GT(found->second.seconds, 0);
    }
  }
  EXPECT_EQ(timeless(TrainResult::from_json(result.to_json()).watched), timeless(result.watched));
  EXPECT_TRUE(run_training(test::copy_run(folder_ / "data"), folder_ / "plain").watched.empty());
  EXPECT_FALSE(read_json(folder_ / "plain" / "result.json").contains("watched"));
  EXPECT_FALSE(fs::exists(latest_checkpoint(folder_ / "plain") / "watch.safetensors"));
}

TEST_F(Watched, TheRunIsTheSameBitForBit) {
  struct Case {
    const char* name;
    const char* model;
    const char* train;
  };
  const Case cases[] = {{"adam", "", "precision = \"bf16\"\n"},
                        {"norms", "norm = \"batchnorm\"\n", "optimizer = \"sgd\"\n"},
                        {"favor", "attention = \"favor\"\n[model.favor]\nredraw = 3\n", "optimizer = \"muon\"\n"}};
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    RunConfig watched = run_;
    Config::from_string(std::string("[model]\n") + each.model, "test").read("model", watched.model);
    Config::from_string(std::string("[train]\n") + each.train, "test").read("train", watched.train);
    RunConfig plain = watched;
    plain.watch = {};
    TrainResult with;
    try {
      with = run_training(watched, folder_ / each.name / "with");
    } catch (const Error& error) {  // not every processor computes in bfloat16
      ASSERT_CONTAINS(error.what(), "oneDNN refused");
      ASSERT_EQ(watched.train.precision, "bf16");
      continue;
    }
    const TrainResult without = run_training(plain, folder_ / each.name / "without");
    ASSERT_EQ(with.watched.size(), 7U);
    ASSERT_EQ(with.history.size(), without.history.size());
    for (size_t i = 0; i < with.history.size(); ++i) {
      Json first = described_json(with.history[i]), second = described_json(without.history[i]);
      for (Json* json : {&first, &second}) {
        json->erase("tokens_per_second");
        json->erase("data_seconds");
      }
      EXPECT_EQ(first, second);
    }
    for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
      expect_same_tensors(latest_checkpoint(folder_ / each.name / "with") / file,
                          latest_checkpoint(folder_ / each.name / "without") / file);
    }
    Json first = read_json(latest_checkpoint(folder_ / each.name / "with") / "state.json");
    Json second = read_json(latest_checkpoint(folder_ / each.name / "without") / "state.json");
    for (Json* state : {&first, &second}) {
      state->erase("files");  // one run has an additional file
      test::drop_times(*state);
    }
    EXPECT_EQ(first, second);
  }
}

TEST_F(Watched, AResumedRunMeasuresTheSame) {
  const TrainResult whole = run_training(run_, folder_ / "whole");
  // Interrupted between measurements, then at one, then killed after a measurement without a checkpoint.
  const fs::path out = folder_ / "parts";
  for (const int64_t steps : {3, 5}) {
    EXPECT_EQ(run_training(run_, out, test::stop_after(steps)).outcome, RunOutcome::stopped);
  }
  struct Kill {};
  test::Moments moments;
  moments.watch = [](const WatchRecord& record) {
    if (record.step == 12) throw Kill();
  };
  EXPECT_THROW(run_training(run_, out, moments), Kill);
  EXPECT_EQ(steps_of(read_records(out / "metrics.jsonl").watched).back(), 12);
  EXPECT_EQ(latest_checkpoint(out).filename(), "step-000008");
  const TrainResult resumed = run_training(run_, out);
  EXPECT_EQ(timeless(resumed.watched), timeless(whole.watched));
  EXPECT_EQ(timeless(read_records(out / "metrics.jsonl").watched), timeless(whole.watched));
  expect_same_tensors(latest_checkpoint(folder_ / "whole") / "watch.safetensors",
                      latest_checkpoint(out) / "watch.safetensors");
  // The lines are in the same order.
  const auto steps = [](const fs::path& run) {
    std::vector<std::string> lines;
    for (const std::string& line : read_lines(run / "metrics.jsonl")) {
      const Json json = Json::parse(line);
      if (json.contains("step")) lines.push_back(json["step"].dump() + (json.contains("watch") ? " watch" : ""));
    }
    return lines;
  };
  EXPECT_EQ(steps(out), steps(folder_ / "whole"));
}

TEST_F(Watched, ARunThatGoesOnFromItsBeginningMeasuresThatOnce) {
  run_.train.trouble.on_nonfinite = "rollback";  // requires a checkpoint before the first step
  const TrainResult whole = run_training(run_, folder_ / "whole");
  const fs::path out = folder_ / "parts";
  struct Kill {};
  test::Moments moments;
  moments.checkpoint = [](const Trainer&) { throw Kill(); };  // after it is written
  EXPECT_THROW(run_training(run_, out, moments), Kill);
  EXPECT_EQ(latest_checkpoint(out).filename(), "step-000000");
  EXPECT_EQ(timeless(run_training(run_, out).watched), timeless(whole.watched));
  EXPECT_EQ(timeless(read_records(out / "metrics.jsonl").watched), timeless(whole.watched));
}

TEST_F(Watched, AResumedRunMayBeWatchedOtherwise) {
  RunConfig plain = run_;
  plain.watch = {};
  run_training(plain, folder_ / "run", test::stop_after(10));
  const TrainResult resumed = run_training(run_, folder_ / "run");
  EXPECT_EQ(steps_of(resumed.watched), (std::vector<int64_t>{12, 16, 20}));
  EXPECT_EQ(load_run_config(folder_ / "run").watch, run_.watch);
  EXPECT_NE(run_.watch, WatchConfig());
}

TEST_F(Watched, MistakesAreFoundBeforeTraining) {
  EXPECT_EQ(error_of("[watch]\nevery = -1\n"), "run.toml:2:9: watch.every = -1 must be at least 0");
  EXPECT_EQ(error_of("[watch]\nexamples = 0\n"), "run.toml:2:12: watch.examples = 0 must be at least 1");
  EXPECT_EQ(error_of("[watch]\nwhat = \"curvatur\"\n"), "run.toml:2:8: unknown watch 'curvatur'");
  EXPECT_EQ(error_of("[watch]\nwhat = []\n"), "watch.what = []: nothing is measured");
  EXPECT_EQ(error_of("[watch]\nwhat = [\"updates\", \"curvature\", \"updates\"]\n"), "watch.what has 'updates' twice");
  EXPECT_EQ(error_of("[watch.curvature]\nproducts = 0\n"),
            "run.toml:2:12: watch.curvature.products = 0 must lie in [1, 100,000]");
  EXPECT_EQ(error_of("[watch.gradient_noise]\nbatches = 1\n"),
            "run.toml:2:11: watch.gradient_noise.batches = 1 must lie in [2, 100,000]");
  EXPECT_NE(error_of("[watch]\nsplit = \"traln\"\n"), "accepted");
  // The same for a program that fills the structs.
  run_.watch.options["curvature"] = Options(CurvatureWatchOptions{.first_products = 0});
  EXPECT_EQ(error_of(""), "watch.curvature.first_products = 0 must lie in [1, 100,000]");
}

struct FailingMeasurement {
  static constexpr const char* kWatch = "failing";
  int64_t step = 0;
};
void describe(Fields& field, FailingMeasurement& measurement) { field("step", measurement.step); }

/// Fails at its second measurement.
class Failing final : public Watch {
 public:
  Described measure(const WatchedRun& run) override {
    if (run.step == 1) throw Error("overflow");
    return Described(FailingMeasurement{run.step});
  }
};

TEST_F(Watched, AMeasurementThatFailsIsRecordedAndTheRunGoesOn) {
  static const bool registered = watches().add(FailingMeasurement::kWatch, "", "", watch_factory<Failing>());
  EXPECT_TRUE(registered);
  run_.watch.what = {"failing"};
  const TrainResult result = run_training(run_, folder_ / "run");
  EXPECT_EQ(result.outcome, RunOutcome::finished);
  const std::vector<WatchRecord> read = read_records(folder_ / "run" / "metrics.jsonl").watched;
  for (const std::vector<WatchRecord>& records : {result.watched, read}) {
    ASSERT_EQ(records.size(), 7U);
    EXPECT_EQ(records[1].watches.at("failing").error, "overflow");
    EXPECT_FALSE(records[1].find<FailingMeasurement>());
    ASSERT_TRUE(records[2].find<FailingMeasurement>());
    EXPECT_EQ(records[2].find<FailingMeasurement>()->step, 4);
  }
}

TEST(WatchRecords, AreReadAsTheyWereWritten) {
  CurvatureMeasurement curvature;
  curvature.hessian = {{0.1, NAN, 5}, "output.weight", 0.75, EigenvalueSearch{0.2, 0, 12}, {}, {}};
  curvature.preconditioned = Sharpness{{61, 1e-3, 7}, "", 0, {}, 38, 0.5};
  CriticalRateMeasurement uphill;
  uphill.slope = -1;
  WatchRecord record{7, {}};
  record.watches["curvature"] = {described_json(curvature), 1.5, ""};
  record.watches["critical_rate"] = {described_json(uphill), 0.5, ""};
  const UpdateMeasurement updates{{{"output.weight", 0.25}, {"encoder.layers.0", NAN}}, 1};
  record.watches["updates"] = {described_json(updates), 2, ""};
  record.watches["activations"] = {{}, 3, "overflow"};
  Json json = to_json(record);
  json["watch"]["zeal"] = {{"number", 5}, {"seconds", 1.0}};
  const WatchRecord read = watch_record_from_json(json);
  EXPECT_EQ(to_json(read).dump(), json.dump());
  EXPECT_TRUE(json["watch"]["curvature"]["hessian"]["residual"].is_null());
  EXPECT_EQ(json["watch"]["curvature"]["preconditioned"]["threshold"], 38.0);
  EXPECT_FALSE(json["watch"]["critical_rate"].contains("value"));
  const auto found = read.find<CurvatureMeasurement>();
  ASSERT_TRUE(found);
  EXPECT_TRUE(std::isnan(found->hessian.found.residual));
  EXPECT_EQ(found->hessian.reference.value().products, 12);
  EXPECT_FALSE(found->hessian.threshold);
  EXPECT_EQ(&found->seen(), &*found->preconditioned);
  EXPECT_EQ(read.watches.at("activations").error, "overflow");
  json["watch"]["updates"]["total"] = "much";
  EXPECT_THROW((void)watch_record_from_json(json).find<UpdateMeasurement>(), Error);
  json["watch"]["updates"] = 5;
  EXPECT_THROW((void)watch_record_from_json(json), Error);
}

}  // namespace
}  // namespace plumb
