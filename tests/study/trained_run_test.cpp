// Stored measurements, including training runs.
#include "plumb/study/trained_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <mutex>
#include <thread>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/study/changed_keys.h"
#include "study/label_entropy.h"
#include "support/contains.h"
#include "train/copy_task.h"

namespace plumb {
namespace {

struct Numbers {
  std::vector<double> values;
};
Json to_json(const Numbers& numbers) { return {{"values", numbers.values}}; }
void from_json(const Json& json, Numbers& numbers) {
  numbers.values.clear();
  for (const Json& value : json.at("values")) numbers.values.push_back(to_double(value));
}

MeasurementRequest numbers_request(int seed, int& made) {
  return {"numbers", "numbers", {{"seed", seed}}, [&made] {
            ++made;
            return to_json(Numbers{{0.1, 1.0 / made, std::numeric_limits<double>::infinity()}});
          }};
}

// A key that Plumb gets later has its default in earlier studies, so it does not identify a measurement.
TEST(Measurements, AreIdentifiedByWhatDiffersFromTheDefaults) {
  ModelConfig model;
  EXPECT_EQ(changed_keys(model), "");
  model.d_model = 24;
  model.positions = "none";
  EXPECT_EQ(changed_keys(model), "positions = \"none\"\nd_model = 24\n");
  TrainConfig train;
  train.groups.push_back({.pattern = {"output.*"}});
  EXPECT_CONTAINS(changed_keys(train), "groups.pattern = [\"output.*\"]");
}

TEST(Measurements, ResultsAreReadAsTheyWereWritten) {
  using Result = std::map<std::string, std::vector<std::optional<double>>>;
  const Result result = {{"a", {1.5, {}}}, {"b", {}}};
  EXPECT_EQ(result_of<Result>(result_json(result)), result);
  EXPECT_TRUE(std::isnan(result_of<double>(Json())));
  EXPECT_FALSE(result_of<std::optional<StudyData>>(Json()));
  EXPECT_EQ(result_of<StudyData>(result_json(StudyData{.directory = "here"})).directory, "here");
}

TEST(Measurements, AreMadeOncePerNameAndSettings) {
  const test::TemporaryDirectory folder;
  int made = 0;
  Measurements first(folder.path());
  EXPECT_FALSE(first.has(numbers_request(1, made)));
  const Numbers measured = first.get(numbers_request(1, made)).get<Numbers>();
  EXPECT_EQ(measured.values[0], 0.1);
  EXPECT_TRUE(std::isnan(measured.values[2]));  // as when it is read back
  Measurements second(folder.path());
  EXPECT_TRUE(second.has(numbers_request(1, made)));
  const Numbers found = second.get(numbers_request(1, made)).get<Numbers>();
  EXPECT_EQ(made, 1);
  EXPECT_EQ(found.values[1], 1.0);
  EXPECT_TRUE(std::isnan(found.values[2]));
  EXPECT_EQ(first.measured(), 1);
  EXPECT_EQ(second.measured(), 0);
  EXPECT_EQ(second.get(numbers_request(2, made)).get<Numbers>().values[1], 0.5);
  EXPECT_EQ(made, 2);
}

TEST(Measurements, SideBySideEachOnceAndThoseAloneLast) {
  const test::TemporaryDirectory folder;
  Measurements measurements(folder.path());
  std::mutex mutex;
  int running = 0;
  int most = 0;
  std::vector<std::string> order;
  const auto request = [&](const std::string& name, bool alone) {
    return MeasurementRequest{name,
                              name,
                              {},
                              [&, name, alone] {
                                {
                                  const std::lock_guard lock(mutex);
                                  most = std::max(most, ++running);
                                  order.push_back(name);
                                  EXPECT_LE(running, alone ? 1 : 2);
                                }
                                std::this_thread::sleep_for(std::chrono::milliseconds(20));
                                const std::lock_guard lock(mutex);
                                --running;
                                return Json(name);
                              },
                              1,
                              alone};
  };
  std::vector<MeasurementRequest> requests = {request("alone", true)};
  for (const char* name : {"a", "b", "c", "d", "a"}) requests.push_back(request(name, false));
  make_all(measurements, requests, 2);
  EXPECT_EQ(most, 2);
  EXPECT_EQ(order.size(), 5U);  // "a" once
  EXPECT_EQ(order.back(), "alone");
  EXPECT_EQ(measurements.measured(), 5);
}

TEST(Measurements, AStageBeginsWhenTheOneBeforeItHasEnded) {
  const test::TemporaryDirectory folder;
  Measurements measurements(folder.path());
  std::vector<MeasurementRequest> requests;
  for (const int64_t stage : {2, 0, 1, 0, 2, 1, 0}) {
    MeasurementRequest request;
    request.name = std::to_string(requests.size());
    request.alone = requests.size() == 3;  // the last in its stage, but not of all
    request.stage = stage;
    request.measure = [&folder, stage] {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      int64_t files = 0;  // of earlier measurements
      for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path())) ++files;
      EXPECT_GE(files, stage == 0 ? 0 : stage == 1 ? 3 : 5);
      EXPECT_LE(files, stage == 0 ? 2 : stage == 1 ? 4 : 6);
      return Json(files);
    };
    requests.push_back(std::move(request));
  }
  make_all(measurements, requests, 2);
  EXPECT_EQ(measurements.measured(), 7);
  EXPECT_EQ(measurements.get(requests[3]), 2);
}

