#include "plumb/task/datasets.h"

#include <gtest/gtest.h>

#include "support/paths.h"

namespace plumb {
namespace {

std::vector<int64_t> target_costs(const Dataset& dataset) {
  std::vector<int64_t> targets;
  for (int64_t i = 0; i < dataset.size(); ++i) targets.push_back(dataset.cost(i).target);
  return targets;
}

// Sentences of 2, 3 and 2 tokens with EOS, then of 2 and 4, in sequences of at most 5.
TEST(TextDataset, PacksSentencesOfOneCorpus) {
  const test::TemporaryDirectory folder;
  write_split(folder / "split", std::vector<std::vector<int32_t>>(5), {{5}, {5, 6}, {7}, {8}, {9, 9, 9}});
  const Split split = Split::open(folder / "split");
  const TextDataset one(split, {}, {5, false});
  EXPECT_EQ(target_costs(one), (std::vector<int64_t>{5, 4, 4}));
  EXPECT_TRUE(one.corpora().empty());
  const Split two = split.with_corpora({{"a", 3}, {"b", 2}});
  const TextDataset packed(two, {}, {5, false});
  EXPECT_EQ(target_costs(packed), (std::vector<int64_t>{5, 2, 2, 4}));
  EXPECT_EQ(packed.corpora(), (std::vector<CorpusSize>{{"a", 2}, {"b", 2}}));
  EXPECT_EQ(packed.batch(std::vector<int64_t>{1, 2}).labels, (std::vector<int64_t>{7, 2, 8, 2}));
  const TextDataset lines(two, {});
  EXPECT_EQ(lines.corpora(), (std::vector<CorpusSize>{{"a", 3}, {"b", 2}}));
  EXPECT_EQ(lines.size(), 5);
}

}  // namespace
}  // namespace plumb
