// The run directory: its contents, and that an interrupted run ends like an uninterrupted one.
#include "plumb/base/input.h"
#include "plumb/run/directory.h"
#include "plumb/train/run_training.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <functional>

#include "copy_task.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/json_fields.h"
#include "plumb/base/progress.h"
#include "plumb/base/text.h"
#include "plumb/io/safetensors.h"
#include "plumb/nn/attention/favor.h"
#include "plumb/run/metrics_file.h"
#include "run_contents.h"
#include "support/errors.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

class Run : public ::testing::Test, protected test::CopyTaskFolder {
 protected:
  static void expect_equal_tensors(const fs::path& a, const fs::path& b) {
    const NamedTensors first = load_safetensors(a), second = load_safetensors(b);
    ASSERT_EQ(first.size(), second.size());
    for (size_t i = 0; i < first.size(); ++i)
      EXPECT_TRUE(at::equal(first[i].second, second[i].second)) << first[i].first;
  }

  // Compares everything except times.
  static void expect_equal_history(const std::vector<TrainPoint>& a, const std::vector<TrainPoint>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      Json first = described_json(a[i]), second = described_json(b[i]);
      for (Json* json : {&first, &second}) {
        json->erase("tokens_per_second");
        json->erase("data_seconds");
      }
      EXPECT_EQ(first, second);
    }
  }

  static std::vector<std::string> names_in(const fs::path& directory) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
  static std::vector<std::string> step_names(std::vector<int64_t> steps) {
    std::sort(steps.begin(), steps.end());
    std::vector<std::string> names;
    for (const int64_t step : steps) names.push_back(fmt::format("step-{:06}", step));
    return names;
  }

  std::string error_of(const RunConfig& config, const fs::path& out) {
    return test::message_of([&] { run_training(config, out); });
  }
};

TEST_F(Run, LeavesConfigurationMetricsCheckpointsAndResult) {
  const fs::path out = folder_ / "run";
  const TrainResult result = run_training(run_, out);
  EXPECT_EQ(result.outcome, RunOutcome::finished);
  EXPECT_EQ(result.steps, 20);
  std::vector<int64_t> steps, validated;
  for (const TrainPoint& point : result.history) {
    steps.push_back(point.step);
    if (point.metrics.get("valid_nll")) validated.push_back(point.step);
  }
  EXPECT_EQ(steps, (std::vector<int64_t>{1, 3, 6, 8, 9, 12, 15, 16, 18, 20}));
  EXPECT_EQ(validated, (std::vector<int64_t>{8, 16, 20}));
  EXPECT_EQ(result.valid_nll(), result.history.back().metrics.get("valid_nll"));

  expect_equal_history(read_metrics(out / "metrics.jsonl"), result.history);
  const auto lines = read_lines(out / "metrics.jsonl");
  EXPECT_EQ(Json::parse(lines.front())["schema"], "plumb.metrics/1");
  EXPECT_EQ(lines.back(), R"({"step":20,"outcome":"finished"})");

  const RunConfig stored = load_run_config(out);
  EXPECT_EQ(stored.model.d_model, 16);
  EXPECT_GT(stored.model.source_vocabulary, 6);  // taken from the data
  EXPECT_EQ(stored.train, run_.train);

  EXPECT_EQ(latest_checkpoint(out), out / "checkpoints" / "step-000020");
  for (const char* file : {"model.safetensors", "optimizer.safetensors", "state.json"}) {
    EXPECT_TRUE(fs::exists(latest_checkpoint(out) / file)) << file;
  }
  // The checkpoint contains the trained model.
  const auto task = make_task({}, DataDirectory::open(folder_ / "data"), run_.model.kind);
  const auto nll = [&](Model& model) {
    return task->metrics(evaluate(*task, model, *task->dataset("valid"), run_.train.batch_tokens, 0, {})).get("nll");
  };
  EXPECT_EQ(nll(*load_model(out)), result.valid_nll());
  EXPECT_EQ(nll(*load_model(out, out / "best")), result.best->value);

  const TrainResult again = run_training(run_, out);  // already ended: nothing is trained
  EXPECT_EQ(again.to_json()["history"], result.to_json()["history"]);
}

