#include "plumb/analysis/retrieval.h"

#include <gtest/gtest.h>

#include "plumb/analysis/attention_cost.h"
#include "plumb/nn/attention/dpfp.h"

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

TEST(AttentionCost, MeasuresSomethingOfEveryKind) {
  for (const std::string& kind : attentions().names()) {
    const AttentionCost cost = measure_attention_cost(kind, {}, 16, 2, 256, 1, 1);
    EXPECT_GT(cost.forward_seconds, 0) << kind;
    EXPECT_GT(cost.gradient_seconds, 0) << kind;
#if !defined(__SANITIZE_ADDRESS__)  // whose allocator does not count
    EXPECT_GE(cost.held_bytes, 256 * 16 * 4) << kind;
#endif
  }
}

}  // namespace
}  // namespace plumb
