// A fixture for runs on the copy task in several processes, which start as `plumb` does.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>

#include "copy_task.h"
#include "plumb/base/error.h"
#include "plumb/train/run_training.h"
#include "support/errors.h"

namespace plumb::test {

class RunInProcesses : public ::testing::Test, protected CopyTaskFolder {
 protected:
  RunInProcesses() {
    ::setenv("PLUMB_PROGRAM", plumb_program().c_str(), 1);
    run_.train.optimizer = "sgd";
    run_.train.learning_rate = 0.05;
  }
  ~RunInProcesses() override { ::unsetenv("PLUMB_PROGRAM"); }

  /// The error of a run with these settings; it must not have begun.
  [[nodiscard]] Error refusal(const std::function<void(RunConfig&)>& set) const {
    RunConfig run = run_;
    set(run);
    Error error = error_of([&] { run_training(run, folder_ / "refused"); });
    EXPECT_FALSE(std::filesystem::exists(folder_ / "refused"));
    return error;
  }

  static void expect_same_losses(const TrainResult& found, const TrainResult& wanted) {
    EXPECT_EQ(found.outcome, RunOutcome::finished);
    ASSERT_EQ(found.history.size(), wanted.history.size());
    for (size_t i = 0; i < wanted.history.size(); ++i) EXPECT_NEAR(found.history[i].nll, wanted.history[i].nll, 1e-4);
  }

  /// Expects that "run" ends as a run in one process does, with its metrics, if it begins as `first`, goes on in one
  /// process, and ends as `last`.
  void expect_goes_on_in_one(const std::function<void(TrainConfig&)>& first,
                             const std::function<void(TrainConfig&)>& last) {
    run_.model.dropout = 0.2;
    const TrainResult one = run_training(run_, folder_ / "one");
    RunConfig begun = run_, ended = run_;
    first(begun.train);
    last(ended.train);
    EXPECT_EQ(run_training(begun, folder_ / "run", stop_after(9)).outcome, RunOutcome::stopped);
    EXPECT_EQ(run_training(run_, folder_ / "run", stop_after(6)).outcome, RunOutcome::stopped);
    const TrainResult result = run_training(ended, folder_ / "run");
    expect_same_losses(result, one);
    ASSERT_TRUE(one.metrics.get("bleu"));
    EXPECT_NEAR(result.metrics.get("bleu").value(), *one.metrics.get("bleu"), 1e-3);  // of sentences decoded together
  }
};

}  // namespace plumb::test
