// plumb generate, from text in one language and a trained run to more text.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "plumb/base/files.h"
#include "plumb/base/json.h"
#include "plumb/data/directory.h"
#include "support/shared_folder.h"

namespace plumb {
namespace {

using test::Finished;
using test::run_plumb;

class GenerateVerb : public test::SharedFolder<GenerateVerb> {
 protected:
  static void SetUpTestSuite() {
    folder_.emplace();
    std::string text;
    for (int i = 0; i < 200; ++i) {
      text += fmt::format("the {} {} the {} on the {}\n", i % 3 == 0 ? "cat" : "dog", i % 5 == 0 ? "saw" : "met",
                          i % 2 == 0 ? "bird" : "cow", i % 7 == 0 ? "roof" : "mat");
    }
    write_file_atomic(*folder_ / "text", text);
    ASSERT_EQ(run_plumb({"data", "text", "--train", path("text"), "--block", "24", "--vocabulary", "40", "--out",
                         path("data"), "-q"})
                  .status,
              0);
    test::succeeded(
        run_plumb(test::with_keys({"train", "--data", path("data"), "--out", path("run"), "-q"},
                                  {"model.kind=decoder", "model.d_model=16", "model.heads=2", "model.feed_forward=32",
                                   "model.decoder_layers=1", "train.warm_up=0", "train.learning_rate=0.01",
                                   "train.schedule=constant", "train.steps=60", "train.checkpoint_every=30"})));
  }

  static Finished generate(const std::vector<std::string>& options, const std::string& run = "run") {
    return run_plumb(test::with({"generate", path(run), "-q"}, options));
  }

  /// The samples in the --json output.
  static Json samples(std::vector<std::string> options) {
    options.insert(options.end(), {"--json", path("samples.json")});
    const Finished finished = test::succeeded(generate(options));
    EXPECT_EQ(finished.output, "");
    return read_json(path("samples.json")).at("samples");
  }

  /// Runs the verb with `input` as standard input.
  static Finished piped(const std::string& input, const std::string& options) {
    write_file_atomic(*folder_ / "input", input);
    return test::run_plumb_on(fmt::format("generate '{}' -q {}", path("run"), options), path("input"));
  }
};

TEST_F(GenerateVerb, WritesSamplesAsJson) {
  const Json found = samples({"--prompt", "the cat", "--samples", "3", "--max-tokens", "20", "--lines", "2"});
  const DataDirectory data = DataDirectory::open(path("data"));
  ASSERT_EQ(found.size(), 3U);
  std::set<std::string> texts;
  for (const Json& sample : found) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : sample.items()) keys.push_back(key);
    EXPECT_EQ(keys, (std::vector<std::string>{"prompt", "text", "tokens", "finish", "log_probability"}));
    EXPECT_EQ(sample["prompt"], "the cat");
    const std::vector<int32_t> tokens = sample["tokens"];
    EXPECT_LE(tokens.size(), 20U);
    EXPECT_EQ(sample["finish"], tokens.size() < 20 ? "end" : "length");
    EXPECT_LT(sample["log_probability"].get<double>(), 0);
    EXPECT_LE(std::count(tokens.begin(), tokens.end(), Specials().eos), 1);
    std::string text;  // the lines of prompt and tokens
    std::vector<int32_t> line = data.target_tokenizer().encode("the cat");
    for (const int32_t id : tokens) {
      if (id == Specials().eos) text += data.target_tokenizer().decode(std::exchange(line, {})) + '\n';
      if (id != Specials().eos) line.push_back(id);
    }
    text += data.target_tokenizer().decode(line);
    EXPECT_EQ("the cat" + sample["text"].get<std::string>(), text);
    texts.insert(sample["text"]);
  }
  EXPECT_GT(texts.size(), 1U);
  const Json document = read_json(path("samples.json"));
  EXPECT_EQ(document["schema"], "plumb.generate/1");
  EXPECT_EQ(document["seed"], 1);
  EXPECT_EQ(document["max_tokens"], 20);
}

TEST_F(GenerateVerb, WhatItLearned) {
  const std::string text = samples({"--prompt", "the", "--greedy", "--max-tokens", "40"})[0]["text"];
  EXPECT_CONTAINS(text, " the ");  // as in every line of the text
}