struct ResumedRun {
  std::string name;
  std::function<void(RunConfig&)> set;
};

/// Every optimizer, with groups of which some begin later; an average of the weights; parameters in bfloat16.
std::vector<ResumedRun> resumed_runs() {
  std::vector<ResumedRun> all;
  for (const std::string& optimizer : optimizers().names()) {
    all.push_back({optimizer, [optimizer](RunConfig& run) {
                     run.train.optimizer = optimizer;
                     run.train.weight_decay = 0.01;
                     run.train.groups = {{.pattern = {"encoder.*"}, .learning_rate_factor = 0.5, .frozen_until = 14},
                                         {.pattern = {"*norm*"}, .frozen_until = 5}};
                   }});
  }
  all.push_back({"average", [](RunConfig& run) {
                   run.train.optimizer = "lion";
                   run.train.average_decay = 0.9;
                   run.train.groups = {{.pattern = {"encoder.*"}, .frozen_until = 14}};
                 }});
  for (const char* parameters : {"bf16", "bf16-copy"}) {
    all.push_back({parameters, [parameters](RunConfig& run) {
                     run.train.parameters = parameters;
                     run.model.dropout = 0;
                   }});
  }
  return all;
}

TEST_F(Run, GoesOnToTheSameBits) {
  for (const auto& [name, set] : resumed_runs()) {
    SCOPED_TRACE(name);
    RunConfig run = run_;
    set(run);
    const fs::path one = folder_ / name / "one", two = folder_ / name / "two";
    const TrainResult whole = run_training(run, one);
    const TrainResult stopped = run_training(run, two, test::stop_after(10));
    EXPECT_EQ(stopped.outcome, RunOutcome::stopped);
    EXPECT_EQ(stopped.steps, 10);
    const TrainResult resumed = run_training(run, two);
    EXPECT_EQ(resumed.outcome, RunOutcome::finished);
    const fs::path end = fs::path("checkpoints") / "step-000020";
    for (const auto& entry : fs::directory_iterator(one / end)) {
      const fs::path file = end / entry.path().filename();
      if (file.extension() != ".safetensors") continue;
      expect_equal_tensors(one / file, two / file);
      if (run.train.parameters != "float32") {
        EXPECT_EQ(read_file(one / file), read_file(two / file)) << file;
      }
    }
    expect_equal_history(resumed.history, whole.history);
    expect_equal_history(read_metrics(two / "metrics.jsonl"), whole.history);
    EXPECT_EQ(resumed.best_step(), whole.best_step());
    EXPECT_EQ(resumed.best->value, whole.best->value);
    EXPECT_EQ(resumed.metrics.get("valid_nll"), whole.metrics.get("valid_nll"));
  }
}

TEST_F(Run, GoesOnAfterAKill) {
  const TrainResult whole = run_training(run_, folder_ / "whole");
  const fs::path out = folder_ / "killed";
  struct Kill {};
  test::Moments moments;
  moments.point = [](const TrainPoint& point) {
    if (point.step == 12) throw Kill();
  };
  EXPECT_THROW(run_training(run_, out, moments), Kill);
  EXPECT_EQ(latest_checkpoint(out), out / "checkpoints" / "step-000007");
  // A line and a checkpoint that were only partly written.
  std::ofstream(out / "metrics.jsonl", std::ios::app) << R"({"step":13,"lo)";
  const fs::path unfinished = out / "checkpoints" / "step-000014.plumb-tmp-0123456789abcdef";
  fs::create_directories(unfinished);
  std::ofstream(unfinished / ".plumb-unfinished") << "";
  const TrainResult resumed = run_training(run_, out);
  expect_equal_history(resumed.history, whole.history);
  expect_equal_history(read_metrics(out / "metrics.jsonl"), whole.history);
  EXPECT_FALSE(fs::exists(unfinished));
  expect_equal_tensors(folder_ / "whole/checkpoints/step-000020/model.safetensors",
                       out / "checkpoints/step-000020/model.safetensors");
}

