// plumb import, and commands that use what it wrote.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "plumb/base/contains.h"
#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "plumb/base/json.h"
#include "plumb/model/capabilities.h"
#include "plumb/model/model.h"
#include "plumb/run/directory.h"
#include "support/process.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

using test::Finished;
using test::run_plumb;

/// A Hugging Face model with a tokenizer in which every token is a letter.
class ImportVerb : public ::testing::Test {
 protected:
  ImportVerb() {
    fs::copy(test::source_directory() / "tests" / "golden" / "huggingface" / "gpt2", scratch_ / "model");
    Json vocabulary = Json::object();
    for (const int64_t id :
         {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28})
      vocabulary[letters({id})] = id;
    write_json(scratch_ / "model" / "tokenizer.json",
               {{"version", "1.0"},
                {"added_tokens", Json::array()},
                {"normalizer", nullptr},
                {"pre_tokenizer", nullptr},
                {"post_processor", nullptr},
                {"decoder", {{"type", "Fuse"}}},
                {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", Json::array()}}}});
    // Otherwise the class for GPT-2 would add "<|endoftext|>", for which the model has no embedding.
    write_json(scratch_ / "model" / "tokenizer_config.json",
               {{"bos_token", nullptr}, {"eos_token", nullptr}, {"unk_token", nullptr}});
  }

  static std::string letters(const std::vector<int64_t>& ids) {
    std::string text;
    for (const int64_t id : ids) text += static_cast<char>(id < 26 ? 'A' + id : 'a' + (id - 26));
    return text;
  }

  [[nodiscard]] std::string path(const std::string& name) const { return (scratch_ / name).string(); }

  const test::TemporaryDirectory scratch_;
};

TEST_F(ImportVerb, WritesARunThatGeneratesAsTransformersDoes) {
  test::succeeded(run_plumb({"import", path("model"), "--out", path("run"), "--json", path("import.json"), "-q"}));
  const Json document = read_json(path("import.json"));
  EXPECT_EQ(document["schema"], "plumb.import/1");
  EXPECT_EQ(document["architecture"], "GPT2LMHeadModel");
  EXPECT_EQ(document["tokenizer"], true);

  const Json values = read_json(path("model/values.json"));
  const auto prompt = values["tokens"][0].get<std::vector<int64_t>>();
  for (const char* model : {"run", "model"}) {  // the import, and the folder itself
    const Finished generated = run_plumb({"generate", path(model), "--prompt", letters(prompt), "--greedy",
                                          "--max-tokens", "64", "--json", path("text.json"), "-q"});
    ASSERT_EQ(generated.status, 0) << generated.errors;
    const Json sample = read_json(path("text.json"))["samples"][0];
    EXPECT_EQ(sample["tokens"], values["greedy"]) << model;
    EXPECT_EQ(sample["text"], letters(values["greedy"].get<std::vector<int64_t>>())) << model;
  }
}

TEST_F(ImportVerb, WritesARunThatIsMeasured) {
  ASSERT_EQ(run_plumb({"import", path("model"), "--out", path("run"), "-q"}).status, 0);
  write_json(path("batch.json"), {{"tokens", {{5, 6, 7, 8}, {9, 10, 11}}}});
  for (const char* command : {"probe", "spectrum"}) {
    const auto measured = [&](const std::string& model) {
      test::succeeded(
          run_plumb({command, path(model), "--batch", path("batch.json"), "--json", path("measured.json"), "-q"}));
      Json json = read_json(path("measured.json"));
      json["model"].erase("weights");  // the path of the weights
      for (const char* of_the_call : {"command", "seconds", "gradient_seconds", "hvp_seconds"}) json.erase(of_the_call);
      return json;
    };
    const Json of_run = measured("run");
    EXPECT_EQ(of_run["model"]["kind"], "decoder");
    EXPECT_EQ(measured("model"), of_run);  // the folder, without importing it
  }
}

/// Each token listed in generation_config.json ends a text.
/// Standard output has nothing of what failed.
TEST_F(ImportVerb, ThePromptIsNotPrintedBeforeAnError) {
  const Finished finished = run_plumb({"generate", path("model"), "--prompt", "AB", "--stop", "", "-q"});
  EXPECT_EQ(finished.status, 1);
  EXPECT_EQ(finished.output, "");
  EXPECT_CONTAINS(finished.errors, "a stop string is empty");
}

TEST_F(ImportVerb, SeveralTokensEndAText) {
  const Json values = read_json(path("model/values.json"));
  const auto prompt = values["tokens"][0].get<std::vector<int64_t>>();
  const auto greedy = values["greedy"].get<std::vector<int64_t>>();
  int64_t other = 0;  // not in the continuation
  while (contains(greedy, other)) ++other;
  write_json(path("model/generation_config.json"), {{"eos_token_id", {other, greedy[5]}}});
  ASSERT_EQ(run_plumb({"import", path("model"), "--out", path("run"), "-q"}).status, 0);
  ASSERT_EQ(
      run_plumb({"generate", path("run"), "--prompt", letters(prompt), "--greedy", "--json", path("text.json"), "-q"})
          .status,
      0);
  const Json sample = read_json(path("text.json"))["samples"][0];
  const auto end = std::find(greedy.begin(), greedy.end(), greedy[5]);
  EXPECT_EQ(sample["tokens"], Json(std::vector<int64_t>(greedy.begin(), end)));
  EXPECT_EQ(sample["finish"], "end");
  write_json(path("model/generation_config.json"), {{"eos_token_id", "1"}});
  EXPECT_CONTAINS(run_plumb({"import", path("model"), "--out", path("run"), "-q"}).errors, "eos_token_id");
}

/// The penalty of generation_config.json applies unless the command line gives another one.
TEST_F(ImportVerb, RepetitionsArePenalizedAsTheModelSays) {
  const auto continued = [&](std::vector<std::string> options) {
    const Json values = read_json(path("model/values.json"));
    std::vector<std::string> command = {"generate",
                                        path("model"),
                                        "--prompt",
                                        letters(values["tokens"][0].get<std::vector<int64_t>>()),
                                        "--greedy",
                                        "--max-tokens",
                                        "20",
                                        "--json",
                                        path("text.json"),
                                        "-q"};
    command.insert(command.end(), options.begin(), options.end());
    EXPECT_EQ(run_plumb(command).status, 0);
    return read_json(path("text.json"))["samples"][0]["tokens"];
  };
  const Json greedy = continued({});
  const Json penalized = continued({"--repetition-penalty", "1.7"});
  ASSERT_NE(penalized, greedy);
  write_json(path("model/generation_config.json"), {{"repetition_penalty", 1.7}});
  EXPECT_EQ(continued({}), penalized);
  EXPECT_EQ(continued({"--repetition-penalty", "1"}), greedy);
  write_json(path("model/generation_config.json"), {{"repetition_penalty", -1}});
  EXPECT_CONTAINS(run_plumb({"generate", path("model"), "--prompt", "a"}).errors, "repetition_penalty");
}

TEST_F(ImportVerb, IsUndoneByExport) {
  ASSERT_EQ(run_plumb({"import", path("model"), "--out", path("run"), "-q"}).status, 0);
  const Finished exported = run_plumb(
      {"export", path("run"), "--format", "huggingface", path("folder"), "--json", path("export.json"), "-q"});
  ASSERT_EQ(exported.status, 0) << exported.errors;
  const Json document = read_json(path("export.json"));
  EXPECT_EQ(document["schema"], "plumb.export/1");
  EXPECT_EQ(document["model_type"], "gpt2");
  EXPECT_EQ(document["tokenizer"], true);
  for (const char* name : {"config.json", "tokenizer.json"})
    EXPECT_EQ(read_file(path("folder/") + name), read_file(path("model/") + name)) << name;
  ASSERT_EQ(run_plumb({"import", path("folder"), "--out", path("again"), "-q"}).status, 0);
  EXPECT_EQ(read_file(path("again/model.safetensors")), read_file(path("run/model.safetensors")));
  EXPECT_NE(run_plumb({"export", path("run"), path("model"), "-q"}).status, 0);  // a folder not created by Plumb
}

/// A sentence, its end token, and greedy target tokens. PAD, the first token of every target here, is never chosen.
TEST_F(ImportVerb, WritesARunThatTranslates) {
  fs::remove_all(scratch_ / "model" / "model.safetensors");
  for (const char* name : {"config.json", "model.safetensors"})
    fs::copy_file(test::source_directory() / "tests" / "golden" / "huggingface" / "marian" / name,
                  scratch_ / "model" / name, fs::copy_options::overwrite_existing);
  ASSERT_EQ(run_plumb({"import", path("model"), "--out", path("run"), "-q"}).status, 0);
  const std::vector<int64_t> sentence = {7, 3, 11, 19};
  write_file_atomic(path("input"), letters(sentence) + "\n");
  const std::string command =
      fmt::format("'{}' translate '{}' --beam 1 -q < '{}'", test::plumb_program(), path("run"), path("input"));
  const Finished translated = test::succeeded(test::Process("/bin/sh", {"-c", command}).wait());
  const std::string of_folder =
      fmt::format("'{}' translate '{}' --beam 1 -q < '{}'", test::plumb_program(), path("model"), path("input"));
  EXPECT_EQ(test::Process("/bin/sh", {"-c", of_folder}).wait().output, translated.output);

  const std::unique_ptr<Model> model = load_model(path("run"));
  Translates* translates = model->translates();
  std::vector<int64_t> source = sentence, found;
  source.push_back(0);  // eos_token_id
  Ragged layout;
  layout.append(std::ssize(source));
  DecoderState state = translates->start(source, layout);
  constexpr int64_t kStart = 28, kLongest = 26;  // 1.5 · 4 + 20 tokens
  for (int64_t token = kStart; std::ssize(found) < kLongest;) {
    Tensor logits = translates->logits(translates->step(state, {token})).clone();
    logits.select(1, kStart).fill_(-1e30);
    token = logits.argmax().item<int64_t>();
    if (token == 0) break;
    found.push_back(token);
  }
  EXPECT_EQ(translated.output, letters(found) + "\n");
}

TEST_F(ImportVerb, NamesWhatItDoesNotKnow) {
  Json config = read_json(path("model/config.json"));
  config["model_type"] = "mamba";
  write_json(path("model/config.json"), config);
  const Finished refused = run_plumb({"import", path("model"), "--out", path("run")});
  EXPECT_EQ(refused.status, 1);
  EXPECT_CONTAINS(refused.errors, "mamba");
  EXPECT_FALSE(fs::exists(path("run")));
}

}  // namespace
}  // namespace plumb
