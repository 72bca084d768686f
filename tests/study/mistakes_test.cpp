// Configurations of studies that cannot be measured.
#include <gtest/gtest.h>

#include "plumb/base/error.h"
#include "study/parts.h"
#include "study/small_study.h"
#include "support/errors.h"

namespace plumb {
namespace {

TEST(Study, FindsMistakesBeforeItMeasures) {
  const test::TemporaryDirectory directory;
  const auto mistake = [&](const char* what, const StudyConfig& config) {
    try {
      run_study(config, directory / what);
      return std::string();
    } catch (const Error& error) {
      for (const auto& file : std::filesystem::directory_iterator(directory / what / "measurements"))
        EXPECT_EQ(file.path().filename(), "data.json") << what;
      return std::string(error.what());
    }
  };
  StudyConfig good = test::small_study();
  good.study.schemes = {"post-ln"};
  good.parts = test::parts(std::string(test::kTrainingPart) + "[gradients]\nlayers = 2\nseeds = 1\npairs = 5\n");
  StudyConfig split = good;
  split.parts = test::parts(std::string(test::kTrainingPart) + "bleu_pairs = 4\nbleu_split = \"tset\"\n");
  EXPECT_EQ(mistake("split", split), "the data has no split 'tset'");
  StudyConfig text = good;
  text.data.block = 16;
  text.model.kind = "decoder";
  text.parts = test::parts(std::string(test::kTrainingPart) + "bleu_pairs = 4\nbleu_split = \"valid\"\n");
  EXPECT_EQ(mistake("text", text), "a model of kind \"decoder\" cannot translate");
  StudyConfig scheme = good;
  scheme.study.schemes.emplace_back("pre-lm");
  EXPECT_CONTAINS(mistake("scheme", scheme), "pre-lm");
  StudyConfig schedule = good;
  schedule.train.schedule = "constant * cosine";
  EXPECT_CONTAINS(mistake("schedule", schedule), "cosine");
}

TEST(Study, ReadsNoValuesThatCannotBeMeasured) {
  const auto read = [](const std::string& text) { return read_study(Config::from_string(text, "study.toml")); };
  EXPECT_EQ(test::message_of([&] { read("[gradients]\nseeds = 0"); }),
            "study.toml:2:9: gradients.seeds = 0 must be at least 1");
  EXPECT_THROW(read("[gradients]\nlayers = 0"), Error);
  EXPECT_THROW(read("[gradients]\nseeds = 1000000000000"), Error);
  EXPECT_THROW(read("[training]\nbleu_pairs = 4\nbeam = 1001"), Error);
  EXPECT_NO_THROW(read("[training]\nbleu_pairs = 4\nbeam = 1000"));
  EXPECT_THROW(read("[attention_cost]\nlengths = [9223372036854775807]"), Error);
  EXPECT_THROW(read("[attention_cost]\nlengths = [16, 16]"), Error);  // a law needs two points
  EXPECT_THROW(read("[attention_cost]\nd_model = 64\nheads = 3"), Error);
  EXPECT_THROW(read("[study]\nschemes = ['pre-ln', 'pre-ln']\n[gradients]"), Error);
  EXPECT_THROW(read("[training]\nlayers = [2, 2]"), Error);
  EXPECT_THROW(read("[training]\nlearning_rates = [1e-4, 1e-2, 0.01]"), Error);  // the best would not be at an end
  EXPECT_NO_THROW(read("[training]\nlearning_rates = [1e-4, 1e-2]"));
  EXPECT_THROW(read("[fast_weights]\nsize = 4611686018427387904"), Error);
  EXPECT_THROW(read("[training]\nbleu_pairs = -1"), Error);
  EXPECT_THROW(read("[training]\nlearning_rates = []"), Error);
  EXPECT_THROW(read("[depth]\nlayers = []"), Error);
  EXPECT_THROW(read("[training]\nwarm_ups = [-1]"), Error);
  EXPECT_THROW(read("[training]\nwarm_ups = [0, 400, '10kt']"), Error);  // which is longer?
  EXPECT_THROW(read("[training]\nwarm_ups = [0, '1kt', '1000t']"), Error);
  EXPECT_NO_THROW(read("[training]\nwarm_ups = [0, '10kt', '20kt']"));
  EXPECT_THROW(read("[training]\nwarm_ups = [0]"), Error);  // when would the decay begin?
  EXPECT_THROW(read("[train]\nwarm_up = 0\n[gradients]"), Error);
  EXPECT_NO_THROW(read("[training]\nwarm_ups = [0]\n[train]\ndecay_start = 50"));
  EXPECT_THROW(read("[backward_gain]\nseeds = 0"), Error);
  EXPECT_THROW(read("[first_step]\nlayers = 0"), Error);
  EXPECT_THROW(read("[first_step]\noptimizers = []"), Error);
  EXPECT_THROW(read("[spectrum]\nseed_steps = 0"), Error);
  EXPECT_THROW(read("[coordinate_check]\nseeds = 0"), Error);
  EXPECT_THROW(read("[coordinate_check]\ndepths = [1, 2]"), Error);  // compares the first layer with the last
  EXPECT_THROW(read("[coordinate_check]\nwidths = [32, 32]"), Error);
  EXPECT_THROW(read("[coordinate_check]\nmargin = nan"), Error);
  EXPECT_NO_THROW(read("[coordinate_check]\nwidths = []"));
  EXPECT_CONTAINS(test::message_of([&] { read("[data]\nvalid = 'valid.txt'\n[gradients]"); }), "belong to data.train");
  EXPECT_NO_THROW(read("[data]\ntrain = 'train.txt'\nvalid = 'valid.txt'\n[gradients]"));
  EXPECT_CONTAINS(test::message_of([&] { read("[train]\nseed = 7\n[gradients]"); }), "is study.seed");
  EXPECT_THROW(read("[watch]\nevery = 5\n[gradients]"), Error);  // trains no run along which to measure
  EXPECT_LACKS(write_study(read("[training]")), "[watch]");
  EXPECT_CONTAINS(write_study(read("[watch]\nevery = '1e'\n[training]\nwarm_ups = [0, '0.5e']")),
                  "[watch]\nevery = \"1e\"");
  const std::string arm = "[study]\n[[study.arm]]\nname = 'a'\nset = ['train.optimizer=sgd']\n";
  EXPECT_CONTAINS(write_study(read(arm + "learning_rates = [0.1]\n[training]")), "learning_rates = [0.1]\n");
  EXPECT_LACKS(write_study(read(arm + "[gradients]")), "learning_rates");
  EXPECT_THROW(read(arm + "learning_rates = []\n[training]"), Error);
  EXPECT_THROW(read(arm + "learning_rates = [1e-4, 1e-2, 0.01]\n[training]"), Error);
  EXPECT_THROW(read(arm + "learning_rates = [0.1]\n[gradients]"), Error);  // which trains nothing
  const std::string axis = "[study]\n[[study.axis]]\nkey = 'train.warm_up'\nvalues = ";
  EXPECT_NO_THROW(read(axis + "[0, 20]\n[training]"));
  EXPECT_THROW(read(axis + "[0, 20]\n[training]\nwarm_ups = [10]"), Error);  // set in two places
  EXPECT_THROW(read(axis + "[0]\n[training]"), Error);                       // when would the decay begin?
  EXPECT_THROW(read(axis + "[20, '10kt']\n[training]"), Error);              // which is longer?
}

}  // namespace
}  // namespace plumb