TEST_F(Run, KeepsTheNewestCheckpoints) {
  run_.train.checkpoint_every = 4;
  run_.train.keep_checkpoints = 2;
  run_training(run_, folder_ / "run");
  std::vector<std::string> kept;
  for (const auto& entry : fs::directory_iterator(folder_ / "run" / "checkpoints"))
    kept.push_back(entry.path().filename());
  std::sort(kept.begin(), kept.end());
  EXPECT_EQ(kept, (std::vector<std::string>{"step-000016", "step-000020"}));
}

TEST_F(Run, RefusesAnotherConfigurationAndForeignDirectories) {
  const fs::path out = folder_ / "run";
  run_.train.steps = 2;
  run_training(run_, out);
  RunConfig other = run_;
  other.train.clip_norm = 1.5;
  EXPECT_EQ(error_of(other, out),
            out.string() + ": contains a run with a different configuration: train.clip_norm = 0.0 there, 1.5 here");
  other = run_;
  other.train.groups = {{.pattern = {"*"}}};
  EXPECT_EQ(error_of(other, out), out.string() +
                                      ": contains a run with a different configuration: train.groups.0.pattern = "
                                      "(default) there, [\"*\"] here");
  other = run_;
  Config::from_string("[train.sgd]\nmomentum = 0\n", "test").read("train", other.train);
  EXPECT_EQ(
      error_of(other, out),
      out.string() + ": contains a run with a different configuration: train.sgd.momentum = (default) there, 0.0 here");
  other = run_;
  other.model.residual = "post-ln";
  EXPECT_EQ(error_of(other, out),
            out.string() +
                ": contains a run with a different configuration: model.residual = \"pre-ln\" there, \"post-ln\" here");
  EXPECT_EQ(error_of(run_, folder_ / "data"),
            (folder_ / "data").string() + ": is a data directory, not a run directory");
  write_file_atomic(folder_ / "mine" / "letter", "dear");
  EXPECT_NE(error_of(run_, folder_ / "mine"), "accepted");
  EXPECT_EQ(read_file(folder_ / "mine" / "letter"), "dear");
  // An invalid request leaves no directory behind.
  other = run_;
  other.train.steps = 0;
  EXPECT_EQ(error_of(other, folder_ / "never"), "train.steps = 0 must be at least 1");
  EXPECT_FALSE(fs::exists(folder_ / "never"));
  EXPECT_THROW(latest_checkpoint(folder_ / "never"), Error);
}

