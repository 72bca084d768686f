// A small study of fast weights from TOML to results.json.
#include <gtest/gtest.h>

#include "plumb/base/input.h"
#include "plumb/ops/threads.h"
#include "plumb/study/study.h"
#include "support/contains.h"
#include "support/paths.h"

namespace plumb {
namespace {

constexpr const char* kStudy = R"(
[data]
pairs = 200
vocabulary = 120
block = 16
[model]
d_model = 16
feed_forward = 16
heads = 2
[model.dpfp]
nu = 1
[fast_weights]
kinds = ["linear", "dpfp", "delta"]
size = 6
keys = [3, 12]
seeds = 4
steps = 80
[attention_cost]
kinds = ["softmax", "linear"]
lengths = [64, 256]
d_model = 16
)";

TEST(FastWeightsStudy, MeasuresJudgesAndFindsWhatItMeasured) {
  ops::set_threads(1);  // part of the settings, which are compared below
  const test::TemporaryDirectory directory;
  const StudyConfig config = read_study(Config::from_string(kStudy, "study.toml"));
  const Json results = run_study(config, directory / "out");
  std::map<std::string, std::string> verdicts;
  for (const Json& verdict : results["verdicts"]) verdicts[verdict["id"]] = verdict["verdict"];
  // Identities and times have no verdicts.
  EXPECT_EQ(verdicts, (std::map<std::string, std::string>{{"capacity_sum_rule", verdicts["capacity_sum_rule"]},
                                                          {"capacity_dpfp", verdicts["capacity_dpfp"]},
                                                          {"update_delta_rule", verdicts["update_delta_rule"]}}));
  EXPECT_EQ(verdicts["capacity_sum_rule"], "supported");
  EXPECT_EQ(verdicts["update_delta_rule"], "supported");
  std::vector<std::string> figures;
  for (const Json& figure : results["figures"]) figures.push_back(figure["id"]);
  EXPECT_EQ(figures, (std::vector<std::string>{"capacity", "update", "attention_time", "attention_memory"}));
  Json again = run_study(config, directory / "out");
  Json before = results;
  for (Json* each : {&again, &before}) each->erase("created");
  EXPECT_EQ(again, before);  // including times: nothing was measured again
  EXPECT_CONTAINS(read_file(directory / "out" / "study.toml"), "keys = [3, 12]");
}

}  // namespace
}  // namespace plumb
