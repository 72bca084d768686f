// Runs whose directory is moved, removed or emptied while they are trained.
#include <gtest/gtest.h>

#include <fstream>

#include "copy_task.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/train/run_training.h"
#include "run_contents.h"
#include "support/errors.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

class MovedRun : public ::testing::Test, protected test::CopyTaskFolder {
 protected:
  MovedRun() {
    run_.train.keep_best = 2;
    run_.train.score_every = -1;
  }

  /// Moments that call `act` once, after this step, and note where the run is.
  test::Moments after_step(int64_t step, const std::function<void()>& act) {
    test::Moments moments;
    moments.stop = [this, act, step] {
      if (++steps_ == step) act();
      return false;
    };
    moments.place = [this](const fs::path& place) { place_ = place; };
    return moments;
  }

  int64_t steps_ = 0;
  fs::path place_, before_ = folder_ / "before", after_ = folder_ / "elsewhere" / "after";
};

TEST_F(MovedRun, GoesOnWhereItIs) {
  run_training(run_, folder_ / "whole");
  fs::create_directory(folder_ / "elsewhere");
  test::Moments moments = after_step(5, [&] { fs::rename(before_, after_); });
  EXPECT_EQ(run_training(run_, before_, moments).outcome, RunOutcome::finished);
  EXPECT_EQ(place_, after_);
  EXPECT_FALSE(fs::exists(before_));
  test::expect_same_files(test::contents_of_run(after_), test::contents_of_run(folder_ / "whole"));
}

TEST_F(MovedRun, IsResumedFromWhereItIs) {
  fs::create_directory(folder_ / "elsewhere");
  test::Moments moments = after_step(9, [&] { fs::rename(before_, after_); });
  moments.stop = [stop = moments.stop, this] { return stop() || steps_ == 10; };
  EXPECT_EQ(run_training(run_, before_, moments).outcome, RunOutcome::stopped);
  fs::create_directory(before_);  // another directory of the same name is not the run
  const TrainResult resumed = run_training(run_, place_);
  EXPECT_EQ(resumed.outcome, RunOutcome::finished);
  EXPECT_TRUE(fs::is_empty(before_));
}

TEST_F(MovedRun, ErrorsNameThePlaceWhereItIs) {
  fs::create_directory(folder_ / "elsewhere");
  test::Moments moments = after_step(8, [&] {  // after the first checkpoint
    fs::rename(before_, after_);
    fs::remove_all(after_ / "best-checkpoints");
    fs::remove_all(after_ / "best");
    std::ofstream(after_ / "best") << "a file";
  });
  const std::string message = test::message_of([&] { run_training(run_, before_, moments); });
  EXPECT_CONTAINS(message, (after_ / "best").string());
  EXPECT_CONTAINS(message, "the last good checkpoint is " + (after_ / "checkpoints" / "step-000007").string());
  EXPECT_LACKS(message, "/proc/");
  EXPECT_LACKS(message, before_.string());
}

TEST_F(MovedRun, ARemovedOneEndsAtOnce) {
  test::Moments moments = after_step(2, [&] { fs::remove_all(before_); });
  EXPECT_EQ(test::message_of([&] { run_training(run_, before_, moments); }),
            before_.string() + ": was removed while it was being trained");
  EXPECT_LE(steps_, 3);
  EXPECT_FALSE(fs::exists(before_));
  // Another directory in its place is left alone.
  steps_ = 0;
  test::Moments replacing = after_step(2, [&] {
    fs::remove_all(before_);
    fs::create_directory(before_);
  });
  EXPECT_EQ(test::message_of([&] { run_training(run_, before_, replacing); }),
            before_.string() + ": was removed while it was being trained");
  EXPECT_TRUE(fs::is_empty(before_));
}

TEST_F(MovedRun, AnEmptiedOneEndsAtOnce) {
  test::Moments moments = after_step(2, [&] {
    for (const auto& entry : fs::directory_iterator(before_)) fs::remove_all(entry.path());
  });
  EXPECT_EQ(test::message_of([&] { run_training(run_, before_, moments); }),
            before_.string() + ": its config.toml was removed while it was being trained");
  EXPECT_LE(steps_, 3);
}

TEST_F(MovedRun, FarTooManyProcessesAreNotStarted) {
  run_.train.processes = 90'000;
  const Error error = test::error_of([&] { run_training(run_, before_); });
  EXPECT_CONTAINS(std::string(error.what()), "train.processes = 90000: this machine has ");
  EXPECT_CONTAINS(error.hint(), "launcher");
  EXPECT_FALSE(fs::exists(before_));
}

}  // namespace
}  // namespace plumb