TEST_F(Run, DataThatMovedAreTakenFromWhereTheyAre) {
  const TrainResult whole = run_training(run_, folder_ / "whole");
  run_training(run_, folder_ / "first", test::stop_after(10));
  fs::rename(folder_ / "first", folder_ / "second");
  fs::rename(folder_ / "data", folder_ / "moved");
  run_.data = (folder_ / "moved").string();
  const TrainResult resumed = run_training(run_, folder_ / "second");
  EXPECT_EQ(resumed.outcome, RunOutcome::finished);
  expect_equal_history(resumed.history, whole.history);
  EXPECT_EQ(load_run_config(folder_ / "second").data, fs::canonical(folder_ / "moved").string());
  // A copy has the same data; different data are rejected.
  fs::copy(folder_ / "moved", folder_ / "copy", fs::copy_options::recursive);
  run_.data = (folder_ / "copy").string();
  EXPECT_EQ(error_of(run_, folder_ / "second"), "accepted");
  PrepareOptions options;
  options.tokenizer.vocabulary = 24;
  prepare_corpora({test::copy_text(100, 1), test::copy_text(20, 2), {}}, options, folder_ / "other");
  run_.data = (folder_ / "other").string();
  EXPECT_EQ(error_of(run_, folder_ / "second"),
            (folder_ / "other").string() + ": split 'train' has changed since the run was started: train.source");
  // Also in the same place, and if only the validation split differs.
  run_.data = (folder_ / "copy").string();
  const std::string tokenizer = read_file(folder_ / "copy" / "tokenizer.model");
  fs::copy(folder_ / "moved" / "splits" / "train.tokens", folder_ / "copy" / "splits" / "valid.tokens",
           fs::copy_options::overwrite_existing);
  EXPECT_NE(error_of(run_, folder_ / "second"), "accepted");
  fs::copy(folder_ / "moved" / "splits", folder_ / "copy" / "splits",
           fs::copy_options::overwrite_existing | fs::copy_options::recursive);
  write_file_atomic(folder_ / "copy" / "splits" / "valid.target",
                    read_file(folder_ / "copy" / "splits" / "valid.source") + "\n");
  EXPECT_EQ(error_of(run_, folder_ / "second"),
            (folder_ / "copy").string() + ": split 'valid' has changed since the run was started: valid.target");
  fs::copy(folder_ / "moved" / "splits", folder_ / "copy" / "splits",
           fs::copy_options::overwrite_existing | fs::copy_options::recursive);
  EXPECT_EQ(error_of(run_, folder_ / "second"), "accepted");
}

// Otherwise, a run would end at the first batch, or the first validation, with such an example.
TEST_F(Run, DataLongerThanTheLearnedPositionsAreRefusedAtOnce) {
  run_.model.positions = "learned";
  const auto longest_of = [&](const char* split) {
    int64_t longest = 0;
    const DataDirectory data = DataDirectory::open(run_.data);
    for (int64_t i = 0; i < data.split(split).size(); ++i) {
      longest = std::max<int64_t>(longest, std::ssize(data.split(split).source(i)) + 1);
      longest = std::max<int64_t>(longest, std::ssize(data.split(split).target(i)) + 1);
    }
    return longest;
  };
  const int64_t train = longest_of("train"), valid = longest_of("valid");
  run_.model.max_positions = train - 1;
  const std::string error = error_of(run_, folder_ / "short");
  EXPECT_TRUE(error.starts_with("split 'train': example ")) << error;
  EXPECT_TRUE(error.ends_with(
      fmt::format("is a sequence of {} tokens, but the model has {} learned positions", train, train - 1)))
      << error;
  EXPECT_FALSE(fs::exists(folder_ / "short"));
  run_.model.max_positions = std::max(train, valid);
  EXPECT_EQ(error_of(run_, folder_ / "enough"), "accepted");
}

TEST_F(Run, ADamagedResultIsSaidOnceAndComputedAgain) {
  const fs::path out = folder_ / "run";
  const TrainResult before = run_training(run_, out);
  write_file_atomic(out / "result.json", "{");
  run_.train.steps = 24;  // longer, too
  ::testing::internal::CaptureStderr();
  const TrainResult after = run_training(run_, out);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(after.steps, 24);
  const size_t first = said.find("it is computed again");
  ASSERT_NE(first, std::string::npos) << said;
  EXPECT_EQ(said.find("it is computed again", first + 1), std::string::npos) << said;
}

