// From the folder of a sentence encoder to vectors, measurements, and a classifier, as a user would do it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "plumb/base/json.h"
#include "plumb/base/text.h"
#include "plumb/io/safetensors.h"
#include "support/shared_folder.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

using test::Finished;
using test::Process;
using test::run_plumb;

class EmbedVerb : public test::SharedFolder<EmbedVerb> {
 protected:
  static void SetUpTestSuite() {
    folder_.emplace();
    const Finished imported =
        test::succeeded(run_plumb({"import", (golden() / "model").string(), "--out", path("run")}));
    EXPECT_CONTAINS(imported.output, "left out: pooler\n");
    EXPECT_CONTAINS(imported.output, "sentence vectors: mean pooling, normalized, of at most 40 tokens\n");
  }

  static fs::path golden() { return test::source_directory() / "tests" / "golden" / "sentence_encoder"; }

  /// The golden texts without line breaks, and their vectors.
  static std::pair<std::vector<std::string>, Tensor> lines() {
    const Json texts = read_json(golden() / "texts.json")["texts"];
    Tensor all;
    for (const auto& [name, tensor] : load_safetensors(golden() / "reference.safetensors")) {
      if (name == "vectors") all = tensor;
    }
    std::vector<std::string> chosen;
    std::vector<Tensor> vectors;
    for (size_t i = 0; i < texts.size(); ++i) {
      const auto text = texts[i].get<std::string>();
      if (text.find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos || text.starts_with("\xEF\xBB\xBF"))
        continue;
      chosen.push_back(text);
      vectors.push_back(all[static_cast<int64_t>(i)]);
    }
    return {chosen, at::stack(vectors)};
  }

  static Finished run(const std::vector<std::string>& arguments) { return test::succeeded(run_plumb(arguments)); }
};

TEST_F(EmbedVerb, WritesTheVectorsOfSentenceTransformers) {
  const auto [texts, expected] = lines();
  ASSERT_GT(texts.size(), 60U);
  write_file_atomic(path("texts.txt"), join(texts, "\n") + '\n');
  const Finished saved = run({"embed", path("run"), "--text", path("texts.txt"), "--out", path("vectors.npy")});
  EXPECT_CONTAINS(saved.output, fmt::format("{} vectors of 12 features: mean pooling, normalized", texts.size()));
  EXPECT_CONTAINS(saved.errors, "were truncated to 40 tokens");
  const std::string bytes = read_file(path("vectors.npy"));
  const auto values = static_cast<size_t>(expected.numel());
  ASSERT_EQ(bytes.size(), 128 + values * sizeof(float));
  Tensor found = at::empty(expected.sizes(), at::kFloat);
  std::memcpy(found.data_ptr<float>(), bytes.data() + 128, values * sizeof(float));
  EXPECT_LT((found.to(at::kDouble) - expected).abs().max().item<double>(), 1e-5);

  // The folder itself is the same model as its import.
  run({"embed", (golden() / "model").string(), "--text", path("texts.txt"), "--out", path("folder.npy"), "-q"});
  EXPECT_EQ(read_file(path("folder.npy")), bytes);

  // JSON Lines, from standard input, have the same numbers.
  Process shell("/bin/sh", {"-c", fmt::format("'{}' embed '{}' -q < '{}'", test::plumb_program(), path("run"),
                                              path("texts.txt"))});
  const std::vector<std::string> written = split(shell.wait().output, '\n');
  ASSERT_EQ(written.size(), texts.size() + 1);
  for (size_t i = 0; i < texts.size(); ++i) {
    const Json line = Json::parse(written[i]);
    EXPECT_EQ(line["text"], texts[i]);
    const auto row = line["vector"].get<std::vector<float>>();
    EXPECT_EQ(std::memcmp(row.data(), found[static_cast<int64_t>(i)].data_ptr<float>(), row.size() * sizeof(float)), 0);
  }
}