TEST_F(GenerateVerb, IsAFunctionOfSeedAndSample) {
  const std::vector<std::string> options = {"--prompt", "the", "--samples", "4", "--max-tokens", "12"};
  const auto with = [&](const std::vector<std::string>& more) { return samples(test::with(options, more)); };
  const Json first = samples(options);
  const Json other = with({"--batch-rows", "3", "--threads", "1"});
  ASSERT_EQ(other.size(), first.size());
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(other[i]["tokens"], first[i]["tokens"]);
    // Products of other numbers of rows may add in another order, with AVX2 for example.
    EXPECT_NEAR(other[i]["log_probability"].get<double>(), first[i]["log_probability"].get<double>(), 1e-5);
  }
  EXPECT_EQ(with({"--seed", "1"}), first);
  EXPECT_NE(with({"--seed", "2"}), first);
  EXPECT_NE(with({"--temperature", "3"}), first);
  const Json greedy = with({"--greedy"});
  EXPECT_EQ(greedy[0], greedy[3]);
  EXPECT_EQ(with({"--temperature", "0", "--seed", "5"}), greedy);
  EXPECT_EQ(with({"--top-k", "1"}), greedy);
  EXPECT_EQ(with({"--top-p", "1e-9"}), greedy);
  EXPECT_EQ(with({"--min-p", "1"}), greedy);
  EXPECT_NE(with({"--greedy", "--repetition-penalty", "3"}), greedy);
  const Json less = with({"--data", path("data"), "--precision", "int8"});
  EXPECT_EQ(less.size(), 4U);
}

TEST_F(GenerateVerb, ShowsOneSampleAsItIsMade) {
  const std::string text = samples({"--prompt", "the dog", "--max-tokens", "15"})[0]["text"];
  EXPECT_EQ(generate({"--prompt", "the dog ", "--max-tokens", "15"}).output, "the dog" + text + "\n");
  EXPECT_EQ(piped("the dog\n", "--max-tokens 15").output, "the dog" + text + "\n");
  const std::string free = samples({"--max-tokens", "15"})[0]["text"];
  EXPECT_EQ(generate({"--max-tokens", "15"}).output, free + "\n");  // standard input is empty
  EXPECT_EQ(generate({"--prompt", "", "--max-tokens", "15"}).output, free + "\n");
  const std::string lines = samples({"--prompt", "the dog\nthe", "--max-tokens", "15"})[0]["text"];
  EXPECT_EQ(piped("the dog\nthe\n", "--max-tokens 15").output, "the dog\nthe" + lines + "\n");
}

TEST_F(GenerateVerb, ATerminalGetsNoControlCharactersButAFileGetsTheText) {
  const std::string prompt =
      "the\x1b]0;title\x07 dog\nthe \xC2\x9B"
      "31m cat";
  const std::vector<std::string> words = {"generate", path("run"), "-q", "--max-tokens", "2", "--prompt", prompt};
  EXPECT_CONTAINS(run_plumb(words).output, prompt);
  int outside = -1, inside = -1;
  ASSERT_EQ(::openpty(&outside, &inside, nullptr, nullptr, nullptr), 0);
  EXPECT_EQ(test::Process(test::plumb_program(), words, ".", [&] { ::dup2(inside, STDOUT_FILENO); }).wait().status, 0);
  std::array<char, 4096> shown{};
  const ssize_t count = ::read(outside, shown.data(), shown.size());
  for (const int end : {outside, inside}) ::close(end);
  ASSERT_GT(count, 0);
  EXPECT_CONTAINS(std::string(shown.data(), static_cast<size_t>(count)),
                  "the\\x1b]0;title\\x07 dog\r\nthe \\xc2\\x9b31m cat");  // the terminal adds the carriage return
}

