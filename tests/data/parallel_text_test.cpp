#include "plumb/data/parallel_text.h"

#include <gtest/gtest.h>

#include <set>

#include "plumb/base/files.h"
#include "plumb/base/text.h"
#include "support/errors.h"
#include "support/paths.h"

namespace plumb {
namespace {

class Reading : public testing::Test {
 protected:
  std::filesystem::path file(const std::string& name, const std::string& content) {
    write_file_atomic(directory_ / name, content);
    return directory_ / name;
  }
  // The message without the temporary directory.
  [[nodiscard]] std::string message(const CorpusFiles& files) const {
    std::string text = test::message_of([&] { read_parallel_text(files); });
    replace_all(text, directory_.path().string() + "/", "");
    return text;
  }
  test::TemporaryDirectory directory_;
};

TEST_F(Reading, TwoFiles) {
  const ParallelText text = read_parallel_text({file("de", " Hallo! \r\n\nGut.\n"), file("en", "Hi.\nx\nGood.")});
  EXPECT_EQ(text.sources, (std::vector<std::string>{"Hallo!", "", "Gut."}));
  EXPECT_EQ(text.targets, (std::vector<std::string>{"Hi.", "x", "Good."}));
}

TEST_F(Reading, Tsv) {
  const ParallelText text = read_parallel_text({file("t.tsv", "Hallo!\tHi.\nGut.\tGood.\tCC BY\n"), {}});
  EXPECT_EQ(text.sources, (std::vector<std::string>{"Hallo!", "Gut."}));
  EXPECT_EQ(text.targets, (std::vector<std::string>{"Hi.", "Good."}));
}

TEST_F(Reading, BadInputHasOneClearLine) {
  const auto two = file("two", "a\nb\n");
  EXPECT_EQ(message({two, file("one", "a\n")}), "two has 2 lines but one has 1");
  EXPECT_EQ(message({two, directory_ / "none"}), "none: cannot be read: No such file or directory");
  EXPECT_EQ(message({file("latin1", "a\nb\xE4r\n"), two}), "latin1:2: not valid UTF-8");
  EXPECT_EQ(message({file("t.tsv", "a\tb\n\n"), {}}), "t.tsv:2: no TAB between source and target");
  EXPECT_EQ(message({file("bad.tsv", "a\tb\nc\t\xFF\n"), {}}), "bad.tsv:2: not valid UTF-8");
  EXPECT_EQ(message({file("empty", ""), file("empty2", "")}), "empty: contains no sentences");
  EXPECT_EQ(message({two, file("blank", "\n \n")}), "blank: contains no sentences");
  EXPECT_EQ(message({file("empty.tsv", ""), {}}), "empty.tsv: contains no sentences");
}

// 600 pairs: target k with k % 5 + 1 sources.
ParallelText grouped() {
  ParallelText text;
  for (int round = 0; round < 5; ++round) {
    for (int k = 0; k < 200; ++k) {
      if (round <= k % 5)
        text.append("source " + std::to_string(k) + " " + std::to_string(round), "target " + std::to_string(k));
    }
  }
  return text;
}

TEST(HoldOut, NoTargetOnBothSides) {
  const ParallelText text = grouped();
  const auto [rest, held] = hold_out(text, 100, 1);
  EXPECT_EQ(held.size(), 100U);
  EXPECT_EQ(rest.size() + held.size(), text.size());
  const std::set<std::string> trained(rest.targets.begin(), rest.targets.end());
  for (const std::string& target : held.targets) EXPECT_EQ(trained.count(target), 0U) << target;
  // Pairs stay together: "source K N" with "target K".
  for (size_t i = 0; i < held.size(); ++i) {
    const std::string k = held.targets[i].substr(7);
    EXPECT_EQ(held.sources[i].substr(0, 7 + k.size() + 1), "source " + k + " ");
  }
}

TEST(HoldOut, AFunctionOfTheSeed) {
  EXPECT_EQ(hold_out(grouped(), 100, 1), hold_out(grouped(), 100, 1));
  EXPECT_NE(hold_out(grouped(), 100, 1).second, hold_out(grouped(), 100, 2).second);
}

TEST(HoldOut, AGroupThatDoesNotFitStays) {
  const ParallelText text{{"a", "b", "c"}, {"x", "x", "y"}};
  for (uint64_t seed = 0; seed < 8; ++seed) {
    EXPECT_EQ(hold_out(text, 1, seed).second, (ParallelText{{"c"}, {"y"}}));
  }
}

}  // namespace
}  // namespace plumb
