// plumb plan: a small decoder.
#include <gtest/gtest.h>

#include "plumb/base/files.h"
#include "plumb/base/json.h"
#include "support/process.h"

namespace plumb {
namespace {

/// 4 layers of width 256 and inner width 1024, 1,000 tokens: without biases and norms 12·4·256² + 256,000 parameters.
constexpr const char* kDecoder = R"([model]
kind = "decoder"
norm = "rmsnorm"
positions = "none"
attention_bias = "none"
feed_forward_bias = false
decoder_layers = 4
d_model = 256
feed_forward = 1024
heads = 4
target_vocabulary = 1000
[train]
batch_tokens = 8192
steps = 10
)";

class PlanVerb : public ::testing::Test {
 protected:
  PlanVerb() { write_file_atomic(file_, std::string(kDecoder)); }

  [[nodiscard]] test::Finished planned(std::vector<std::string> command,
                                       const std::vector<std::string>& further = {}) const {
    command.insert(command.end(), {file_.string(), "--sequence", "256", "--json", "-"});
    command.insert(command.end(), further.begin(), further.end());
    return test::run_plumb(command);
  }

  test::TemporaryDirectory folder_;
  std::filesystem::path file_ = folder_ / "decoder.toml";
};

TEST_F(PlanVerb, AStepHasAllBatchesThatItAccumulates) {
  const auto tokens = [&](const std::vector<std::string>& further) {
    const Json json = Json::parse(planned({"plan"}, further).output);
    return json["tokens"].get<double>();
  };
  EXPECT_EQ(tokens({}), 10 * 8192);
  EXPECT_EQ(tokens({"--set", "train.accumulate=4"}), 10 * 4 * 8192);
  EXPECT_EQ(tokens({"--set", "train.accumulate=4", "--batch-tokens", "16384"}), 10 * 16384);
}

TEST_F(PlanVerb, ZerosAndBatchesOfLessThanASequenceAreErrors) {
  for (const std::string option : {"--memory", "--flops", "--network", "--node-bandwidth", "--tokens"}) {
    const test::Finished finished = planned({"plan"}, {option, "0"});
    EXPECT_EQ(finished.status, 2) << option;
    EXPECT_CONTAINS(finished.errors, option + " must be greater than 0, not 0");
  }
  const test::Finished finished = planned({"plan"}, {"--batch-tokens", "100"});
  EXPECT_CONTAINS(finished.errors, "a step of 100 tokens is less than one sequence of 256");
}

TEST_F(PlanVerb, RefusesSequencesLongerThanTheLearnedPositions) {
  const std::vector<std::string> learned = {"--set", "model.positions=learned", "--set", "model.max_positions=255"};
  const test::Finished finished = planned({"plan"}, learned);
  EXPECT_EQ(finished.status, 1);
  EXPECT_CONTAINS(finished.errors, "--sequence 256: the model has only 255 positions");
  EXPECT_EQ(planned({"plan"}, {"--set", "model.positions=learned", "--set", "model.max_positions=256"}).status, 0);
  EXPECT_EQ(planned({"plan"}, {"--set", "model.max_positions=255"}).status, 0);  // its positions are not learned
}

TEST_F(PlanVerb, PlansSequencesOf2048OrAllPositionsByDefault) {
  const auto sequence = [&](std::vector<std::string> set) {
    set.insert(set.begin(), {"plan", file_.string()});
    const std::string text = test::run_plumb(set).output;
    const std::string before = "per token of a sequence of ";
    const size_t found = text.find(before);
    return found == std::string::npos ? text : text.substr(found + before.size(), 5);
  };
  EXPECT_EQ(sequence({}), "2048 ");
  EXPECT_EQ(sequence({"--set", "model.positions=learned"}), "512 i");
  EXPECT_EQ(sequence({"--set", "model.positions=learned", "--set", "model.max_positions=4096"}), "2048 ");
}

}  // namespace
}  // namespace plumb