TEST_F(Run, SaysThatAnExampleExceedsMicroBatches) {
  run_.train.steps = 1;
  const auto said = [&](int64_t tokens) {
    run_.train.micro_batch_tokens = tokens;
    set_verbosity(Verbosity::normal);
    ::testing::internal::CaptureStderr();
    run_training(run_, folder_ / std::to_string(tokens));
    set_verbosity(Verbosity::quiet);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_CONTAINS(said(1), "train.micro_batch_tokens = 1 is exceeded by 120 examples, of up to ");
  EXPECT_LACKS(said(32), "exceeded");
  EXPECT_LACKS(said(0), "exceeded");
}

TEST_F(Run, AnyMetricDecidesWhichCheckpointIsTheBest) {
  run_.train.best_metric = "valid_loss";
  run_.train.validate_every = 4;
  run_.train.keep_best = 2;
  run_.train.keep_every = 6;
  run_.train.keep_checkpoints = 1;
  const fs::path out = folder_ / "run";
  const TrainResult result = run_training(run_, out);
  std::vector<std::pair<double, int64_t>> by_loss;
  for (const TrainPoint& point : result.history)
    if (const auto loss = point.metrics.get("valid_loss")) by_loss.emplace_back(*loss, point.step);
  ASSERT_GE(by_loss.size(), 4U);
  std::sort(by_loss.begin(), by_loss.end());
  EXPECT_EQ(result.best_step(), by_loss[0].second);
  ASSERT_TRUE(result.best.has_value());
  EXPECT_EQ(result.best->metric, "valid_loss");
  EXPECT_EQ(result.best->value, by_loss[0].first);
  EXPECT_EQ(read_json(out / "result.json")["best"]["value"], by_loss[0].first);
  EXPECT_EQ(read_json(out / "best" / "state.json")["step"], by_loss[0].second);
  EXPECT_EQ(names_in(out / "best-checkpoints"), step_names({by_loss[0].second, by_loss[1].second}));
  EXPECT_EQ(names_in(out / "checkpoints"), step_names({6, 12, 18, 20}));  // 7 and 14 have been removed

  // Larger BLEU is better, and it is computed at other steps.
  run_.train.best_metric = "bleu";
  run_.train.score_every = 5;
  run_.train.patience = 2;
  run_.train.learning_rate = 0;  // never better than the first value
  Config::from_string("[task.translation]\nbeam = 1\n", "test").read("task", run_.task);
  const TrainResult stopped = run_training(run_, folder_ / "bleu");
  EXPECT_EQ(stopped.steps, 15);
  EXPECT_EQ(stopped.best_step(), 5);
  EXPECT_EQ(read_json(folder_ / "bleu" / "best" / "state.json")["step"], 5);
  run_.train.best_metric = "blue";
  EXPECT_EQ(error_of(run_, folder_ / "never"), "train.best_metric = \"blue\" is not a metric of the task translation");
  run_.train.best_metric = "bleu";
  run_.train.score_every = -1;
  EXPECT_EQ(error_of(run_, folder_ / "never"),
            "train.best_metric = \"bleu\" is never computed with train.score_every = -1");
}

TEST_F(Run, TheLastStepIsSavedBeforeItsSlowMetrics) {
  Config::from_string("[task.translation]\nbeam = 1\n", "test").read("task", run_.task);
  run_.train.score_every = 10;
  const fs::path whole = folder_ / "whole", out = folder_ / "parts";
  run_training(run_, whole);
  // Stopped at an intermediate step that is scored, and at the last step.
  for (const int64_t step : {10, 20}) {
    test::Moments moments;
    int64_t last = 0;
    moments.stop = [&, left = step - (step == 10 ? 0 : 10)]() mutable { return --left == 0; };
    moments.checkpoint = [&](const Trainer& trainer) { last = trainer.step(); };
    const TrainResult stopped = run_training(run_, out, moments);
    EXPECT_EQ(stopped.outcome, RunOutcome::stopped);
    EXPECT_EQ(last, step);
    EXPECT_EQ(stopped.history.back().step, step == 10 ? 9 : 18);  // a point is added once it is complete
    EXPECT_EQ(read_json(out / "result.json")["outcome"], "stopped");
  }
  EXPECT_EQ(run_training(run_, out).outcome, RunOutcome::finished);
  auto a = test::contents_of_run(whole), b = test::contents_of_run(out);
  for (auto* each : {&a, &b})
    std::erase_if(*each, [](const auto& entry) {
      return entry.first.find("step-0000") != std::string::npos && entry.first.find("step-000020") == std::string::npos;
    });
  EXPECT_EQ(a, b);  // except for the checkpoint that the interruption made
}

TEST_F(Run, AFinishedRunTrainsOnWhenItsStepsAreRaised) {
  RunConfig longer = run_;
  longer.train.steps = 30;
  const TrainResult whole = run_training(longer, folder_ / "whole");
  const fs::path out = folder_ / "run";
  run_training(run_, out);
  const TrainResult raised = run_training(longer, out);
  EXPECT_EQ(raised.outcome, RunOutcome::finished);
  EXPECT_EQ(raised.steps, 30);
  EXPECT_EQ(load_run_config(out).train.steps, 30);
  expect_equal_tensors(folder_ / "whole" / "checkpoints" / "step-000030" / "model.safetensors",
                       out / "checkpoints" / "step-000030" / "model.safetensors");
  EXPECT_EQ(read_json(out / "result.json")["steps"], 30);
  EXPECT_EQ(error_of(run_, out),
            out.string() + ": contains a run with a different configuration: train.steps = 30 there, 20 here");
  // The same for epochs.
  run_.train.epochs = 1;
  run_.train.steps = 1000;
  const TrainResult one = run_training(run_, folder_ / "epochs");
  run_.train.epochs = 2;
  EXPECT_EQ(run_training(run_, folder_ / "epochs").steps, 2 * one.steps);
}

TEST_F(Run, ADamagedResultIsComputedAgain) {
  const fs::path out = folder_ / "run";
  run_training(run_, out);
  const std::string intact = read_file(out / "result.json");
  for (const char* damaged : {"[]", "3", "{\"outcome\": 3}", "{"}) {
    write_file_atomic(out / "result.json", damaged);
    testing::internal::CaptureStderr();
    EXPECT_EQ(run_training(run_, out).outcome, RunOutcome::finished) << damaged;
    const std::string warnings = testing::internal::GetCapturedStderr();
    EXPECT_CONTAINS(warnings, "result.json");
    EXPECT_LACKS(warnings, "json.exception");
  }
}

TEST_F(Run, DivergenceIsAResult) {
  run_.train.optimizer = "sgd";
  run_.train.schedule = "constant";
  run_.train.learning_rate = 1e3;
  run_.train.steps = 1000;
  const TrainResult result = run_training(run_, folder_ / "run");
  EXPECT_EQ(result.outcome, RunOutcome::diverged);
  EXPECT_LT(result.steps, 100);
  EXPECT_EQ(result.history.back().step, result.steps + 1);  // the step that was not taken
  EXPECT_EQ(read_json(folder_ / "run" / "result.json")["outcome"], "diverged");
  const std::string last = read_lines(folder_ / "run" / "metrics.jsonl").back();
  EXPECT_EQ(Json::parse(last)["outcome"], "diverged");
}

TEST_F(Run, ADecoderIsTrainedAndTakenUpAsAnyModel) {
  run_.model.kind = "decoder";
  run_.model.attention = "favor";
  // A resumed run draws the same random features as an uninterrupted one.
  run_.model.options = {{"favor", Options(FavorOptions{0, 6})}};
  const TrainResult whole = run_training(run_, folder_ / "whole");
  EXPECT_EQ(whole.outcome, RunOutcome::finished);
  EXPECT_LT(whole.history.back().nll, whole.history.front().nll);
  run_training(run_, folder_ / "parts", test::stop_after(9));
  const TrainResult parts = run_training(run_, folder_ / "parts");
  expect_equal_history(whole.history, parts.history);
  expect_equal_tensors(latest_checkpoint(folder_ / "whole") / "model.safetensors",
                       latest_checkpoint(folder_ / "parts") / "model.safetensors");
  const auto model = load_model(folder_ / "whole");
  EXPECT_EQ(model->translates(), nullptr);
  EXPECT_NE(model->generates(), nullptr);
}

}  // namespace
}  // namespace plumb
