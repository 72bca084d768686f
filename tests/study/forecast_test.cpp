// What a study says that it will do.
#include "plumb/study/forecast.h"

#include <gtest/gtest.h>

#include "parts.h"
#include "plumb/base/progress.h"
#include "plumb/study/study.h"
#include "support/contains.h"
#include "support/paths.h"

namespace plumb {
namespace {

TEST(Forecast, TimesAreRough) {
  EXPECT_EQ(rough_time(0), "less than a minute");
  EXPECT_EQ(rough_time(60), "about 1 minute");
  EXPECT_EQ(rough_time(60 * 89.0), "about 89 minutes");
  EXPECT_EQ(rough_time(60 * 95.0), "about 2 hours");
  EXPECT_EQ(rough_time(3600 * 30.4), "about 30 hours");
}

/// What a study says on standard error.
std::string said_by(const StudyConfig& config, const std::filesystem::path& out) {
  set_verbosity(Verbosity::normal);
  testing::internal::CaptureStderr();
  run_study(config, out);
  set_verbosity(Verbosity::quiet);
  return testing::internal::GetCapturedStderr();
}

TEST(Forecast, CountsWhatIsNotStored) {
  const test::TemporaryDirectory folder;
  StudyConfig config = read_study(Config::from_string(R"(
[study]
schemes = ["pre-ln", "rezero"]
[data]
pairs = 300
vocabulary = 200
[model]
d_model = 8
feed_forward = 12
[gradients]
layers = 2
seeds = 2
pairs = 5
[depth]
layers = [1, 2]
seeds = 1
pairs = 5
)",
                                                      "study.toml"));
  EXPECT_CONTAINS(said_by(config, folder / "out"), "6 measurements to make: 2 of gradients, 4 of depth; less than a");
  EXPECT_LACKS(said_by(config, folder / "out"), "to make");  // all are stored
  config.study.schemes.emplace_back("post-ln");
  EXPECT_CONTAINS(said_by(config, folder / "out"), " to make: 2 of gradients, 2 of depth; ");
}

}  // namespace
}  // namespace plumb
