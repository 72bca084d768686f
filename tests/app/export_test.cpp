// plumb export: what a folder gets from the data that a run was trained on.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "plumb/base/files.h"
#include "plumb/base/json.h"
#include "plumb/text/tokenizer.h"
#include "support/shared_folder.h"

namespace plumb {
namespace {

using test::run_plumb;
using Words = std::vector<std::string>;

/// Runs of one step.
class ExportVerb : public ::testing::Test {
 protected:
  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }

  /// Lines with three columns: a label, and the two texts of a pair.
  void write_text() const {
    std::string pairs, first, second;
    for (int i = 0; i < 40; ++i) {
      const std::string text = fmt::format("the {} was {}", i % 3 == 0 ? "film" : "book", i % 2 == 0 ? "good" : "bad");
      pairs += fmt::format("{}\t{}\tit was {}\n", i % 4 < 2 ? "same" : "other", text, i % 4 < 2 ? "good" : "bad");
      first += text + '\n';
      second += fmt::format("it was {}\n", i % 5 == 0 ? "good" : "bad");
    }
    write_file_atomic(folder_ / "pairs.tsv", pairs);
    write_file_atomic(folder_ / "first.txt", first);
    write_file_atomic(folder_ / "second.txt", second);
  }

  static void expect_success(const Words& arguments) { test::succeeded(run_plumb(arguments)); }

  /// Trains for one step and exports.
  void train_and_export(const Words& settings) const {
    Words keys = {"model.d_model=16",       "model.heads=2",          "model.feed_forward=32", "model.encoder_layers=1",
                  "model.decoder_layers=1", "model.max_positions=32", "train.steps=1"};
    keys.insert(keys.end(), settings.begin(), settings.end());
    expect_success(test::with_keys({"train", "--data", path("data"), "--out", path("run"), "-q"}, keys));
    expect_success({"export", path("run"), path("folder"), "-q"});
  }

  [[nodiscard]] Json exported(const std::string& name) const { return read_json(folder_ / "folder" / name); }

  test::TemporaryDirectory folder_;
};

TEST_F(ExportVerb, AClassifierOfPairsHasItsLabelsAndSegments) {
  write_text();
  expect_success({"data", "labels", "--train", path("pairs.tsv"), "--valid", path("pairs.tsv"), "--text", "2", "3",
                  "--vocabulary", "45", "--out", path("data"), "-q"});
  train_and_export({"model.kind=encoder", "model.residual=post-ln", "model.positions=learned",
                    "model.embedding_factor=1.0", "model.embedding_norm=true", "model.segments=2",
                    "model.pooling=first", "model.pooler=true"});
  const Json config = exported("config.json");
  EXPECT_EQ(config["architectures"], Json({"BertForSequenceClassification"}));
  EXPECT_EQ(config["id2label"], (Json{{"0", "other"}, {"1", "same"}}));
  EXPECT_EQ(config["label2id"], (Json{{"other", 0}, {"same", 1}}));
  EXPECT_EQ(config["type_vocab_size"], 2);
  EXPECT_EQ(config["pad_token_id"], 0);
  EXPECT_EQ(exported("tokenizer_config.json")["model_input_names"],
            Json({"input_ids", "attention_mask", "token_type_ids"}));
  const Json pair = exported("tokenizer.json")["post_processor"]["pair"];  // BOS A EOS B EOS
  Json segments = Json::array();
  for (const Json& part : pair) segments.push_back(part.front()["type_id"]);
  EXPECT_EQ(segments, Json({0, 0, 0, 1, 1}));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "folder" / "generation_config.json"));
}

TEST_F(ExportVerb, ALanguageModelSaysWhatBeginsAndEndsATextAndReadsNoSegments) {
  write_text();
  expect_success({"data", "text", "--train", path("first.txt"), "--valid", path("second.txt"), "--tokenizer", "word",
                  "--vocabulary", "12", "--block", "16", "--out", path("data"), "-q"});
  train_and_export(
      {"model.kind=decoder", "model.positions=learned", "model.embedding_factor=1.0", "model.activation=gelu-tanh"});
  for (const char* file : {"config.json", "generation_config.json"}) {
    EXPECT_EQ(exported(file)["bos_token_id"], 1) << file;
    EXPECT_EQ(exported(file)["eos_token_id"], 2) << file;
  }
  EXPECT_EQ(exported("tokenizer_config.json")["model_input_names"], Json({"input_ids", "attention_mask"}));
  const Tokenizer tokenizer = Tokenizer::from_file(folder_ / "folder" / "tokenizer.json");
  EXPECT_EQ(tokenizer.encode_as_input("the book"),
            (std::vector<int32_t>{1, tokenizer.find("▁the"), tokenizer.find("▁book")}));
}

TEST_F(ExportVerb, ATranslatorBeginsWithTheTokenThatItWasTrainedToBeginWith) {
  write_text();
  expect_success({"data", "prepare", "--train", path("first.txt"), path("second.txt"), "--valid", path("first.txt"),
                  path("second.txt"), "--vocabulary", "45", "--out", path("data"), "-q"});
  train_and_export({"model.residual=post-ln", "model.positions=sinusoidal-halves", "model.output_bias=true",
                    "model.share_embeddings=all"});
  EXPECT_EQ(exported("config.json")["model_type"], "marian");
  EXPECT_EQ(exported("config.json")["decoder_start_token_id"], 1);  // BOS
  EXPECT_EQ(exported("generation_config.json")["decoder_start_token_id"], 1);
  const Tokenizer tokenizer = Tokenizer::from_file(folder_ / "folder" / "tokenizer.json");
  EXPECT_EQ(tokenizer.encode_as_input("the book").back(), 2);  // EOS after the source, and no BOS before it
  EXPECT_NE(tokenizer.encode_as_input("the book").front(), 1);
}

}  // namespace
}  // namespace plumb
