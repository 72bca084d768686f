// Vocabularies of whole words.
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "plumb/base/error.h"
#include "plumb/base/input.h"
#include "plumb/base/json.h"
#include "plumb/text/tokenizer.h"
#include "support/paths.h"

namespace plumb {
namespace {

using test::TemporaryDirectory;

const std::vector<std::string>& lines() {
  static const std::vector<std::string> kLines = {"the cat sat on the <unk> mat", "the dog saw  the cat\tagain ,",
                                                  " ½ cat , \u3000½ dog", "", "the <unk> sat"};
  return kLines;
}

std::vector<std::string> pieces_of(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<std::string> pieces;
  for (const int32_t id : tokenizer.encode(text)) pieces.push_back(tokenizer.piece(id));
  return pieces;
}

TEST(Words, TheMostFrequentOnesInOrder) {
  // Counts: the 5, cat 3, and 2 each, in byte order, for: , dog sat ½
  const Tokenizer tokenizer = Tokenizer::train(lines(), {.kind = "word", .vocabulary = 10});
  EXPECT_EQ(tokenizer.vocabulary(), 10);
  EXPECT_EQ(tokenizer.specials(), (Specials{0, 1, 2, 3}));
  std::vector<std::string> learned;
  for (int32_t id = 4; id < 10; ++id) learned.push_back(tokenizer.piece(id));
  EXPECT_EQ(learned, (std::vector<std::string>{"▁the", "▁cat", "▁,", "▁dog", "▁sat", "▁½"}));
  EXPECT_EQ(tokenizer.find("▁mat"), -1);
}

TEST(Words, EachWordIsOneToken) {
  const Tokenizer tokenizer = Tokenizer::train(lines(), {.kind = "word", .vocabulary = 10});
  // Adjacent unknown words remain separate tokens, and "<unk>" in a text is the unknown token itself.
  EXPECT_EQ(tokenizer.encode("the owl mat <unk> dog"), (std::vector<int32_t>{4, 3, 3, 3, 7}));
  EXPECT_EQ(pieces_of(tokenizer, "\t cat\u00a0the dogs "), (std::vector<std::string>{"▁cat", "▁the", "▁<unk>"}));
  EXPECT_TRUE(tokenizer.encode(" \t").empty());
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("the owl  sat")), "the <unk> sat");
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{1, 4, 5, 2, 0}), "the cat");
}

TEST(Words, AllOfThemIfTheVocabularyIsLargeEnough) {
  const Tokenizer tokenizer = Tokenizer::train(lines(), {.kind = "word", .vocabulary = 1000, .mask = true});
  EXPECT_EQ(tokenizer.vocabulary(), 5 + 10);  // the cat sat on mat dog saw again , ½
  EXPECT_EQ(tokenizer.specials().mask, 4);
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(" ½ cat , \u3000½ dog")), "½ cat , ½ dog");  // not normalized
}

TEST(Words, AVocabularyWithoutPlaceForOneIsRefused) {
  EXPECT_EQ(Tokenizer::train(lines(), {.kind = "word", .vocabulary = 5}).piece(4), "▁the");
  EXPECT_THROW(Tokenizer::train(lines(), {.kind = "word", .vocabulary = 5, .mask = true}), Error);
}

TEST(Words, SavedAndLoadedAgain) {
  const TemporaryDirectory directory;
  const Tokenizer tokenizer = Tokenizer::train(lines(), {.kind = "word", .vocabulary = 12, .mask = true});
  tokenizer.save(directory / "tokenizer.model");
  const Tokenizer loaded = Tokenizer::from_file(directory / "tokenizer.model");
  EXPECT_EQ(loaded.specials(), tokenizer.specials());
  EXPECT_EQ(loaded.vocabulary(), 12);
  for (const std::string& line : lines()) EXPECT_EQ(loaded.encode(line), tokenizer.encode(line)) << line;
  EXPECT_EQ(loaded.encode_as_input("the cat"), (std::vector<int32_t>{1, 5, 6}));
  Tokenizer::train(lines(), {.kind = "word", .vocabulary = 12, .mask = true}).save(directory / "again");
  EXPECT_EQ(read_file(directory / "again"), read_file(directory / "tokenizer.model"));
}

/// The exported tokenizer adds the same special tokens as Plumb, which depend on the model.
TEST(Words, ExportedWithTheEndsOfItsModel) {
  const TemporaryDirectory directory;
  const Tokenizer tokenizer = Tokenizer::train(lines(), {.kind = "word", .vocabulary = 12, .mask = true});
  const std::vector<std::pair<TextEnds, std::vector<int32_t>>> kinds = {{{.bos = true, .eos = false}, {1, 5, 6}},
                                                                        {{.bos = true, .eos = true}, {1, 5, 6, 2}},
                                                                        {{.bos = false, .eos = true}, {5, 6, 2}}};
  for (const auto& [ends, ids] : kinds) {
    tokenizer.save_as_json(directory / "tokenizer.json", ends);
    EXPECT_EQ(Tokenizer::from_file(directory / "tokenizer.json").encode_as_input("the cat"), ids);
    const Json names = Json::parse(read_file(directory / "tokenizer_config.json"));
    EXPECT_EQ(names["tokenizer_class"], "PreTrainedTokenizerFast");
    EXPECT_EQ(names["mask_token"], "<mask>");
  }
}

TEST(Words, SpecialTokensAreNotLearned) {
  const Tokenizer tokenizer = Tokenizer::train({"a </s> <s> <pad> a"}, {.kind = "word", .vocabulary = 20});
  EXPECT_EQ(tokenizer.vocabulary(), 5);
  EXPECT_EQ(tokenizer.encode("a </s>"), (std::vector<int32_t>{4, 2}));
}

/// The 33,278 entries of WikiText-2's vocabulary are the words of its training text and the end-of-line token.
TEST(Words, WikiText2) {
  PLUMB_REQUIRE_SHARED("data/wikitext-2/train.txt");
  std::istringstream text(read_file(test::shared_directory() / "data/wikitext-2/train.txt"));
  std::vector<std::string> all;
  std::map<std::string, int64_t> counts;
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    for (std::string word; words >> word;) ++counts[word];
    all.push_back(line);
  }
  const Tokenizer tokenizer = Tokenizer::train(all, {.kind = "word", .vocabulary = 100'000});
  EXPECT_EQ(tokenizer.vocabulary(), 33'278 + 2);  // with padding and BOS
  EXPECT_EQ(counts.size(), 33'277);
  EXPECT_EQ(tokenizer.piece(4), "▁the");
}

}  // namespace
}  // namespace plumb
