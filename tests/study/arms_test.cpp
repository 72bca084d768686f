// What studies compare: combinations of schemes, axes and pairings.
#include "plumb/study/arms.h"

#include <gtest/gtest.h>

#include <set>

#include "plumb/study/study.h"
#include "support/entries.h"
#include "support/errors.h"
#include "support/paths.h"

namespace plumb {
namespace {

std::vector<StudyArm> arms_of(const std::vector<StudyAxis>& axes, const std::vector<StudyPairing>& pairings = {}) {
  ModelConfig model;
  model.heads = 4;
  return study_arms({"post-ln", "pre-ln"}, pairings, axes, model, {});
}

std::vector<std::string> names_of(const std::vector<StudyArm>& arms) {
  std::vector<std::string> names;
  for (const StudyArm& arm : arms) names.push_back(arm.name);
  return names;
}

using Names = std::vector<std::string>;

TEST(StudyArms, AreTheSchemesWithoutAxes) {
  const auto arms = study_arms({"post-ln", "deepnorm"}, {}, {}, {}, {});
  EXPECT_EQ(names_of(arms), (Names{"post-ln", "deepnorm"}));
  EXPECT_EQ(arms[0].model.residual, "post-ln");
  EXPECT_EQ(arms[0].model.initialization, ModelConfig().initialization);
  EXPECT_EQ(arms[1].model.initialization, "deepnorm");  // its own
}

TEST(StudyArms, HaveTheInitializationOfTheirSchemeInEitherStack) {
  using Pair = std::pair<std::string, std::string>;
  const auto initializations_of = [](const std::string& encoder, const std::string& decoder) {
    const auto arms = study_arms({decoder}, {}, {{"model.encoder_residual", {encoder}}}, {}, {});
    return Pair(arms[0].model.encoder_initialization, arms[0].model.initialization);
  };
  const std::string usual = ModelConfig().initialization;
  EXPECT_EQ(initializations_of("deepnorm", "pre-ln"), Pair("deepnorm", usual));
  EXPECT_EQ(initializations_of("post-ln", "deepnorm"), Pair(usual, "deepnorm"));
  EXPECT_EQ(initializations_of("same", "deepnorm"), Pair("same", "deepnorm"));
  EXPECT_EQ(initializations_of("post-ln", "pre-ln"), Pair("same", usual));
  const auto chosen =
      study_arms({"pre-ln"}, {}, {{"model.encoder_residual", {"deepnorm"}}, {"model.initialization", {"he"}}}, {}, {});
  EXPECT_EQ(chosen[0].model.encoder_initialization, "same");
}

TEST(StudyArms, AreAllCombinations) {
  const auto arms = arms_of({{"model.norm", {"layernorm", "rmsnorm"}}, {"model.heads", {"2", "8"}}});
  EXPECT_EQ(names_of(arms),
            (Names{"post-ln, layernorm, heads 2", "post-ln, layernorm, heads 8", "post-ln, rmsnorm, heads 2",
                   "post-ln, rmsnorm, heads 8", "pre-ln, layernorm, heads 2", "pre-ln, layernorm, heads 8",
                   "pre-ln, rmsnorm, heads 2", "pre-ln, rmsnorm, heads 8"}));
  EXPECT_EQ(arms[6].model.residual, "pre-ln");
  EXPECT_EQ(arms[6].model.norm, "rmsnorm");
  EXPECT_EQ(arms[6].model.heads, 2);
  EXPECT_FALSE(arms[6].sets_depth);
}

TEST(StudyArms, ValuesOfOtherTypesAndOfTraining) {
  const auto arms = arms_of({{"model.qk_norm", {"none", "rmsnorm"}},
                             {"train.optimizer", {"adam", "sgd"}},
                             {"model.parallel", {"true"}},
                             {"model.decoder_layers", {"2"}}});
  EXPECT_EQ(arms.front().name, "post-ln, qk norm none, adam");  // axes with one value are not in the name
  EXPECT_TRUE(arms.front().model.parallel);
  EXPECT_TRUE(arms.front().sets_depth);
  EXPECT_EQ(arms.back().train.optimizer, "sgd");
  EXPECT_EQ(arms.back().settings.at("model.parallel"), "true");
}

TEST(StudyArms, AnAxisOrAPairingTakesThePlaceOfTheSchemes) {
  EXPECT_EQ(names_of(arms_of({{"model.residual", {"rezero", "post-ln"}}})), (Names{"rezero", "post-ln"}));
  const auto arms = arms_of({{"model.heads", {"2", "4"}}}, {{"ours", {"model.residual=pre-ln", "model.norm=rmsnorm"}},
                                                            {"theirs", {"model.residual=post-ln"}}});
  EXPECT_EQ(names_of(arms), (Names{"ours, heads 2", "ours, heads 4", "theirs, heads 2", "theirs, heads 4"}));
  EXPECT_EQ(arms[0].model.norm, "rmsnorm");
  EXPECT_EQ(arms[0].settings.at("arm"), "ours");
  EXPECT_EQ(arms[2].model.norm, "layernorm");
}

TEST(StudyArms, OfTrainingAreTrainedAsTheySay) {
  const test::TemporaryDirectory folder;
  const StudyConfig study = read_study(Config::from_string(R"(
[study]
schemes = ["pre-ln"]
[[study.axis]]
key = "train.optimizer"
values = ["adam", "sgd"]
[[study.axis]]
key = "model.decoder_layers"
values = [1, 2]
[data]
pairs = 600
vocabulary = 200
[model]
d_model = 8
feed_forward = 12
heads = 2
[train]
steps = 2
warm_up = 2
validate_every = 2
batch_tokens = 128
[training]
warm_ups = [2]
learning_rates = [1e-2]
layers = [1]
)",
                                                           "study.toml"));
  const Json results = run_study(study, folder / "out");
  std::set<std::string> trained;
  std::set<double> losses;
  for (const Json& row : test::entry(results["tables"], "id", "runs")["rows"]) {
    trained.insert(row[0].get<std::string>() + " by " + row[2].get<std::string>());
    losses.insert(row[8].get<double>());
  }
  EXPECT_EQ(trained, (std::set<std::string>{"adam, decoder layers 1 by adam", "adam, decoder layers 2 by adam",
                                            "sgd, decoder layers 1 by sgd", "sgd, decoder layers 2 by sgd"}));
  EXPECT_EQ(losses.size(), 4U);  // no two arms are the same run
  // Arms that are compared are drawn together, whatever their depths and optimizers.
  ASSERT_EQ(results["figures"].size(), 1U);
  const Json& figure = results["figures"][0];
  EXPECT_EQ(figure["id"], "loss");
  EXPECT_EQ(figure["title"], "Validation loss during training");
  EXPECT_EQ(figure["series"].size(), 4U);
}

TEST(StudyArms, MistakesAreErrors) {
  const auto error = [](const std::vector<StudyAxis>& axes, const std::vector<StudyPairing>& pairings = {}) {
    return test::message_of([&] { arms_of(axes, pairings); });
  };
  EXPECT_EQ(error({{"data.pairs", {"2"}}}), "study: 'data.pairs' is not a key of [model] or [train]");
  EXPECT_CONTAINS(error({{"model.nrm", {"rmsnorm"}}}), "unknown key 'nrm'");
  EXPECT_EQ(error({{"model.norm", {"rmsnrm"}}, {"model.heads", {"2", "4"}}}),
            "[study], the arm 'post-ln, heads 2': model.norm=rmsnrm: unknown norm 'rmsnrm'");
  EXPECT_CONTAINS(error({{"model.heads", {"two"}}}), "must be a whole number, not 'two'");
  EXPECT_CONTAINS(error({{"model.norm", {"rmsnorm"}}, {"model.norm", {"layernorm"}}}), "two axes");
  EXPECT_CONTAINS(error({{"model.norm", {"rmsnorm"}}}, {{"a", {"model.norm=layernorm"}}}), "sets model.norm too");
  EXPECT_CONTAINS(error({}, {{"a", {"model.heads=2"}}, {"a", {"model.heads=4"}}}), "two arms are called");
  EXPECT_EQ(error({}, {{"a", {"model.heads=2"}}, {"", {"model.heads=4"}}}), "[[study.arm]]: an arm has no name");
  EXPECT_EQ(error({}, {{"a", {"model.heads=2", "model.heads=4"}}}), "[[study.arm]]: 'a' sets model.heads twice");
  EXPECT_EQ(error({}, {{"wide 1", {"model.heads=2"}}, {"wide-1", {"model.heads=4"}}}),
            "[study]: 'post-ln, wide 1' and 'post-ln, wide-1' would have the same files");
  EXPECT_EQ(error({{"model.layers", {"2", "6"}}}),
            "[[study.axis]]: model.layers changes nothing, since model.kind is \"encoder-decoder\"");
  EXPECT_EQ(error({{"model.kind", {"decoder"}}, {"model.encoder_layers", {"2", "6"}}}),
            "[[study.axis]]: model.encoder_layers changes nothing, since model.kind is \"decoder\"");
  EXPECT_FALSE(arms_of({{"model.kind", {"decoder", "awd-lstm"}}, {"model.layers", {"1", "2"}}}).empty());
}

}  // namespace
}  // namespace plumb
