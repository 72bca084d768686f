#include "plumb/run/background_writer.h"

#include <gtest/gtest.h>

#include <future>
#include <string>

#include "plumb/base/error.h"

namespace plumb {
namespace {

TEST(BackgroundWriter, WorksInOrderWhileTheCallerGoesOn) {
  std::string done;
  std::promise<void> go;
  BackgroundWriter writer;
  writer.submit(1, [&, start = go.get_future().share()] {
    start.wait();
    done += "a";
  });
  writer.submit(1, [&] { done += "b"; });  // same step: must not wait, or this would never return
  EXPECT_EQ(done, "");
  go.set_value();
  writer.submit(2, [&] { done += "c"; });  // after the others are finished
  writer.wait();
  EXPECT_EQ(done, "abc");
}

TEST(BackgroundWriter, OneStepIsHeldAtATime) {
  const auto data = std::make_shared<int>(0);
  BackgroundWriter writer;
  for (int64_t step = 0; step < 100; ++step) {
    writer.submit(step, [data] {});
    EXPECT_LE(data.use_count(), 2);  // this reference, and at most one job's
  }
}

TEST(BackgroundWriter, AFailureIsThrownByTheNextCallAndDropsWhatFollows) {
  bool later = false;
  std::promise<void> go;
  BackgroundWriter writer;
  writer.submit(1, [start = go.get_future().share()] {
    start.wait();
    throw Error("full");
  });
  writer.submit(1, [&] { later = true; });
  go.set_value();
  EXPECT_THROW(writer.wait(), Error);
  writer.wait();  // thrown only once
  EXPECT_FALSE(later);
  writer.submit(2, [] { throw Error("again"); });
  EXPECT_THROW(
      {
        while (true) writer.check();
      },
      Error);
}

TEST(BackgroundWriter, FinishesWhatWasSubmittedAtItsEnd) {
  int done = 0;
  {
    BackgroundWriter writer;
    for (int i = 0; i < 5; ++i) writer.submit(1, [&] { ++done; });
  }
  EXPECT_EQ(done, 5);
}

}  // namespace
}  // namespace plumb
