// Text after prompts: encoding, spacing, stop strings, and calls of hooks.
#include "plumb/decode/generate_text.h"

#include <gtest/gtest.h>

#include <map>

#include "decode/random_model.h"
#include "plumb/base/error.h"
#include "support/small_tokenizer.h"

namespace plumb {
namespace {

using test::RandomModel;
using Ids = std::vector<int32_t>;

/// The text of ids, with EOS as the end of a line.
std::string text_of(const Tokenizer& tokenizer, const Ids& ids) {
  std::string text;
  Ids line;
  for (const int32_t id : ids) {
    if (id == Specials().eos) {
      text += tokenizer.decode(line) + '\n';
      line.clear();
    } else {
      line.push_back(id);
    }
  }
  return text + tokenizer.decode(line);
}

TEST(GenerateText, IsTheTextOfTheIdsBehindThePrompt) {
  const Tokenizer tokenizer = test::small_tokenizer();
  RandomModel model(1, tokenizer.vocabulary());
  model.eos = 1;
  GenerateOptions options;
  options.samples = 3;
  options.max_tokens = 30;
  options.lines = 2;
  const std::vector<std::string> prompts = {"the cat", "", "  a dog\n\nthe mat \n"};
  const std::vector<GeneratedText> found = generate_text(model, tokenizer, prompts, options);
  std::vector<Ids> ids;
  for (const std::string& prompt : prompts) ids.push_back(encode_prompt(tokenizer, prompt));
  Ids lines = tokenizer.encode("a dog");
  lines.push_back(Specials().eos);
  for (const int32_t id : tokenizer.encode("the mat")) lines.push_back(id);
  EXPECT_EQ(ids, (std::vector<Ids>{tokenizer.encode("the cat"), {}, lines}));
  const std::vector<Generated> expected = generate(model, ids, options);
  ASSERT_EQ(found.size(), 9U);
  for (size_t i = 0; i < 9; ++i) {
    EXPECT_EQ(found[i].ids, expected[i].ids);
    EXPECT_EQ(found[i].finish, expected[i].finish);
    EXPECT_EQ(found[i].log_probability, expected[i].log_probability);
    Ids all = ids[i / 3];
    all.insert(all.end(), found[i].ids.begin(), found[i].ids.end());
    EXPECT_EQ(text_of(tokenizer, ids[i / 3]) + found[i].text, text_of(tokenizer, all));
  }
}

TEST(GenerateText, StopsBeforeAStopString) {
  const Tokenizer tokenizer = test::small_tokenizer();
  RandomModel model(2, tokenizer.vocabulary());
  model.eos = -100;
  GenerateOptions options;
  options.samples = 6;
  options.max_tokens = 40;
  options.batch_rows = 4;
  const std::vector<GeneratedText> free = generate_text(model, tokenizer, {"the", "a cat"}, options);
  const std::vector<std::string> stop = {"t", "og"};
  std::map<std::pair<size_t, size_t>, std::string> shown;
  std::map<std::pair<size_t, size_t>, int> ended;
  GenerateTextHooks hooks;
  hooks.text = [&](size_t prompt, size_t sample, std::string_view text) {
    EXPECT_FALSE(text.empty());
    EXPECT_EQ(ended.count({prompt, sample}), 0U);
    shown[{prompt, sample}] += text;
  };
  hooks.end = [&](size_t prompt, size_t sample) { ++ended[{prompt, sample}]; };
  const std::vector<GeneratedText> found = generate_text(model, tokenizer, {"the", "a cat"}, options, stop, hooks);
  int stopped = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const size_t place = std::min(free[i].text.find('t'), free[i].text.find("og"));
    EXPECT_EQ(found[i].text, free[i].text.substr(0, place));
    EXPECT_EQ(found[i].finish, place == std::string::npos ? Finish::length : Finish::stop);
    EXPECT_TRUE(std::equal(found[i].ids.begin(), found[i].ids.end(), free[i].ids.begin()));
    const std::pair<size_t, size_t> key(i / 6, i % 6);
    EXPECT_EQ(shown[key], found[i].text);
    EXPECT_EQ(ended[key], 1);
    stopped += found[i].finish == Finish::stop ? 1 : 0;
  }
  EXPECT_GT(stopped, 3);
}

/// A model of whole texts may have more tokens than the tokenizer; it never generates the extra ones.
TEST(GenerateText, WholeTexts) {
  const Tokenizer tokenizer = test::small_tokenizer();
  RandomModel model(4, tokenizer.vocabulary() + 3);
  GenerateOptions options;
  options.whole_texts = true;
  options.samples = 4;
  EXPECT_EQ(encode_whole_prompt(tokenizer, "the"), tokenizer.encode("the"));
  EXPECT_EQ(encode_whole_prompt(tokenizer, ""), (std::vector<int32_t>{tokenizer.specials().bos}));
  for (const GeneratedText& text : generate_text(model, tokenizer, {"the", ""}, options)) {
    for (const int32_t id : text.ids) EXPECT_LT(id, tokenizer.vocabulary());
  }
  RandomModel smaller(4, tokenizer.vocabulary() - 1);
  EXPECT_THROW(generate_text(smaller, tokenizer, {"the"}, options), Error);
}

TEST(GenerateText, RefusesWhatDoesNotFit) {
  const Tokenizer tokenizer = test::small_tokenizer();
  RandomModel other(3, tokenizer.vocabulary() + 1);
  EXPECT_THROW(generate_text(other, tokenizer, {"the"}, {}), Error);
  RandomModel model(3, tokenizer.vocabulary());
  EXPECT_THROW(generate_text(model, tokenizer, {"the"}, {}, {"cat", ""}), Error);
  GenerateOptions options;
  options.samples = 0;
  EXPECT_THROW(generate_text(model, tokenizer, {"the"}, options), Error);
}

}  // namespace
}  // namespace plumb
