// The [train] section: options of variants, groups, and values out of range.
#include "plumb/run/config.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "plumb/base/error.h"
#include "plumb/base/key_list.h"
#include "plumb/optim/adam.h"
#include "support/errors.h"

namespace plumb {
namespace {

TrainConfig read(const Config& config) {
  TrainConfig train;
  config.read("train", train);
  return train;
}
TrainConfig read(const std::string& toml) { return read(Config::from_string(toml, "run.toml")); }

std::string written(const TrainConfig& train) { return ConfigWriter().section("train", train).text(); }

std::string error_of(const std::string& toml) {
  return test::message_of([&] { validate(read(toml)); });
}

const char* const kNew = R"([train]
optimizer = "sgd"
schedule = "constant * step_decay"
[train.adam]
beta1 = 0.8
beta2 = 0.9
eps = 1e-6
[train.sgd]
momentum = 0.5
[train.step_decay]
at = [10, 20]
factor = 0.3
)";

TEST(TrainConfig, WritesTheOptionsOfWhatIsChosenAndWhatDiffers) {
  const std::string plain = written({});
  EXPECT_CONTAINS(plain, "\n[train.adam]\nbeta1 = 0.9\nbeta2 = 0.98\neps = 1e-09\n");
  EXPECT_LACKS(plain, "[train.sgd]");
  EXPECT_LACKS(plain, "[train.step_decay]");
  EXPECT_LACKS(plain, "groups");
  EXPECT_CONTAINS(written(read("[train]\nschedule = \"constant*step_decay\"")), "[train.step_decay]\nat = []\n");
  EXPECT_CONTAINS(written(read("[train.sgd]\nmomentum = 0.5")), "[train.sgd]\nmomentum = 0.5\n");
  EXPECT_EQ(read(plain), TrainConfig());
  EXPECT_EQ(read(written(read(kNew))), read(kNew));
}

TEST(TrainConfig, ReadsGroups) {
  const std::string toml = R"([train]
[[train.groups]]
pattern = "*.bias"
[[train.groups]]
pattern = ["encoder.*", "src_embed.weight"]
learning_rate_factor = 0.5
weight_decay = 0.1
frozen_until = -1
)";
  const std::vector<ParameterGroup> groups = read(toml).groups;
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0], (ParameterGroup{.pattern = {"*.bias"}}));
  EXPECT_EQ(groups[1], (ParameterGroup{.pattern = {"encoder.*", "src_embed.weight"},
                                       .learning_rate_factor = 0.5,
                                       .weight_decay = 0.1,
                                       .frozen_until = -1}));
  EXPECT_EQ(read(written(read(toml))), read(toml));

  Config set;
  set.set(
      "train.groups=[{pattern = \"*.bias\"}, {pattern = [\"encoder.*\", \"src_embed.weight\"], "
      "learning_rate_factor = 0.5, weight_decay = 0.1, frozen_until = -1}]");
  EXPECT_EQ(read(set).groups, groups);
}

TEST(TrainConfig, OptionsOutOfRangeOrUnknownAreErrors) {
  EXPECT_EQ(error_of("[train]\n"), "accepted");
  EXPECT_EQ(error_of("[train.adam]\nbeta1 = 1.0"), "run.toml:2:9: train.adam.beta1 = 1 must lie in [0, 1)");
  EXPECT_EQ(error_of("[train]\nschedule = \"constant * step_decay\"\n[train.step_decay]\nfactor = -1.0"),
            "run.toml:4:10: train.step_decay.factor = -1 must be at least 0");
  EXPECT_EQ(error_of("[train]\noptimizer = \"adamm\""), "run.toml:2:13: unknown optimizer 'adamm'");
  EXPECT_EQ(error_of("[train]\nschedule = \"konstant\""), "unknown schedule factor 'konstant'");
  EXPECT_EQ(error_of("[train]\nschedule = \"linear_warmup\""),
            "schedule \"linear_warmup\": without the factor constant, it ignores train.learning_rate");
  EXPECT_EQ(error_of("[train]\ndecay_floor = 2.0"), "run.toml:2:15: train.decay_floor = 2 must lie in [0, 1]");
  EXPECT_EQ(error_of("[train]\ndecay_floor = -0.5"), "run.toml:2:15: train.decay_floor = -0.5 must lie in [0, 1]");
  EXPECT_EQ(error_of("[train]\ndecay_floor = 1.0"), "accepted");
  EXPECT_EQ(error_of("[train.adam]\nbeta3 = 0.5"), "run.toml:2:1: unknown key 'beta3' in [train.adam]");
  EXPECT_EQ(error_of("[train.addam]\nbeta1 = 0.5"), "run.toml:1:8: unknown section 'addam' in [train]");
}

