// What each process of a mesh holds, against formulas. tests/train compares it with processes that train.
#include "plumb/plan/mesh_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plumb/divided/pipeline_schedule.h"

namespace plumb::plan {
namespace {

constexpr int64_t kWidth = 12, kInner = 20, kVocabulary = 30, kLayers = 6;

ModelConfig decoder() {
  ModelConfig config;
  config.kind = "decoder";
  config.norm = "rmsnorm";
  config.residual = "pre-ln";
  config.positions = "rotary";
  config.attention_bias = "none";
  config.feed_forward_bias = false;
  config.share_embeddings = "none";
  config.output_bias = false;
  config.decoder_layers = kLayers;
  config.d_model = kWidth;
  config.feed_forward = kInner;
  config.heads = 4;
  config.target_vocabulary = kVocabulary;
  return config;
}

const TrainingJob kJob{.sequence = 8, .batch_tokens = 8 * 24, .precision = Precision::float32};

/// A layer's matrices on one of `tensor` processes, and its norms, which are whole.
int64_t layer(int64_t tensor) { return (4 * kWidth * kWidth + 2 * kWidth * kInner) / tensor + 2 * kWidth; }

TEST(RankKinds, HoldTheirStagesAndTheirPartOfEveryLayer) {
  const auto kinds = rank_kinds(decoder(), kJob, {.data = 4, .tensor = 2, .pipeline = 3});
  ASSERT_EQ(kinds.size(), 3U);
  const int64_t table = kWidth * kVocabulary / 2;
  const int64_t expected[] = {2 * layer(2) + table, 2 * layer(2), 2 * layer(2) + kWidth + table};
  for (size_t stage = 0; stage < 3; ++stage) {
    EXPECT_EQ(kinds[stage].first_stage, static_cast<int64_t>(stage));
    EXPECT_EQ(kinds[stage].parameters, expected[stage]) << stage;
    EXPECT_EQ(kinds[stage].layers, 2);
    EXPECT_EQ(kinds[stage].ranks, 8);
    int64_t held = 0;
    for (const HeldParameter& each : kinds[stage].held) {
      int64_t elements = each.count;
      for (const int64_t size : each.shape) elements *= size;
      held += elements;
    }
    EXPECT_EQ(held, expected[stage]) << stage;
  }
}

TEST(RankKinds, OfStagesThatDoNotDivideTheLayers) {
  ModelConfig config = decoder();
  config.decoder_layers = 5;
  int64_t layers = 0, ranks = 0;
  for (const RankKind& kind : rank_kinds(config, kJob, {.data = 2, .pipeline = 3})) {
    layers += kind.layers * (kind.last_stage - kind.first_stage + 1);
    ranks += kind.ranks;
  }
  EXPECT_EQ(layers, 5);
  EXPECT_EQ(ranks, 6);
}

TEST(RankKinds, HaveTheMemoryAndTheMessagesOfThePlan) {
  const Layout layout{.data = 4, .tensor = 2, .pipeline = 6, .zero = 1};
  const auto kinds = rank_kinds(decoder(), kJob, layout);
  ASSERT_EQ(kinds.size(), 3U);  // the first, those in between, and the last
  EXPECT_EQ(kinds[1].first_stage, 1);
  EXPECT_EQ(kinds[1].last_stage, 4);
  EXPECT_EQ(kinds[1].ranks, 4 * 4 * 2);
  for (const RankKind& kind : kinds) {
    const auto parameters = static_cast<double>(kind.parameters);
    EXPECT_DOUBLE_EQ(kind.memory.weights, 4 * parameters);
    EXPECT_DOUBLE_EQ(kind.memory.gradients, 4 * parameters);
    EXPECT_DOUBLE_EQ(kind.memory.optimizer, 8 * parameters / 4);
    EXPECT_EQ(kind.messages.micro_batches, 6);  // of 24 sequences over 4
    // Two sums forward and two backward in a layer; one for the embedding or the output.
    const int64_t sums = kind.first_stage == 1 ? 4 : 5;
    EXPECT_EQ(kind.messages.tensor, 6 * sums);
    EXPECT_DOUBLE_EQ(kind.messages.tensor_bytes, static_cast<double>(6 * sums) * (4 * 8 * kWidth));
    EXPECT_DOUBLE_EQ(kind.messages.data_bytes, 2 * 0.75 * 4 * parameters);
  }
  const double activations = activation_bytes(cost_of(decoder()), 8, 1, 2, Recompute::none, 4);
  EXPECT_DOUBLE_EQ(kinds[0].memory.activations, 6 * activations);
  EXPECT_DOUBLE_EQ(kinds[1].memory.activations, 5 * activations);
  EXPECT_DOUBLE_EQ(kinds[2].memory.activations, activations + 8 * (2 * 4 * kWidth + 4 * kVocabulary) / 2.0);
  EXPECT_EQ(kinds[0].messages.pipeline, 6);
  EXPECT_EQ(kinds[1].messages.pipeline, 12);
  EXPECT_EQ(kinds[2].messages.pipeline, 6);
}

/// The most forward passes without their backward pass that a stage of this schedule has done at once.
int64_t held_by(const PipelineSchedule& schedule, int64_t stage) {
  int64_t held = 0, most = 0;
  for (const StageTask& task : schedule.tasks[static_cast<size_t>(stage)]) {
    held += task.pass == StageTask::Pass::forward ? 1 : -1;
    most = std::max(most, held);
  }
  return most;
}

TEST(RankKinds, HoldTheActivationsThatTheScheduleHolds) {
  ModelConfig config = decoder();
  config.decoder_layers = 12;
  const double layer = activation_bytes(cost_of(config), 8, 1, 1, Recompute::none, 4);
  struct Case {
    int64_t stages, chunks;
    bool gpipe = false;
  };
  for (const auto& [stages, chunks, gpipe] : {Case{3, 1}, {3, 2}, {2, 3}, {3, 4}, {4, 3}, {3, 1, true}}) {
    const int64_t micro_batches = 12;  // a multiple of the stages
    const TrainingJob job{.sequence = 8, .batch_tokens = 8 * micro_batches, .precision = Precision::float32};
    const auto kinds = rank_kinds(config, job, {.pipeline = stages, .chunks = chunks, .gpipe = gpipe});
    const PipelineSchedule schedule = make_pipeline_schedule(gpipe ? "gpipe" : "1f1b", stages, chunks, micro_batches);
    const RankKind& first = kinds.front();
    EXPECT_EQ(first.layers, 12 / stages);
    EXPECT_DOUBLE_EQ(first.memory.activations,
                     static_cast<double>(held_by(schedule, 0) * first.layers) / static_cast<double>(chunks) * layer)
        << stages << " stages of " << chunks;
    // What each stage sends: forward from all parts but the last, backward from all but the first.
    int64_t sent = 0;
    for (const RankKind& kind : kinds) sent += kind.messages.pipeline * (kind.last_stage - kind.first_stage + 1);
    EXPECT_EQ(sent, 2 * (stages * chunks - 1) * micro_batches);
  }
}

// An encoder-decoder's decoder has three sub-layers in a layer, its encoder two; the gradients of the encoder's output
// are summed in every layer of the decoder, and there are two embeddings.
TEST(RankKinds, SumOncePerSubLayerAndPass) {
  ModelConfig config = decoder();
  config.kind = "encoder-decoder";
  config.encoder_layers = 6;
  config.source_vocabulary = kVocabulary;
  const auto kinds = rank_kinds(config, kJob, {.tensor = 2});
  ASSERT_EQ(kinds.size(), 1U);
  EXPECT_EQ(kinds[0].messages.tensor, 24 * (2 * (6 * 3 + 6 * 2) + 6 + 2 + 1));
}

// Rajbhandari et al. 2020: with ZeRO 3, each has its share; and beside it what is whole at once: a layer's weights and
// what it receives of them; gradients of the layer that is computed, of one that is exchanged, and what it receives.
TEST(RankKinds, KeepPiecesAndWhatIsWholeAtOnce) {
  const auto kinds = rank_kinds(decoder(), kJob, {.data = 4, .zero = 3});
  ASSERT_EQ(kinds.size(), 1U);
  const int64_t outside = 2 * kWidth * kVocabulary + kWidth;
  const int64_t all = kLayers * layer(1) + outside;
  EXPECT_EQ(kinds[0].parameters, all);
  EXPECT_DOUBLE_EQ(kinds[0].memory.weights,
                   static_cast<double>(all + 4 * (2 * layer(1) + outside)));  // 4 bytes, over 4
  EXPECT_DOUBLE_EQ(kinds[0].memory.gradients,
                   static_cast<double>(all + 4 * (std::max(3 * layer(1), layer(1) + outside) + outside)));
  EXPECT_DOUBLE_EQ(kinds[0].memory.optimizer, 2 * static_cast<double>(all));
  // Nothing is cut in a group of one.
  const auto alone = rank_kinds(decoder(), kJob, {.zero = 3});
  EXPECT_DOUBLE_EQ(alone[0].memory.weights, 4 * static_cast<double>(all));
  EXPECT_DOUBLE_EQ(alone[0].memory.gradients, 4 * static_cast<double>(all));
}

}  // namespace
}  // namespace plumb::plan
