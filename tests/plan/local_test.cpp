// Memory and time on this machine: optimizer states compared with counted bytes, operations with those of a batch.
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <string>

#include "plumb/base/error.h"
#include "plumb/model/flops.h"
#include "plumb/model/model.h"
#include "plumb/plan/local_memory.h"
#include "plumb/plan/local_time.h"

namespace plumb::plan {
namespace {

ModelConfig tiny(const std::string& positions) {
  ModelConfig config;
  config.kind = "decoder";
  config.d_model = 32;
  config.feed_forward = 64;
  config.heads = 4;
  config.decoder_layers = 2;
  config.target_vocabulary = 100;
  config.positions = positions;
  return config;
}

TEST(LocalMemory, HoldsTheStatesOfTheOptimizers) {
  const ModelConfig config = tiny("none");
  const std::unique_ptr<Model> model = make_model(config);
  const auto parameters = static_cast<double>(model->parameters().count());
  const double counts = 8 * static_cast<double>(model->parameters().all().size());  // step counters
  EXPECT_EQ(optimizer_bytes(config, "adam", {}), 8 * parameters + counts);
  EXPECT_EQ(optimizer_bytes(config, "lion", {}), 4 * parameters);
  const LocalMemory memory = local_memory(config, {.sequences = 2, .length = 8}, {.copies = 1}, 1000);
  EXPECT_EQ(memory.weights, 4 * parameters);
  EXPECT_EQ(memory.gradients, 4 * parameters);
  EXPECT_EQ(memory.copies, 4 * parameters);
  EXPECT_EQ(memory.checkpoint, 0);
  EXPECT_EQ(memory.libraries, 1000);
}

// At the end of the forward pass, or with few tokens at the end of the backward pass.
TEST(LocalMemory, PeaksWhereMostIsHeld) {
  const ModelConfig config = tiny("none");
  const LocalMemory few = local_memory(config, {.sequences = 1, .length = 1}, {}, 0);
  const double states = few.weights + few.optimizer;
  // Besides the gradients: two tables of 100 tokens, since embedding and output share theirs, and a state.
  EXPECT_EQ(few.peak(), states + few.gradients + 4.0 * (2 * 100 + 1) * 32);
  const LocalMemory many = local_memory(config, {.sequences = 64, .length = 64}, {}, 0);
  EXPECT_EQ(many.peak(), states + many.activations.total());
  // Activations are measured anew each time, so the rest is compared on one measurement.
  LocalMemory adding = many;
  adding.adds_gradients = true;
  EXPECT_EQ(adding.peak(), many.peak() + many.gradients);
  EXPECT_TRUE(local_memory(config, {.sequences = 1, .length = 1}, {.adds_gradients = true}, 0).adds_gradients);
  LocalMemory few_adding = few;
  few_adding.adds_gradients = true;
  few_adding.activations = {};                                // the forward pass holds little
  EXPECT_EQ(few_adding.peak(), few.peak() + 4.0 * 100 * 32);  // a third table
  LocalMemory writing = many;
  writing.checkpoint = local_memory(config, {.sequences = 1, .length = 1}, {.writes_checkpoints = true}, 0).checkpoint;
  EXPECT_EQ(writing.peak(), many.peak() + states);
}

TEST(LocalMemory, OfThisProcessIsKnown) {
  const double before = resident_memory();
  EXPECT_GT(before, 1e6);
  EXPECT_GE(peak_resident_memory(), before);
}

TEST(LocalTime, CountsTheOperationsOfAStep) {
  for (const char* positions : {"none", "rotary", "transformer-xl"}) {
    ModelConfig config = tiny(positions);
    config.kv_heads = 2;
    const LocalBatch size{.sequences = 3, .length = 16};
    const LocalTime time = local_time(config, size, 2, "adam", {});
    Batch batch;
    batch.target_layout = Ragged({16, 16, 16});
    batch.target_input.resize(48);
    batch.labels.resize(48);
    const double expected = 2 * 3 * FlopCounter(*make_model(config)).forward(batch);
    EXPECT_NEAR(time.operations(), expected, 1e-9 * expected) << positions;
    EXPECT_GT(time.peak_rate, 0);
    EXPECT_GT(time.memory_rate, 0);
    EXPECT_NEAR(time.seconds(),
                std::accumulate(time.parts.begin(), time.parts.end(), 0.0,
                                [](double sum, const StepPart& part) { return sum + part.seconds; }),
                1e-12);
    for (const StepPart& part : time.parts) EXPECT_GE(part.seconds, 0) << part.name;
  }
}

TEST(LocalTime, CountsTheBytesOfAStep) {
  ModelConfig config = tiny("none");
  config.kv_heads = 2;
  const LocalTime time = local_time(config, {.sequences = 3, .length = 16}, 2, "adam", {});
  std::map<std::string, double> bytes;
  for (const StepPart& part : time.parts) bytes[part.name] = part.bytes;
  // Two passes of 48 tokens through two layers; four bytes; forward, and backward for both factors.
  const double of_products = 2 * 2 * 4 * 3;
  EXPECT_EQ(bytes["projections"], of_products * (48 * (32 + 64) + 32 * 64 + 48 * (32 + 32) + 32 * 32));
  EXPECT_EQ(bytes["feed-forward"], of_products * 2 * (48 * (32 + 64) + 32 * 64));
  // Queries and results are 32 wide, keys and values 16. Forward q, k, v → o; backward q, k, v, o, do → dq, dk, dv.
  EXPECT_EQ(bytes["attention"], 2 * 2 * 4 * 48 * ((32 + 2 * 16 + 32) + (3 * 32 + 2 * 16 + 32 + 2 * 16)));
  EXPECT_EQ(bytes["norms"], 2 * 2 * 2 * 4 * 48 * 9 * 32);
  EXPECT_EQ(bytes["cross-entropy"], 2 * 4 * 3 * (48 + 100) * 32);
  // Per parameter, the gradient twice, and the value and two moments read and written.
  const auto parameters = static_cast<double>(make_model(config)->parameters().count());
  EXPECT_NEAR(bytes["optimizer"], 4 * (2 + 2 * 3) * parameters, 1e-2 * bytes["optimizer"]);
}

TEST(LocalTime, NamesTheLimitThatBinds) {
  LocalTime time;
  time.peak_rate = 100;
  time.memory_rate = 10;
  EXPECT_TRUE(time.is_bound_by_memory({"a", 2, 50, 10}));
  EXPECT_DOUBLE_EQ(time.share({"a", 2, 50, 10}), 0.5);
  EXPECT_FALSE(time.is_bound_by_memory({"b", 4, 300, 10}));
  EXPECT_DOUBLE_EQ(time.share({"b", 4, 300, 10}), 0.75);
}

TEST(LocalTime, OfOtherModelsIsAnError) {
  ModelConfig config = tiny("none");
  config.kind = "encoder";
  EXPECT_THROW(local_time(config, {}, 1, "adam", {}), Error);
}

}  // namespace
}  // namespace plumb::plan
