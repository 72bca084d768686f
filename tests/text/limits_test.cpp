// Tokenizers that others made are used in bounded time and memory, or refused.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <ctime>

#include "plumb/base/base64.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/json.h"
#include "plumb/text/tokenizer_model.h"
#include "support/errors.h"
#include "support/paths.h"

namespace plumb {
namespace {

/// Far more than any of these tests takes, and less than they took without limits.
class LimitedTime {
 public:
  ~LimitedTime() { EXPECT_LT(std::clock() - begin_, 60 * CLOCKS_PER_SEC); }

 private:
  std::clock_t begin_ = std::clock();
};

std::shared_ptr<const TokenizerModel> tokenizer_of(const Json& document) {
  const test::TemporaryDirectory directory;
  write_json(directory / "tokenizer.json", document);
  return load_tokenizer_model(directory / "tokenizer.json");
}

Json word_model() { return {{"type", "WordLevel"}, {"unk_token", "a"}, {"vocab", {{"a", 0}}}}; }

Json split_at(const std::string& expression) {
  return {{"pre_tokenizer",
           {{"type", "Split"}, {"pattern", {{"Regex", expression}}}, {"behavior", "Isolated"}, {"invert", false}}},
          {"model", word_model()}};
}

std::string refusal(const Json& document, const std::string& text) {
  return test::message_of([&] { (void)tokenizer_of(document)->encode(text); });
}

TEST(TokenizerLimits, AnExpressionTakesSoManySteps) {
  const LimitedTime limited;
  // The steps double with every letter; in the second, every match takes many, but no more than one may.
  for (const char* expression : {"(?:a|a){1,21}b", "(?:(?:a|a){1,17}b|a)"})
    EXPECT_CONTAINS(refusal(split_at(expression), std::string(2000, 'a')), "retry-limit-in-search over") << expression;
  EXPECT_EQ(refusal(split_at("(?:a|a){1,8}b"), std::string(2000, 'a')), "accepted");
  // One step back per space, and one match that takes all of them.
  EXPECT_EQ(tokenizer_of(split_at(R"(\s*[\r\n]+|\s+(?!\S)|\s+)"))->encode(std::string(1'000'000, ' ') + "b").size(),
            3U);
}

TEST(TokenizerLimits, AnExpressionTakesSoMuchMemory) {
  const LimitedTime limited;
  // Each letter adds five places to step back to.
  const std::string expression = "(?:a(?:|x)(?:|x)(?:|x)(?:|x)(?:|x))*c|.";
  EXPECT_CONTAINS(refusal(split_at(expression), std::string(3'000'000, 'a') + "bc"), "match-stack limit over");
}

TEST(TokenizerLimits, ATokenHasAtMost1024Bytes) {
  const auto of_words = [](const char* type, size_t bytes) {
    Json model = {{"type", type}, {"unk_token", "a"}, {"vocab", {{"a", 0}}}};
    model["vocab"][std::string(bytes, 'l')] = 1;
    return Json{{"model", model}};
  };
  const auto unigram = [](size_t bytes) {
    const Json vocabulary = Json::array({Json::array({"a", -1.0}), Json::array({std::string(bytes, 'l'), -2.0})});
    return Json{{"model", {{"type", "Unigram"}, {"unk_id", 0}, {"vocab", vocabulary}}}};
  };
  const auto added = [](size_t bytes) {
    const Json token = {{"id", 1}, {"content", std::string(bytes, 'l')}};
    return Json{{"added_tokens", Json::array({token})}, {"model", word_model()}};
  };
  const std::string message = "a token has 1025 bytes; at most 1024 are supported";
  EXPECT_EQ(refusal(of_words("WordPiece", 1024), "a"), "accepted");
  EXPECT_CONTAINS(refusal(of_words("WordPiece", 1025), "a"), message);
  EXPECT_EQ(refusal(of_words("WordLevel", 1025), "a"), "accepted");  // looked up as a whole
  EXPECT_EQ(refusal(unigram(1024), "a"), "accepted");
  EXPECT_CONTAINS(refusal(unigram(1025), "a"), message);
  EXPECT_EQ(refusal(added(1024), "a"), "accepted");
  EXPECT_CONTAINS(refusal(added(1025), "a"), message);
}

/// A compiled rule of SentencePiece that replaces "a".
Json precompiled(const std::string& by) {
  // A double array: "a" leads from the root, 0, to 256 ^ 'a', and from there to its value, 0, the place of `by`.
  std::vector<uint32_t> units(512, 0);
  constexpr uint32_t kLetter = 'a', kOffset = 256, kHasLeaf = 1U << 8;
  units[0] = kOffset << 10;
  units[kOffset ^ kLetter] = 1U << 10 | kHasLeaf | kLetter;
  const auto size = static_cast<uint32_t>(units.size() * sizeof units[0]);
  std::string bytes(sizeof size + size, '\0');
  std::memcpy(bytes.data(), &size, sizeof size);
  std::memcpy(bytes.data() + sizeof size, units.data(), size);
  return {{"type", "Precompiled"}, {"precompiled_charsmap", base64_of(bytes + by + '\0')}};
}

TEST(TokenizerLimits, ATextGrowsSoFar) {
  const LimitedTime limited;
  const auto with = [](const Json& normalizer) { return Json{{"normalizer", normalizer}, {"model", word_model()}}; };
  const auto prepend = [](size_t bytes) { return Json{{"type", "Prepend"}, {"prepend", std::string(bytes, 'p')}}; };
  EXPECT_EQ(refusal(with(prepend(16383)), "a"), "accepted");
  EXPECT_CONTAINS(refusal(with(prepend(16384)), "a"), "expands a text of 1 bytes beyond 16384 bytes");
  EXPECT_EQ(refusal(with(precompiled("bb")), "aaaa"), "accepted");
  EXPECT_CONTAINS(refusal(with(precompiled(std::string(100, 'b'))), std::string(1200, 'a')),
                  "expands a text of 1200 bytes beyond 19200 bytes");
  // Each part between two added tokens gets a prefix.
  Json parts = with(prepend(10'000));
  parts["added_tokens"] = Json::array({{{"id", 1}, {"content", "-"}, {"normalized", false}}});
  std::string text = "a";
  for (int i = 0; i < 1000; ++i) text += "-a";
  EXPECT_CONTAINS(refusal(parts, text), "expands a text of 2001 bytes beyond 32016 bytes");
  // Each of several replacements by itself would be harmless.
  const Json twelve = {{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aaaaaaaaaaaa"}};
  const Json nested = {{"type", "Sequence"}, {"normalizers", std::vector<Json>(3, twelve)}};
  EXPECT_EQ(refusal(with(nested), "a"), "accepted");
  EXPECT_CONTAINS(refusal(with({{"type", "Sequence"}, {"normalizers", {nested, twelve}}}), "a"),
                  "expands a text of 1 bytes beyond 16384 bytes");
}

TEST(TokenizerLimits, WhiteSpaceBetweenAddedTokensIsLookedAtOnce) {
  constexpr size_t kSpaces = 300'000;
  const LimitedTime limited;
  for (const bool left : {false, true}) {
    const Json token = {{"id", 1}, {"content", " "}, {"lstrip", left}, {"rstrip", !left}, {"normalized", false}};
    const auto tokenizer = tokenizer_of({{"added_tokens", Json::array({token})}, {"model", word_model()}});
    // Those that take white space on their right take what others have taken, too, as in `tokenizers`.
    EXPECT_EQ(tokenizer->encode("a" + std::string(kSpaces, ' ')), [&] {
      std::vector<int32_t> ids(kSpaces + 1, 1);
      ids[0] = 0;
      return ids;
    }());
  }
}

TEST(TokenizerLimits, ManyNamedTokensAreLookedUpOnce) {
  const LimitedTime limited;
  const test::TemporaryDirectory directory;
  Json document = {{"added_tokens", Json::array()}, {"model", word_model()}}, named = Json::object();
  constexpr int kTokens = 20'000;
  for (int i = 0; i < kTokens; ++i) {
    const std::string name = "<token of some length, with the number " + std::to_string(i) + ">";
    document["added_tokens"].push_back({{"id", i + 1}, {"content", name}, {"special", false}});
    named["key " + std::to_string(i)] = name;
  }
  write_json(directory / "tokenizer.json", document);
  write_json(directory / "tokenizer_config.json", {{"extra_special_tokens", named}});
  const auto tokenizer = load_tokenizer_model(directory.path());
  EXPECT_EQ(tokenizer->vocabulary(), kTokens + 1);
  EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{kTokens, 0}), "a");  // it became special
}

TEST(TokenizerLimits, ATokenizerIsAFile) {
  const test::TemporaryDirectory directory;
  ASSERT_EQ(::mkfifo((directory / "pipe").c_str(), 0600), 0);
  EXPECT_CONTAINS(test::message_of([&] { load_tokenizer_model(directory / "pipe"); }), "is a pipe");
  EXPECT_CONTAINS(test::message_of([] { load_tokenizer_model("/dev/zero"); }), "is a device");
  // Beside merges, a pipe in place of the vocabulary.
  write_file_atomic(directory / "merges.txt", "#version: 0.2\n");
  ASSERT_EQ(::mkfifo((directory / "vocab.json").c_str(), 0600), 0);
  EXPECT_CONTAINS(test::message_of([&] { load_tokenizer_model(directory / "merges.txt"); }), "vocab.json: is a pipe");
}

}  // namespace
}  // namespace plumb
