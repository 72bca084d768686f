// plumb import, and commands that use what it wrote.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plumb/base/files.h"
#include "plumb/base/json.h"
#include "support/process.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

using test::Finished;
using test::run_plumb;

/// A model of `transformers` with a tokenizer in which every token is a letter.
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
  const Finished imported =
      run_plumb({"import", path("model"), "--out", path("run"), "--json", path("import.json"), "-q"});
  ASSERT_EQ(imported.status, 0) << imported.errors;
  const Json document = read_json(path("import.json"));
  EXPECT_EQ(document["schema"], "plumb.import/1");
  EXPECT_EQ(document["architecture"], "GPT2LMHeadModel");
  EXPECT_EQ(document["tokenizer"], true);

  const Json values = read_json(path("model/values.json"));
  const auto prompt = values["tokens"][0].get<std::vector<int64_t>>();
  const Finished generated = run_plumb({"generate", path("run"), "--prompt", letters(prompt), "--greedy",
                                        "--max-tokens", "64", "--json", path("text.json"), "-q"});
  ASSERT_EQ(generated.status, 0) << generated.errors;
  const Json sample = read_json(path("text.json"))["samples"][0];
  EXPECT_EQ(sample["tokens"], values["greedy"]);
  EXPECT_EQ(sample["text"], letters(values["greedy"].get<std::vector<int64_t>>()));
}

TEST_F(ImportVerb, WritesARunThatIsMeasured) {
  ASSERT_EQ(run_plumb({"import", path("model"), "--out", path("run"), "-q"}).status, 0);
  write_json(path("batch.json"), {{"tokens", {{5, 6, 7, 8}, {9, 10, 11}}}});
  for (const char* command : {"probe", "spectrum"}) {
    const Finished measured =
        run_plumb({command, path("run"), "--batch", path("batch.json"), "--json", path("measured.json"), "-q"});
    ASSERT_EQ(measured.status, 0) << measured.errors;
    EXPECT_EQ(read_json(path("measured.json"))["model"]["kind"], "decoder");
  }
}

TEST_F(ImportVerb, NamesWhatItDoesNotKnow) {
  Json config = read_json(path("model/config.json"));
  config["model_type"] = "mamba";
  write_json(path("model/config.json"), config);
  const Finished refused = run_plumb({"import", path("model"), "--out", path("run")});
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.errors.find("mamba"), std::string::npos) << refused.errors;
  EXPECT_FALSE(fs::exists(path("run")));
}

}  // namespace
}  // namespace plumb