TEST(TrainConfig, CountsBeyondEveryRunAreRefusedByName) {
  const std::string count = "4611686018427387904";
  const auto refusal = [&](const std::string& key) {
    const std::string error = error_of("[train]\n" + key + " = " + count);
    const std::string place = fmt::format("run.toml:2:{}: train.{} = {} must ", key.size() + 4, key, count);
    return error.starts_with(place) ? error.substr(place.size()) : error;
  };
  for (const char* key : {"warm_up", "decay_start", "batch_tokens", "steps", "epochs", "log_every", "validate_every",
                          "patience", "score_every", "checkpoint_every", "keep_checkpoints"})
    EXPECT_EQ(refusal(key), "be at most 1,000,000,000") << key;
  EXPECT_EQ(refusal("processes"), "lie in [1, 100,000]");
  EXPECT_TRUE(error_of("[train]\noptimizer = \"muon\"\n[train.muon]\niterations = " + count)
                  .starts_with("run.toml:4:14: train.muon.iterations = " + count + " must lie in ["));
}

TEST(TrainConfig, IsCheckedIfAProgramFillsIt) {
  TrainConfig config;
  config.batch_tokens = 0;
  EXPECT_EQ(test::message_of([&] { validate(config); }), "train.batch_tokens = 0 must be at least 1");
  config = {};
  config.corpora = {{"news", 0}};
  EXPECT_THROW(validate(config), Error);
  config.corpora = {{"news", 1}, {"news", 2}};
  EXPECT_THROW(validate(config), Error);
  config = {};
  config.trouble.rollback_rate = 2;
  EXPECT_THROW(validate(config), Error);
  config = {};
  config.options.insert_or_assign("adam", Options(AdamOptions{.beta1 = 1}));
  EXPECT_THROW(validate(config), Error);
}

TEST(TrainConfig, SaysWhatEachKeyMeans) {
  for (const KeyList::Key& key : list_keys(TrainConfig())) EXPECT_FALSE(key.meaning.empty()) << key.name;
  for (const KeyList::Key& key : list_keys(TroubleConfig())) EXPECT_FALSE(key.meaning.empty()) << key.name;
}

TEST(TrainConfig, NumbersMustBeFinite) {
  for (const std::string key :
       {"learning_rate", "decay_floor", "weight_decay", "clip_norm", "label_smoothing", "divergence_factor"}) {
    for (const std::string value : {"nan", "inf"}) {
      EXPECT_EQ(error_of("[train]\n" + key + " = " + value), "run.toml:2:" + std::to_string(key.size() + 4) + ": '" +
                                                                 key + "' must be a finite number, not " + value);
    }
  }
  TrainConfig config;  // set in C++
  config.learning_rate = HUGE_VAL;
  EXPECT_THROW(validate(config), Error);
}

TEST(TrainConfig, ADecayFromTheFirstStepMustBeMeant) {
  const auto error_of = [](const std::string& toml) {
    return test::message_of([&] { require_decay_start(read("[train]\n" + toml)); });
  };
  EXPECT_EQ(error_of(""), "accepted");
  EXPECT_EQ(error_of("warm_up = 0"),
            "train.warm_up = 0: the learning rate would decay as 1/√step from step 1 on, to a tenth at step 100");
  EXPECT_NE(error_of("warm_up = 1"), "accepted");
  EXPECT_EQ(error_of("warm_up = 2"), "accepted");
  EXPECT_EQ(error_of("warm_up = 0\ndecay_start = 1"), "accepted");
  EXPECT_EQ(error_of("warm_up = 0\ndecay_start = \"1Mt\""), "accepted");
  EXPECT_EQ(error_of("warm_up = 0\nschedule = \"constant * cosine_decay\""), "accepted");
}

}  // namespace
}  // namespace plumb
