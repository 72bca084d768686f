// plumb plan --here and plumb bench plan: a small decoder on this machine.
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

class PlanHere : public ::testing::Test {
 protected:
  PlanHere() { write_file_atomic(file_, std::string(kDecoder)); }

  [[nodiscard]] test::Finished planned(std::vector<std::string> command,
                                       const std::vector<std::string>& further = {}) const {
    command.insert(command.end(), {file_.string(), "--sequence", "256", "--json", "-"});
    command.insert(command.end(), further.begin(), further.end());
    return test::run_plumb(command);
  }

  test::TemporaryDirectory folder_;
  std::filesystem::path file_ = folder_ / "decoder.toml";
};

TEST_F(PlanHere, HasMemoryByPartAndTimeByKindOfWork) {
  const Json json = Json::parse(test::succeeded(planned({"plan", "--here"})).output);
  EXPECT_EQ(json["tokens_at_once"], 8192);
  EXPECT_EQ(json["batches_per_step"], 1);
  constexpr double kParameters = 12.0 * 4 * 256 * 256 + 256 * 1000 + 9 * 256;  // with the gains of the norms
  EXPECT_EQ(json["memory"]["weights"], 4 * kParameters);
  EXPECT_NEAR(json["memory"]["optimizer"].get<double>(), 8 * kParameters, 1000);
  EXPECT_EQ(json["memory"]["checkpoint"], 0);  // the only one is at the end
  double sum = 0;
  for (const Json& part : json["step"]["parts"]) sum += part["seconds"].get<double>();
  EXPECT_NEAR(json["step"]["seconds"].get<double>(), sum, 1e-9 * sum);
  const Json parts = Json::parse(planned({"plan", "--here"}, {"--set", "train.micro_batch_tokens=2048"}).output);
  EXPECT_EQ(parts["tokens_at_once"], 2048);
  EXPECT_EQ(parts["batches_per_step"], 4);
}

TEST_F(PlanHere, AStepHasAllBatchesThatItAccumulates) {
  const auto tokens = [&](const std::vector<std::string>& further) {
    const Json json = Json::parse(planned({"plan"}, further).output);
    return json["tokens"].get<double>();
  };
  EXPECT_EQ(tokens({}), 10 * 8192);
  EXPECT_EQ(tokens({"--set", "train.accumulate=4"}), 10 * 4 * 8192);
  EXPECT_EQ(tokens({"--set", "train.accumulate=4", "--batch-tokens", "16384"}), 10 * 16384);
}

TEST_F(PlanHere, ZerosAndBatchesOfLessThanASequenceAreErrors) {
  for (const std::string option : {"--memory", "--flops", "--network", "--node-bandwidth", "--tokens"}) {
    const test::Finished finished = planned({"plan"}, {option, "0"});
    EXPECT_EQ(finished.status, 2) << option;
    EXPECT_CONTAINS(finished.errors, option + " must be greater than 0, not 0");
  }
  const test::Finished finished = planned({"plan"}, {"--batch-tokens", "100"});
  EXPECT_CONTAINS(finished.errors, "a step of 100 tokens is less than one sequence of 256");
}

TEST_F(PlanHere, RefusesSequencesLongerThanTheLearnedPositions) {
  const std::vector<std::string> learned = {"--set", "model.positions=learned", "--set", "model.max_positions=255"};
  const std::vector<std::vector<std::string>> commands = {{"plan"}, {"plan", "--here"}, {"bench", "plan"}};
  for (const std::vector<std::string>& command : commands) {
    const test::Finished finished = planned(command, learned);
    EXPECT_EQ(finished.status, 1);
    EXPECT_CONTAINS(finished.errors, "--sequence 256: the model has only 255 positions");
  }
  EXPECT_EQ(planned({"plan"}, {"--set", "model.positions=learned", "--set", "model.max_positions=256"}).status, 0);
  EXPECT_EQ(planned({"plan"}, {"--set", "model.max_positions=255"}).status, 0);  // its positions are not learned
}

TEST_F(PlanHere, PlansSequencesOf2048OrAllPositionsByDefault) {
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

TEST_F(PlanHere, RefusesSeveralProcesses) {
  const test::Finished finished = planned({"plan", "--here"}, {"--set", "train.processes=2"});
  EXPECT_EQ(finished.status, 1);
  EXPECT_CONTAINS(finished.errors, "only one process is planned here");
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they change memory use
TEST_F(PlanHere, PredictsTheMemoryOfSteps) {
  const Json json = Json::parse(test::succeeded(planned({"bench", "plan"}, {"--runs", "1"})).output);
  EXPECT_GT(json["peak_memory_bytes"].get<double>(), 4e8);  // activations above all
  EXPECT_NEAR(json["memory_ratio"].get<double>(), 1, 0.15);
  EXPECT_GT(json["time_ratio"].get<double>(), 0);
}
#endif

}  // namespace
}  // namespace plumb