TEST(Measurements, FirstExceptionOfSeveralIsThrown) {
  const test::TemporaryDirectory folder;
  Measurements measurements(folder.path());
  std::vector<MeasurementRequest> requests;
  for (int i = 0; i < 50; ++i) {
    requests.push_back({std::to_string(i), "fails", {}, [i]() -> Json {
                          if (i == 3) throw Error("the third");
                          return Json(i);
                        }});
  }
  EXPECT_THROW(make_all(measurements, requests, 2), Error);
  EXPECT_LT(measurements.measured(), 50);
}

/// With a validation loss at some of the steps.
TrainedRun run_of(RunOutcome outcome, const std::vector<std::pair<int64_t, std::optional<double>>>& history) {
  TrainedRun run;
  run.result.outcome = outcome;
  run.result.steps = 4;
  for (const auto& [step, loss] : history) {
    TrainPoint& point = run.result.history.emplace_back();
    point.step = step;
    if (loss) point.metrics.set("valid_nll", *loss);
  }
  run.result.metrics = last_metrics(run.result.history);
  return run;
}

TEST(TrainedRun, LossOfWhatDivergedOrFailedIsInfinite) {
  const std::vector<std::pair<int64_t, std::optional<double>>> history = {{2, 3.5}, {3, {}}, {4, 2.25}};
  const TrainedRun finished = run_of(RunOutcome::finished, history);
  EXPECT_EQ(finished.loss(), 2.25);
  const Series curve = finished.validation_curve("name", "group");
  EXPECT_EQ(curve.x, (std::vector<AxisPlace>{2, 4}));
  EXPECT_EQ(curve.y, (std::vector<double>{3.5, 2.25}));
  EXPECT_EQ(curve.name, "name");
  EXPECT_EQ(curve.group, "group");

  EXPECT_EQ(finished.fitted_loss(), 2.25);

  TrainedRun failed = finished;
  failed.result.learning = LearningJudgment{.learning = Learning::frequencies_only};
  EXPECT_EQ(failed.loss(), 2.25);
  EXPECT_TRUE(std::isinf(failed.fitted_loss()));
  failed.result.learning->learning = Learning::unfinished;
  EXPECT_EQ(failed.fitted_loss(), 2.25);

  const TrainedRun diverged = run_of(RunOutcome::diverged, history);
  EXPECT_TRUE(diverged.diverged());
  EXPECT_TRUE(std::isinf(diverged.loss()));
  EXPECT_TRUE(std::isinf(diverged.fitted_loss()));
  EXPECT_EQ(Json(diverged.validation_curve("", "").y).dump(), "[3.5,2.25,null]");
  EXPECT_TRUE(std::isnan(run_of(RunOutcome::finished, {}).loss()));
}

class TrainedRunOnDisk : public ::testing::Test {
 protected:
  TrainedRunOnDisk() : data_(make(folder_ / "data")) {
    study_.train = test::copy_run(folder_ / "data").train;
    study_.train.steps = 4;
    study_.train.validate_every = 2;
    study_.study.seed = 3;
  }

  static DataDirectory make(const std::filesystem::path& path) {
    test::make_copy_task(path);
    return DataDirectory::open(path);
  }

  StudyContext context_of(const Task& task, Measurements& measurements, RunObserver on_point) {
    return {study_,       study_.arms(),      data_, task, {{"info", "copy"}}, {{"info", "copy"}}, folder_ / "out",
            measurements, std::move(on_point)};
  }
  RunConfig copy_config(const StudyContext& context) {
    ModelConfig model = test::copy_run(folder_ / "data").model;
    model.source_vocabulary = data_.source_vocabulary();
    model.target_vocabulary = data_.target_vocabulary();
    return run_config(context, model, study_.train);
  }

