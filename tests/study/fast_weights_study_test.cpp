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
[study]
[[study.claim]]
text = "The sum rule fails if there are more keys than features"
source = "Schlag et al. 2021, section 4.1"
quantity = "capacity_error"
of = ["fast_weights.kind=linear", "fast_weights.keys=12"]
against = ["fast_weights.keys=3"]
above = 0.1

[[study.claim]]
text = "More features store more associations: DPFP compared with elu + 1"
source = "Schlag et al. 2021, section 6.1"
quantity = "capacity_error_ratio"
of = ["fast_weights.kind=dpfp", "fast_weights.keys=12"]
against = ["fast_weights.kind=linear"]
below = 0.9

[[study.claim]]
text = "The delta rule replaces the value of a key that is written again; the sum rule cannot"
source = "Schlag et al. 2021, section 6.2"
quantity = "update_error"
of = ["fast_weights.kind=dpfp", "fast_weights.keys=3"]
against = ["fast_weights.kind=delta"]
above = 0.1
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
  for (const Json& verdict : results["verdicts"]) verdicts[verdict["claim"]] = verdict["verdict"];
  // Identities and times have no verdicts.
  EXPECT_EQ(verdicts.size(), config.study.claims.size());
  EXPECT_EQ(verdicts["The sum rule fails if there are more keys than features"], "supported");
  EXPECT_EQ(verdicts["The delta rule replaces the value of a key that is written again; the sum rule cannot"],
            "supported");
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
