#include "plumb/base/job_queue.h"

#include <gtest/gtest.h>

#include <future>
#include <string>

#include "plumb/base/error.h"

namespace plumb {
namespace {

TEST(JobQueue, BeginsInItsThreadAndWaitsForAsManyAsAsked) {
  std::string done;
  std::promise<void> go;
  JobQueue queue([&] { done += "begin "; });
  queue.add([&] { done += "a"; });
  queue.add([&done, start = go.get_future().share()] {
    start.wait();
    done += "b";
  });
  queue.wait(1);  // with none left to wait for, this would not return
  EXPECT_EQ(done, "begin a");
  go.set_value();
  queue.wait();
  EXPECT_EQ(done, "begin ab");
}

TEST(JobQueue, DropsWhatFollowsAFailureUntilItIsKnown) {
  int later = 0;
  bool after = false;
  JobQueue queue;
  std::promise<void> failing;
  queue.add([&] {
    struct Told {
      std::promise<void>& promise;
      ~Told() { promise.set_value(); }
    } told{failing};
    throw Error("lost");
  });
  failing.get_future().wait();
  for (int i = 0; i < 10'000; ++i) queue.add([&] { ++later; });  // most of them after the failure is noted
  EXPECT_THROW(queue.wait(), Error);
  queue.add([&] { after = true; });
  queue.wait();
  EXPECT_EQ(later, 0);
  EXPECT_TRUE(after);
}

TEST(JobQueue, TakesJobsWhileItRunsOthers) {
  constexpr int kJobs = 200'000;
  int done = 0;
  {
    JobQueue queue;
    for (int i = 0; i < kJobs; ++i) queue.add([&] { ++done; });
  }
  EXPECT_EQ(done, kJobs);
}

}  // namespace
}  // namespace plumb