  test::TemporaryDirectory folder_;
  DataDirectory data_;
  StudyConfig study_;
};

// Whoever asks whether it is stored has read it.
TEST_F(TrainedRunOnDisk, ItsFileIsReadOnce) {
  const auto task = make_task({}, data_, "encoder-decoder");
  double trained = 0;
  for (const bool first : {true, false}) {
    Measurements measurements(folder_ / "measurements");
    StudyContext context = context_of(*task, measurements, {});
    PartPlan plan(context);
    const Planned<TrainedRun> planned = planned_run(plan, context, {"copy", "copy", copy_config(context)});
    if (first) {
      trained = planned->loss();
      continue;
    }
    EXPECT_TRUE(measurements.has(plan.requests().front()));
    write_file_atomic(folder_ / "measurements" / "copy.json", "no JSON");
    EXPECT_TRUE(measurements.has(plan.requests().front()));
    EXPECT_EQ(make_all(measurements, plan.requests(), 1), 1);
    EXPECT_EQ(planned->loss(), trained);
  }
}

TEST_F(TrainedRunOnDisk, LabelsAreCountedOnce) {
  Measurements measurements(folder_ / "measurements");
  const auto task = make_task({}, data_, "encoder-decoder");
  StudyContext context = context_of(*task, measurements, {});
  EXPECT_NEAR(label_frequencies(context), test::label_entropy(*task), 1e-12);
  context.frequencies = 1;
  EXPECT_EQ(label_frequencies(context), 1);
  PartPlan plan(context);
  const Planned<TrainedRun> run = planned_run(plan, context, {"copy", "copy", copy_config(context)});
  EXPECT_GT(run->loss(), 1);
  EXPECT_NEAR(run->result.learning->valid_frequencies.value(), test::label_entropy(*task), 1e-12);  // for `plumb judge`
  EXPECT_EQ(counted_losses(context, {run}), std::vector<double>{1});
}

TEST_F(TrainedRunOnDisk, IsTrainedOnceAndAskedOnce) {
  Measurements measurements(folder_ / "measurements");
  int points = 0;
  const auto task = make_task({}, data_, "encoder-decoder");
  StudyContext context =
      context_of(*task, measurements, [&](const std::filesystem::path&, const TrainPoint&) { ++points; });
  RunRequest request{"copy", "copy", copy_config(context)};
  const ModelConfig& model = request.config.model;
  EXPECT_EQ(request.config.train.seed, 3);
  EXPECT_EQ(request.config.train.steps, 4);
  EXPECT_EQ(std::filesystem::path(request.config.data), folder_ / "data");
  int asked = 0;
  RunQuestion question{"parameters", {{"detail", 1}}, [&](Model& trained) {
                         ++asked;
                         return Json(trained.parameters().count());
                       }};
  PartPlan plan(context);
  const auto answer_of = [&] { return measurements.get(question_measurement(context, request, question)); };
  const Json answer = answer_of();
  const Planned<TrainedRun> planned = planned_run(plan, context, request);
  EXPECT_EQ(plan.requests().size(), 1U);
  const TrainedRun& run = *planned;
  EXPECT_EQ(run.result.steps, 4);
  EXPECT_EQ(answer, make_model(model)->parameters().count());
  EXPECT_GT(points, 0);
  // It reports the numbers in its directory.
  std::filesystem::path directory;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "out" / "runs")) directory = entry.path();
  EXPECT_TRUE(directory.filename().string().starts_with("copy-"));
  EXPECT_EQ(run.loss(), read_json(directory / "result.json")["metrics"]["valid_nll"]);
  EXPECT_LT(run.loss(), std::log(static_cast<double>(model.target_vocabulary)) + 1);

  const int before = points;
  EXPECT_EQ(answer_of(), answer);
  EXPECT_EQ(asked, 1);
  const TrainedRun again = *planned_run(plan, context, request);
  EXPECT_EQ(again.loss(), run.loss());
  EXPECT_EQ(again.result.history.size(), run.result.history.size());
  // Another question does not train the run again.
  question.settings["detail"] = 2;
  EXPECT_EQ(answer_of(), answer);
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(points, before);
  // Another learning rate is another run, in another directory.
  request.config.train.learning_rate *= 2;
  EXPECT_NE(planned_run(plan, context, request)->loss(), run.loss());
  EXPECT_GT(points, before);
}

}  // namespace
}  // namespace plumb