TEST_F(GenerateVerb, StopsBeforeAStopString) {
  const Json free = samples({"--prompt", "the", "--samples", "5", "--lines", "0", "--max-tokens", "30"});
  const Json found = samples(
      {"--prompt", "the", "--samples", "5", "--lines", "0", "--max-tokens", "30", "--stop", "th", "--stop", "\n"});
  for (size_t i = 0; i < 5; ++i) {
    const std::string text = free[i]["text"];
    const size_t place = std::min(text.find("th"), text.find('\n'));
    EXPECT_EQ(found[i]["text"], text.substr(0, place));
    EXPECT_EQ(found[i]["finish"], place == std::string::npos ? "length" : "stop");
  }
  EXPECT_EQ(found[0]["finish"], "stop");
  EXPECT_EQ(generate({"--prompt", "the", "--lines", "0", "--max-tokens", "30", "--stop", "th", "--stop", "\n"}).output,
            "the" + found[0]["text"].get<std::string>() + "\n");
}

TEST_F(GenerateVerb, ManyPromptsAndSamplesAreToldApart) {
  write_file_atomic(*folder_ / "prompts", "the cat\n\nthe dog met\n");
  const std::vector<std::string> options = {"--prompts", path("prompts"), "--samples", "2", "--max-tokens", "8"};
  const Json found = samples(options);
  ASSERT_EQ(found.size(), 6U);
  EXPECT_EQ(found[0]["prompt"], "the cat");
  EXPECT_EQ(found[3]["prompt"], "");
  EXPECT_EQ(found[4]["prompt"], "the dog met");
  // A prompt's text does not depend on the others. Its log-probability may differ in the last bits, because the size of
  // the batch determines the order of a sum.
  const Json alone = samples({"--prompt", "the dog met", "--max-tokens", "8"})[0];
  EXPECT_EQ(alone["text"], found[4]["text"]);
  EXPECT_EQ(alone["tokens"], found[4]["tokens"]);
  EXPECT_NEAR(alone["log_probability"].get<double>(), found[4]["log_probability"].get<double>(), 1e-5);
  std::string expected;
  for (size_t i = 0; i < 6; ++i) {
    expected += fmt::format("{}=== prompt {}, sample {} ===\n{}{}\n", i > 0 ? "\n" : "", i / 2 + 1, i % 2 + 1,
                            found[i]["prompt"].get<std::string>(), found[i]["text"].get<std::string>());
  }
  EXPECT_EQ(generate(options).output, expected);
  EXPECT_EQ(piped("the cat\n\nthe dog met\n", "--prompts - --samples 2 --max-tokens 8").output, expected);
  EXPECT_TRUE(generate({"--prompt", "the", "--samples", "2"}).output.starts_with("=== sample 1 ===\nthe"));
}

TEST_F(GenerateVerb, TakesTheLatestCheckpointOrTheOneNamed) {
  const std::string latest = generate({"--prompt", "the", "--greedy"}).output;
  EXPECT_EQ(generate({"--prompt", "the", "--greedy"}, "run/checkpoints/step-000060/").output, latest);
  EXPECT_EQ(generate({"--prompt", "the", "--greedy"}, "run/checkpoints/step-000030").status, 0);
}

TEST_F(GenerateVerb, WrongInput) {
  const auto fails = [](const Finished& finished, const std::string& message) {
    EXPECT_EQ(finished.status, 1);
    EXPECT_EQ(finished.output, "");
    EXPECT_TRUE(finished.errors.starts_with("plumb: error: ")) << finished.errors;
    EXPECT_CONTAINS(finished.errors, message);
    EXPECT_CONTAINS(finished.errors, "\nhint: ");
  };
  fails(generate({"--top-p", "0"}), "top_p = 0");
  fails(generate({"--temperature", "nan"}), "temperature = nan");
  fails(generate({"--top-k", "-1"}), "top_k = -1");
  fails(generate({"--stop", ""}), "a stop string is empty");
  fails(generate({"--prompts", path("none")}), "cannot be read");
  write_file_atomic(*folder_ / "empty", "");
  fails(generate({"--prompts", path("empty")}), "contains no prompt");
  fails(generate({"--prompt", "ca\xFFt"}), "--prompt is not valid UTF-8");
  fails(piped("the\nca\xFFt\n", ""), "standard input:2: not valid UTF-8");
  fails(generate({}, "data"), "is not a run directory");
  EXPECT_EQ(generate({"--samples", "0"}).status, 2);
  EXPECT_EQ(generate({"--greedy", "--temperature", "0.5"}).status, 2);
  EXPECT_EQ(generate({"--prompt", "the", "--prompts", path("text")}).status, 2);
}

}  // namespace
}  // namespace plumb
