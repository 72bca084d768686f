#include "plumb/analysis/retrieval.h"

#include <gtest/gtest.h>

#include "plumb/analysis/attention_cost.h"
#include "plumb/base/timing.h"
#include "plumb/nn/attention/dpfp.h"
#include "support/kernels.h"

namespace plumb {
namespace {

RetrievalTask task(int64_t keys, bool update) {
  RetrievalTask task;
  task.keys = keys;
  task.size = 8;
  task.update = update;
  task.steps = 150;
  task.sequences = 8;
  return task;
}

TEST(Retrieval, FewKeysAreHeldAndManyAreNot) {
  const Retrieval few = measure_retrieval("fwp-1991", {}, task(4, false), 1);
  const Retrieval many = measure_retrieval("fwp-1991", {}, task(32, false), 1);
  EXPECT_LT(few.error, 0.1);
  EXPECT_EQ(few.accuracy, 1);
  EXPECT_GT(many.error, 0.4);
  EXPECT_LT(many.accuracy, 0.95);
}

TEST(Retrieval, TheDeltaRuleUpdatesWhereTheSumRuleCannot) {
  const VariantOptions options = {{"dpfp", Options(DpfpOptions{1})}};
  EXPECT_LT(measure_retrieval("delta", options, task(4, true), 1).error, 0.1);
  EXPECT_GT(measure_retrieval("dpfp", options, task(4, true), 1).error, 0.3);
}

TEST(AttentionCost, TimesAreSecondsOfTheWorkDone) {
  const Stopwatch watch;
  const AttentionCost cost = measure_attention_cost("softmax", {}, 16, 2, 6144, 1, 1);
  const double whole = watch.seconds();
  EXPECT_GT(cost.gradient_seconds, cost.forward_seconds);  // a gradient includes a forward pass
  // Each measurement had a warm-up run and a timed run; a final forward pass measured the memory.
  EXPECT_LT(cost.forward_seconds + cost.gradient_seconds, whole);
  EXPECT_GT(cost.forward_seconds + cost.gradient_seconds, whole / 10);
  EXPECT_GT(cost.forward_seconds, 1e-3);  // 4 · 16 · 6144²/2 multiplications and additions
}

TEST(AttentionCost, EveryKindHoldsMemoryInProportionToLength) {
  PLUMB_REQUIRE_KERNELS();  // the reference softmax attention holds its full matrix
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's allocator rounds sizes up";
#endif
  for (const std::string& kind : attentions().names()) {
    const auto held = [&](int64_t length) { return measure_attention_cost(kind, {}, 16, 2, length, 1, 1).held_bytes; };
    const auto half = static_cast<double>(held(512));
    const auto whole = static_cast<double>(held(1024));
    EXPECT_GE(half, 512 * 16 * 4) << kind;  // the output at least
    EXPECT_NEAR(whole / half, 2, 0.1) << kind;
  }
  // Softmax recomputes its weights in the backward pass: it holds the output and one number per row and head.
  EXPECT_LT(measure_attention_cost("softmax", {}, 16, 2, 1024, 1, 1).held_bytes, 1024 * (16 + 2) * 4 + 4096);
}

}  // namespace
}  // namespace plumb
