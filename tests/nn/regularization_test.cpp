// The regularizers of recurrent models against their equations, with masks drawn number by number.
#include <gtest/gtest.h>

#include "plumb/nn/context.h"
#include "plumb/nn/regularization.h"
#include "support/gradcheck.h"
#include "support/reference.h"

namespace plumb {
namespace {

using testing::random_tensor;

constexpr double kDropRate = 0.3;
constexpr uint32_t kKeptBelow = 45875;  // 0.7 · 65536, rounded
constexpr double kKeptFactor = 65536.0 / kKeptBelow;
const ops::DropoutKey kMaskKey{12345, 678910};

std::vector<double> mask_of(int64_t first, int64_t count) {
  return reference::dropout_mask(kMaskKey.seed, kMaskKey.stream, kKeptBelow, first, count);
}

TEST(WeightDrop, DropsElementsOfTheMatrix) {
  const Tensor weight = random_tensor({12, 3}, 1);
  const Tensor expected = weight * at::tensor(mask_of(0, 36), at::kDouble).view({12, 3}) * kKeptFactor;
  EXPECT_TRUE(at::allclose(ops::dropout(weight, kDropRate, kMaskKey), expected, 0, 1e-14));
  EXPECT_TRUE(at::equal(ops::dropout(weight, 0, kMaskKey), weight));
}

TEST(LockedDropout, HasOneMaskForAllPositionsOfASequence) {
  const Ragged layout({3, 0, 1, 4});
  const Tensor x = random_tensor({8, 5}, 1);
  const Tensor found = locked_dropout(x, layout, kDropRate, kMaskKey);
  for (int64_t s = 0; s < layout.sequences(); ++s) {
    const Tensor mask = at::tensor(mask_of(layout.begin(s) * 5, 5), at::kDouble);
    for (int64_t t = layout.begin(s); t < layout.begin(s + 1); ++t)
      EXPECT_TRUE(at::allclose(found[t], x[t] * mask * kKeptFactor, 0, 1e-14)) << t;
  }
  EXPECT_TRUE(at::equal(locked_dropout(x, layout, 0, kMaskKey), x));
  EXPECT_EQ(locked_dropout(at::zeros({0, 5}), Ragged(), kDropRate, kMaskKey).size(0), 0);
}

TEST(LockedDropout, OfAPartIsThatPartOfTheWhole) {
  const Ragged whole({3, 2, 4, 1});
  const Tensor x = random_tensor({10, 8}, 1);
  const Tensor expected = locked_dropout(x, whole, kDropRate, kMaskKey);
  Ragged part({1, 2});  // the last sequence and the second
  part.set_origins({9, 3});
  const Tensor rows = at::tensor(std::vector<int64_t>{9, 3, 4}, at::kLong);
  EXPECT_TRUE(
      at::equal(locked_dropout(x.index_select(0, rows), part, kDropRate, kMaskKey), expected.index_select(0, rows)));
}

// Masks of a step that has more places than keys would be those of the next step.
TEST(ForwardContext, RefusesMorePlacesOfDropoutThanAStepHasMasks) {
  constexpr int64_t kPlaces = 65536;
  const Tensor x = at::ones({2, 8}, at::kDouble);
  ForwardContext step(0.5, 1, 7), next(0.5, 1, 8), without(0, 1, 7);
  for (int64_t i = 0; i + 1 < kPlaces; ++i) static_cast<void>(step.mask_key());
  const uint64_t last = step.mask_key().stream;
  EXPECT_EQ(next.mask_key().stream, last + 1);
  EXPECT_THROW(static_cast<void>(step.dropout(x)), Error);
  for (int64_t i = 0; i <= kPlaces; ++i) EXPECT_TRUE(without.dropout(x).is_same(x));
  EXPECT_EQ(without.sites(), static_cast<uint64_t>(kPlaces) + 1);
}

TEST(EmbeddingDropout, DropsAWordWhereverItOccurs) {
  const std::vector<int64_t> tokens = {4, 1, 4, 0, 6, 1, 5};
  const Tensor embedded = random_tensor({7, 3}, 1);
  const std::vector<double> words = mask_of(0, 7);
  const Tensor found = embedding_dropout(embedded, tokens, 7, kDropRate, kMaskKey);
  for (int64_t t = 0; t < 7; ++t) {
    const double factor = words[static_cast<size_t>(tokens[static_cast<size_t>(t)])] * kKeptFactor;
    EXPECT_TRUE(at::allclose(found[t], embedded[t] * factor, 0, 1e-14)) << t;
  }
}

TEST(ActivationPenalty, IsTheMeanSquare) {
  const Tensor h = random_tensor({4, 3}, 1);
  double sum = 0;
  for (int64_t i = 0; i < 12; ++i) sum += h.data_ptr<double>()[i] * h.data_ptr<double>()[i];
  EXPECT_NEAR(activation_penalty(h).item<double>(), sum / 12, 1e-14);
  EXPECT_EQ(activation_penalty(at::zeros({0, 3})).item<double>(), 0);
}

TEST(TemporalPenalty, IsTheMeanSquareOfChangesWithinSequences) {
  const Ragged layout({3, 1, 0, 2});
  const Tensor h = random_tensor({6, 4}, 1);
  const auto at = h.accessor<double, 2>();
  double sum = 0;
  for (const int64_t t : {1, 2, 5}) {
    for (int64_t j = 0; j < 4; ++j) sum += (at[t][j] - at[t - 1][j]) * (at[t][j] - at[t - 1][j]);
  }
  EXPECT_NEAR(temporal_penalty(h, layout).item<double>(), sum / 12, 1e-14);
  EXPECT_EQ(temporal_penalty(h.narrow(0, 0, 2), Ragged({1, 1})).item<double>(), 0);
}

TEST(Regularizers, HaveGradientsAndSecondOnes) {
  const Ragged layout({3, 1, 2});
  const std::vector<int64_t> tokens = {1, 0, 1, 3, 2, 0};
  testing::expect_both(
      [&](const std::vector<Tensor>& in) {
        const Tensor x = in[0] * in[0];
        return std::vector<Tensor>{ops::dropout(x, kDropRate, kMaskKey), locked_dropout(x, layout, kDropRate, kMaskKey),
                                   embedding_dropout(x, tokens, 4, kDropRate, kMaskKey), activation_penalty(x),
                                   temporal_penalty(x, layout)};
      },
      {random_tensor({6, 3}, 1)});
}

TEST(Regularizers, TakePartInTrainingStepsAlone) {
  EXPECT_TRUE(ForwardContext(0.0, 1, 1).regularizes());
  for (const Pass pass : {Pass::evaluation, Pass::training, Pass::measurement, Pass::profiling})
    EXPECT_FALSE(ForwardContext(pass).regularizes());
  ForwardContext step(0.1, 7, 3);
  const uint64_t first = step.mask_key().stream;
  EXPECT_NE(step.mask_key().stream, first);
  EXPECT_EQ(ForwardContext(0.1, 7, 3).mask_key().stream, first);
  EXPECT_NE(ForwardContext(0.1, 7, 4).mask_key().stream, first);
}

}  // namespace
}  // namespace plumb
