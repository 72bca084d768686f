// Text that arrives token by token compared with the text of all tokens at once.
#include "plumb/decode/text_stream.h"

#include <gtest/gtest.h>

#include "plumb/base/files.h"
#include "plumb/base/random.h"
#include "plumb/base/utf8.h"
#include "plumb/text/sentencepiece/model.h"
#include "support/contains.h"
#include "support/paths.h"

namespace plumb {
namespace {

using Ids = std::vector<int32_t>;

const std::vector<std::string> kText = {"the cat sat on the mat", "the dog sees the cat and the mat",
                                        "a cat and a dog sat", "on the mat the dog sat, and sees"};

Tokenizer trained() {
  TokenizerOptions options;
  options.vocabulary = 45;
  return Tokenizer::train(kText, options);
}

/// A tokenizer that encodes text without matching pieces as bytes.
Tokenizer with_bytes(const test::TemporaryDirectory& directory) {
  std::string serialized;
  const std::string message = SentencePieceModel::train({{"model_type", "bpe"},
                                                         {"vocab_size", "300"},
                                                         {"byte_fallback", "true"},
                                                         {"pad_id", "0"},
                                                         {"bos_id", "1"},
                                                         {"eos_id", "2"},
                                                         {"unk_id", "3"},
                                                         {"hard_vocab_limit", "false"},
                                                         {"minloglevel", "3"}},
                                                        kText, serialized);
  EXPECT_EQ(message, "");
  write_file_atomic(directory / "bytes.model", serialized);
  return Tokenizer::from_file(directory / "bytes.model");
}

/// A tokenizer whose decoder replaces a whole run of invalid UTF-8 bytes, as those of Llama and Mistral do.
Tokenizer with_runs_of_bytes(const test::TemporaryDirectory& directory) {
  write_file_atomic(directory / "tokenizer.json", R"({
      "decoder": {"type": "Sequence", "decoders": [
          {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
          {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
      "model": {"type": "BPE", "unk_token": "a", "byte_fallback": true, "merges": [],
                "vocab": {"a": 0, "▁b": 1, "<0xF0>": 2, "<0x9F>": 3, "<0x98>": 4, "<0x80>": 5,
                          "<0xE6>": 6, "<0x97>": 7, "<0xA5>": 8}}})");
  return Tokenizer::from_file(directory / "tokenizer.json");
}

struct Streamed {
  std::vector<std::string> pieces;  // the result of each call, and last of `finish`
  std::string text;
  bool stopped = false;
};

Streamed stream(const Tokenizer& tokenizer, const Ids& prompt, const Ids& ids,
                const std::vector<std::string>& stop = {}) {
  TextStream stream(tokenizer, prompt, stop);
  Streamed result;
  std::string joined;
  for (const int32_t id : ids) {
    result.pieces.push_back(stream.add(id));
    joined += result.pieces.back();
    EXPECT_TRUE(is_valid_utf8(result.pieces.back()));
    EXPECT_TRUE(stream.text().starts_with(joined));
    if (stream.stopped()) break;
  }
  result.pieces.push_back(stream.finish());
  joined += result.pieces.back();
  result.text = stream.text();
  EXPECT_EQ(joined, result.text);
  result.stopped = stream.stopped();
  return result;
}

TEST(TextStream, IsTheTextBehindThePrompt) {
  const Tokenizer tokenizer = trained();
  const auto after = [&](const std::string& prompt, const std::string& text) {
    const Ids ids = tokenizer.encode(prompt);
    Ids all = tokenizer.encode(text);
    EXPECT_TRUE(std::equal(ids.begin(), ids.end(), all.begin()));
    return stream(tokenizer, ids, Ids(all.begin() + std::ssize(ids), all.end())).text;
  };
  EXPECT_EQ(after("the cat", "the cat sat on the mat"), " sat on the mat");
  EXPECT_EQ(after("", "the cat sat"), "the cat sat");
}

TEST(TextStream, OfManyTokensIsTheirWhole) {
  const Tokenizer tokenizer = trained();
  Random random(1, "text stream test");
  for (const size_t length : {0, 1, 5, 63, 64, 65, 400}) {
    Ids ids;  // including unknown tokens
    for (size_t i = 0; i < length; ++i) ids.push_back(static_cast<int32_t>(3 + random.below(42)));
    const Ids prompt(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(length / 3));
    const std::string whole = tokenizer.decode(ids);
    const std::string head = tokenizer.decode(prompt);
    EXPECT_EQ(head + stream(tokenizer, prompt, Ids(ids.begin() + std::ssize(prompt), ids.end())).text, whole) << length;
    EXPECT_EQ(stream(tokenizer, {}, ids).text, whole) << length;
  }
}

TEST(TextStream, TextComesAsSoonAsItIsCertain) {
  const Tokenizer tokenizer = trained();
  const Ids ids = tokenizer.encode("the cat sat");
  const Streamed streamed = stream(tokenizer, {}, ids);
  for (size_t i = 0; i < ids.size(); ++i) {
    const Ids so_far(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    std::string shown;
    for (size_t j = 0; j <= i; ++j) shown += streamed.pieces[j];
    EXPECT_EQ(shown, tokenizer.decode(so_far));
  }
}

TEST(TextStream, CharactersAreWhole) {
  const test::TemporaryDirectory directory;
  const Tokenizer tokenizer = with_bytes(directory);
  const std::string text = "the € cat 😀é and 日本 dog";
  const Ids ids = tokenizer.encode(text);
  ASSERT_GT(ids.size(), 20U);  // bytes
  const Streamed streamed = stream(tokenizer, {}, ids);
  EXPECT_EQ(streamed.text, text);
  for (const std::string& piece : streamed.pieces) EXPECT_LACKS(piece, "\xEF\xBF\xBD");
  for (size_t length = 0; length <= ids.size(); ++length) {  // a cut within a character shows its bytes so far
    const Ids cut(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_EQ(stream(tokenizer, {}, cut).text, tokenizer.decode(cut));
  }
  // Invalid bytes in a long text.
  Random random(2, "text stream test");
  Ids noise;
  for (int i = 0; i < 500; ++i) {
    noise.push_back(static_cast<int32_t>(4 + random.below(static_cast<uint64_t>(tokenizer.vocabulary()) - 4)));
  }
  EXPECT_EQ(stream(tokenizer, {}, noise).text, tokenizer.decode(noise));
}

TEST(TextStream, RunsOfBytesAreCharacters) {
  const test::TemporaryDirectory directory;
  const Tokenizer tokenizer = with_runs_of_bytes(directory);
  const Ids face = {2, 3, 4, 5}, sun = {6, 7, 8};
  const auto repeated = [](const Ids& ids, int times) {
    Ids result;
    for (int i = 0; i < times; ++i) result.insert(result.end(), ids.begin(), ids.end());
    return result;
  };
  for (const int times : {2, 3, 60}) {  // 60: longer than the window
    Ids ids = repeated(face, times);
    const Ids suns = repeated(sun, times);
    ids.insert(ids.end(), suns.begin(), suns.end());
    ids.push_back(1);
    EXPECT_EQ(stream(tokenizer, {}, ids).text, tokenizer.decode(ids)) << times;
    EXPECT_EQ(stream(tokenizer, suns, face).text, "😀") << times;
    EXPECT_EQ(stream(tokenizer, face, suns).text, tokenizer.decode(suns)) << times;
  }
  // A character that has been shown remains when the run ends within another one.
  EXPECT_EQ(stream(tokenizer, {}, {2, 3, 4, 5, 2, 3, 1}).text, "😀\uFFFD\uFFFD b");
  EXPECT_EQ(stream(tokenizer, {1}, {2, 3, 4, 5, 2, 3}).text, "😀\uFFFD\uFFFD");
}

TEST(TextStream, EndsOfSentencesAreLines) {
  const Tokenizer tokenizer = trained();
  Ids ids = tokenizer.encode("sat on");
  const Ids next = tokenizer.encode("the dog");
  ids.push_back(Specials().eos);
  ids.insert(ids.end(), next.begin(), next.end());
  EXPECT_EQ(stream(tokenizer, tokenizer.encode("the cat"), ids).text, " sat on\nthe dog");
  Ids prompt = tokenizer.encode("a dog");
  prompt.push_back(Specials().eos);
  EXPECT_EQ(stream(tokenizer, prompt, ids).text, "sat on\nthe dog");
  prompt.insert(prompt.end(), next.begin(), next.end());
  EXPECT_EQ(stream(tokenizer, prompt, ids).text, " sat on\nthe dog");
}

TEST(TextStream, EndsBeforeTheFirstStopString) {
  const Tokenizer tokenizer = trained();
  const Ids ids = tokenizer.encode("the cat sat on the mat, and the dog sees");
  const auto stopped_by = [&](const std::vector<std::string>& stop) {
    const Streamed streamed = stream(tokenizer, {}, ids, stop);
    return streamed.text + (streamed.stopped ? "|" : "");
  };
  EXPECT_EQ(stopped_by({"sat"}), "the cat |");
  EXPECT_EQ(stopped_by({"at s"}), "the c|");  // across a token boundary
  EXPECT_EQ(stopped_by({"dog", "mat"}), "the cat sat on the |");
  EXPECT_EQ(stopped_by({"mat", "mat, and"}), "the cat sat on the |");
  EXPECT_EQ(stopped_by({"the"}), "|");
  EXPECT_EQ(stopped_by({"bird"}), "the cat sat on the mat, and the dog sees");
  EXPECT_EQ(stopped_by({"sees!"}), "the cat sat on the mat, and the dog sees");
  EXPECT_EQ(stream(tokenizer, tokenizer.encode("the cat"), ids, {"cat the"}).text,
            " the cat sat on the mat, and the dog sees");  // the prompt is ignored
}

TEST(TextStream, HoldsBackWhatAStopStringMayBeginWith) {
  const Tokenizer tokenizer = trained();
  // A trailing "t" or "t s" is not shown until the next characters are known.
  const Streamed streamed = stream(tokenizer, {}, tokenizer.encode("the cat sat on"), {"t sees"});
  EXPECT_EQ(streamed.text, "the cat sat on");
  std::string shown;
  for (const std::string& piece : streamed.pieces) {
    shown += piece;
    const bool last = &piece == &streamed.pieces.back();
    EXPECT_FALSE(!last && (shown.ends_with("t") || shown.ends_with("t s"))) << shown;
  }
  EXPECT_EQ(stream(tokenizer, {}, tokenizer.encode("the cat"), {"t sees"}).pieces.back(), "t");
}

TEST(TextStream, IncompleteTails) {
  EXPECT_EQ(incomplete_tail(""), 0U);
  EXPECT_EQ(incomplete_tail("cat"), 0U);
  EXPECT_EQ(incomplete_tail("é"), 0U);
  EXPECT_EQ(incomplete_tail("caf\xC3"), 1U);
  EXPECT_EQ(incomplete_tail("\xE2\x82"), 2U);
  EXPECT_EQ(incomplete_tail("\xE2\x82\xAC"), 0U);
  EXPECT_EQ(incomplete_tail("x\xF0\x9F\x98"), 3U);
  EXPECT_EQ(incomplete_tail("x\xF0\x9F\x98\x80"), 0U);
  EXPECT_EQ(incomplete_tail("x\x80\x80"), 0U);      // no first byte
  EXPECT_EQ(incomplete_tail("x\xEF\xBF\xBD"), 3U);  // a replacement character
  EXPECT_EQ(incomplete_tail("\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"
                            "\xEF\xBF\xBD"),
            9U);  // no character has more than three of them
  EXPECT_EQ(incomplete_tail("\xEF\xBF\xBDx"), 0U);
}

}  // namespace
}  // namespace plumb