TEST_F(EmbedVerb, OptionsComeBeforeTheFolders) {
  write_file_atomic(path("one.txt"), "a small ship\n");
  run({"embed", path("run"), "--text", path("one.txt"), "--no-normalize", "--pooling", "first", "--max-tokens", "3",
       "--json", path("one.json"), "-q"});
  const Json document = read_json(path("one.json"));
  EXPECT_EQ(document["schema"], "plumb.embed/1");
  EXPECT_EQ(document["pooling"], "first");
  EXPECT_EQ(document["truncated"], 1);
  double square = 0;
  for (const double value : document["vectors"][0].get<std::vector<double>>()) square += value * value;
  EXPECT_GT(std::abs(square - 1), 1e-3);

  const auto refused = [](const std::vector<std::string>& options, const std::string& part) {
    const Finished finished = run_plumb(test::with({"embed", path("run"), "--text", path("one.txt")}, options));
    EXPECT_NE(finished.status, 0);
    EXPECT_CONTAINS(finished.errors, part);
  };
  refused({"--out", path("vectors.csv")}, "the format is unknown");
  refused({"--max-tokens", "49"}, "only 48 positions");
  refused({"--max-tokens", "2"}, "besides the 2 special tokens");
  refused({"--pooling", "sum"}, "sum");
  EXPECT_CONTAINS(run_plumb({"embed", path("run")}).errors, "standard input contains no text");
}

/// Prepares data with the encoder's tokenizer in one step, then trains a classifier and computes its vectors, too.
TEST_F(EmbedVerb, FineTunesTheEncoder) {
  std::string labels;
  for (int i = 0; i < 80; ++i)
    labels +=
        fmt::format("{}\tthe {} sails to port {}\n", i % 2 == 0 ? "ship" : "crew", i % 2 == 0 ? "ship" : "crew", i);
  write_file_atomic(path("labels.tsv"), labels);
  run({"data", "labels", "--train", path("labels.tsv"), "--valid", path("labels.tsv"), "--tokenizer-from", path("run"),
       "--out", path("labels"), "-q"});
  run({"finetune", "--from", path("run"), "--data", path("labels"), "--out", path("classifier"), "--set",
       "train.learning_rate=5e-3", "--set", "train.batch_tokens=128", "--set", "model.pooling=mean", "-q"});
  const Json result = read_json(path("classifier/result.json"));
  EXPECT_EQ(result["outcome"], "finished");
  EXPECT_EQ(result["metrics"]["accuracy"], 1.0);
  Process shell("/bin/sh", {"-c", fmt::format("echo 'the crew sails to port' | '{}' classify '{}' -q",
                                              test::plumb_program(), path("classifier"))});
  EXPECT_TRUE(shell.wait().output.starts_with("crew\t"));
  for (const char* command : {"probe", "spectrum"})
    run({command, path("classifier"), "--pairs", "20", "--json", path("measured.json"), "-q"});
  write_file_atomic(path("one.txt"), "a small ship\n");
  run({"embed", path("classifier"), "--text", path("one.txt"), "--json", path("one.json"), "-q"});
  EXPECT_EQ(read_json(path("one.json"))["pooling"], "mean");

  // Another vocabulary is rejected.
  run({"data", "labels", "--train", path("labels.tsv"), "--vocabulary", "40", "--out", path("other"), "-q"});
  const Finished refused =
      run_plumb({"finetune", "--from", path("run"), "--data", path("other"), "--out", path("none"), "-q"});
  EXPECT_CONTAINS(refused.errors, "its vocabulary is not the one");
}

TEST_F(EmbedVerb, MeasuresTheEncoderAsAMaskedLanguageModel) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += fmt::format("the small ship number {} sails to port\n", i);
  write_file_atomic(path("text.txt"), text);
  run({"data", "text", "--train", path("text.txt"), "--tokenizer-from", path("run"), "--block", "30", "--out",
       path("text"), "-q"});
  write_json(path("batch.json"), {{"tokens", {{2, 4, 9, 3}, {2, 10, 4, 3}}},
                                  {"labels", {{nullptr, 8, nullptr, nullptr}, {nullptr, nullptr, 11, nullptr}}}});
  for (const char* command : {"probe", "spectrum"}) {
    for (const auto& source : {std::vector<std::string>{"--data", path("text")}, {"--batch", path("batch.json")}}) {
      run({command, path("run"), source[0], source[1], "--json", path("measured.json"), "-q"});
      const Json model = read_json(path("measured.json"))["model"];
      EXPECT_EQ(model["kind"], "encoder");
      EXPECT_GT(model["target_tokens"].get<int64_t>(), 1);
    }
  }
  write_json(path("classes.json"), {{"tokens", {{2, 4, 9, 3}}}, {"labels", {1}}});
  const Finished refused = run_plumb({"probe", path("run"), "--batch", path("classes.json")});
  EXPECT_CONTAINS(refused.errors, "has no class for a sequence");
}

}  // namespace
}  // namespace plumb
