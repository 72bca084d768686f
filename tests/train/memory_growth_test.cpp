// Memory does not grow during a run.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <map>

#include "copy_task.h"
#include "plumb/run/directory.h"
#include "plumb/train/run_training.h"

namespace plumb {
namespace {

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // sanitizers keep freed memory
/// Of this process, in bytes.
double resident_memory() {
  std::ifstream file("/proc/self/statm");
  double total = 0, resident = 0;
  file >> total >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

// Steps 1,000 to 5,000, with evaluations and checkpoints, must leave nothing in memory but a point of the history every
// hundred steps. 4 MiB are 1 KiB per step, whereas one gradient of this model takes 20 KiB.
TEST(TrainingMemory, DoesNotGrowOverFiveThousandSteps) {
  const test::TemporaryDirectory folder;
  test::make_copy_task(folder / "data");
  RunConfig config = test::copy_run(folder / "data");
  config.train.batch_tokens = 16;
  config.train.steps = 5000;
  config.train.log_every = 100;
  config.train.validate_every = 1000;
  config.train.score_every = -1;
  config.train.checkpoint_every = 500;
  config.train.average_decay = 0.99;
  std::map<int64_t, double> resident;  // by step
  test::Moments moments;
  moments.point = [&](const TrainPoint& point) { resident[point.step] = resident_memory(); };
  EXPECT_EQ(run_training(config, folder / "run", moments).outcome, RunOutcome::finished);
  ASSERT_TRUE(resident.contains(1000) && resident.contains(5000));
  EXPECT_GT(resident[1000], 0);
  EXPECT_LT(resident[5000] - resident[1000], 4 << 20);
}
#endif

}  // namespace
}  // namespace plumb
