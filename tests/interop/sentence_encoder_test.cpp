// Sentence encoders compared with `transformers` and `sentence-transformers`: token ids exactly, hidden states and
// vectors to 1e-10 in float64 and, in float32, 1e-5 of the largest; see tests/golden/README.md for the origin of the
// values. Also tests the model of the directory PLUMB_SENTENCE_ENCODER, written by scripts/golden/sentence_encoder.py
// --model.
#include "plumb/interop/sentence_encoding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>

#include "plumb/base/error.h"
#include "plumb/base/input.h"
#include "plumb/base/json.h"
#include "plumb/decode/embed.h"
#include "plumb/interop/export.h"
#include "plumb/interop/import.h"
#include "plumb/run/directory.h"
#include "support/errors.h"
#include "support/paths.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

fs::path golden() { return test::source_directory() / "tests" / "golden" / "sentence_encoder"; }

/// The lines of a directory and their reference values.
struct Reference {
  explicit Reference(const fs::path& directory)
      : about(read_json(directory / "texts.json")),
        model(directory / about["model"].get<std::string>()),
        texts(about["texts"].get<std::vector<std::string>>()) {
    for (const auto& [name, tensor] : load_safetensors(directory / "reference.safetensors")) {
      if (name == "ids") ids = tensor;
      if (name == "lengths") lengths = tensor;
      if (name == "hidden") hidden = tensor;
      if (name == "vectors") vectors = tensor;
    }
  }
  Json about;
  fs::path model;
  std::vector<std::string> texts;
  Tensor ids, lengths, hidden, vectors;
};

double distance(const Tensor& a, const Tensor& b) { return (a - b).abs().max().item<double>(); }

/// Imports the model and compares its token ids, hidden states and vectors of all lines.
void compare(const Reference& reference) {
  const test::TemporaryDirectory scratch;
  const fs::path run = scratch / "run";
  const ImportedModel imported = import_model(reference.model, run);
  ASSERT_TRUE(imported.tokenizer);
  const std::optional<SentenceEncoding> encoding = sentence_encoding_of(run);
  ASSERT_TRUE(encoding.has_value());
  const Tokenizer tokenizer = Tokenizer::from_file(run);
  EmbedOptions options;
  options.pooling = encoding->pooling;
  options.normalize = encoding->normalize;
  options.max_tokens = encoding->max_tokens;
  options.as_tokenizer_says = true;

  std::vector<std::vector<int64_t>> rows;
  int64_t differing = 0, token = 0;
  for (size_t i = 0; i < reference.texts.size(); ++i) {
    const std::vector<int32_t> ids = ids_to_embed(tokenizer, reference.texts[i], options).ids;
    rows.emplace_back(ids.begin(), ids.end());
    const int64_t length = reference.lengths[static_cast<int64_t>(i)].item<int64_t>();
    const Tensor expected = reference.ids.narrow(0, token, length).contiguous();
    token += length;
    const int64_t* first = expected.data_ptr<int64_t>();
    const bool same = std::equal(rows.back().begin(), rows.back().end(), first, first + length);
    if (!same && differing++ < 5) ADD_FAILURE() << "other tokens: " << Json(reference.texts[i]).dump();
  }
  ASSERT_EQ(differing, 0);

  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    const double largest = std::max(1.0, reference.hidden.abs().max().item<double>());
    const double tolerance = type == at::kDouble ? 1e-10 : 1e-5 * largest;
    const std::unique_ptr<Model> model = make_model(imported.config, type);
    load_parameters(model->parameters(), load_safetensors(run / "model.safetensors"), run.string());
    const at::NoGradGuard no_graph;
    double worst = 0;
    token = 0;
    for (const auto& row : rows) {
      ForwardContext context;
      const Tensor hidden = model->embeds()->hidden(row, {}, Ragged({std::ssize(row)}), context);
      worst = std::max(worst, distance(hidden, reference.hidden.narrow(0, token, std::ssize(row))));
      token += std::ssize(row);
    }
    const TextVectors embedded = embed_texts(*model->embeds(), tokenizer, reference.texts, options);
    const double of_vectors = distance(embedded.vectors.to(at::kDouble), reference.vectors);
    EXPECT_LT(worst, tolerance);
    EXPECT_LT(of_vectors, tolerance);
    std::cout << rows.size() << " lines, " << token << " tokens, " << embedded.truncated
              << " lines truncated: hidden states differ by " << worst << ", vectors by " << of_vectors << '\n';
  }
}

TEST(SentenceEncoder, EqualsSentenceTransformers) {
  const Reference reference(golden());
  EXPECT_EQ(read_sentence_encoding(reference.model), (SentenceEncoding{"mean", true, 40}));
  compare(reference);
}

TEST(SentenceEncoder, EqualsSentenceTransformersOnAGivenModel) {
  const char* directory = std::getenv("PLUMB_SENTENCE_ENCODER");
  if (directory == nullptr)
    GTEST_SKIP() << "name a directory that scripts/golden/sentence_encoder.py --model has written with "
                    "PLUMB_SENTENCE_ENCODER";
  compare(Reference(directory));
}

/// A copy of the golden folder to modify.
class SentenceFolder : public ::testing::Test {
 protected:
  SentenceFolder() { fs::copy(golden() / "model", folder_, fs::copy_options::recursive); }

  void write(const fs::path& file, const Json& content) const { write_json(folder_ / file, content); }

  void expect_error(const std::string& part) const {
    test::expect_error([&] { (void)read_sentence_encoding(folder_); }, part);
  }

  const test::TemporaryDirectory scratch_;
  const fs::path folder_ = scratch_ / "model";
};

TEST_F(SentenceFolder, FlagsOfPoolingInOlderFiles) {
  const fs::path pooling = fs::path("1_Pooling") / "config.json";
  const auto pooled = [&](const Json& settings) {
    write(pooling, settings);
    return read_sentence_encoding(folder_)->pooling;
  };
  EXPECT_EQ(pooled({{"word_embedding_dimension", 12}, {"pooling_mode_mean_tokens", true}}), "mean");
  EXPECT_EQ(pooled({{"pooling_mode_cls_token", true}, {"pooling_mode_mean_tokens", false}}), "first");
  EXPECT_EQ(pooled({{"pooling_mode_max_tokens", true}}), "max");
  EXPECT_EQ(pooled({{"pooling_mode", "lasttoken"}}), "last");
  write(pooling, {{"pooling_mode_mean_sqrt_len_tokens", true}});
  expect_error("pooling_mode_mean_sqrt_len_tokens = true");
  write(pooling, {{"pooling_mode_mean_tokens", true}, {"pooling_mode_max_tokens", true}});
  expect_error("pooling_mode_max_tokens = true");
  write(pooling, {{"pooling_mode", "weightedmean"}});
  expect_error("pooling_mode = \"weightedmean\"");
  write(pooling, {{"pooling_mode", "mean"}, {"temperature", 2}});
  expect_error("temperature = 2 is unknown");
}

TEST_F(SentenceFolder, LengthsOfOlderFiles) {
  write("sentence_bert_config.json", {{"max_seq_length", 16}, {"do_lower_case", false}});
  EXPECT_EQ(read_sentence_encoding(folder_)->max_tokens, 16);
  write("sentence_bert_config.json", {{"max_seq_length", nullptr}});
  EXPECT_EQ(read_sentence_encoding(folder_)->max_tokens, 40);  // the tokenizer's
  write("tokenizer_config.json", {{"model_max_length", 1e30}});
  EXPECT_EQ(read_sentence_encoding(folder_)->max_tokens, 0);
  write("sentence_bert_config.json", {{"do_lower_case", true}});
  expect_error("do_lower_case = true");
}

TEST_F(SentenceFolder, WhatIsNotUnderstoodIsNamed) {
  const Json modules = read_json(folder_ / "modules.json");
  Json fewer = modules;
  fewer.erase(2);
  write("modules.json", fewer);
  EXPECT_FALSE(read_sentence_encoding(folder_)->normalize);
  Json dense = modules;
  dense[2]["type"] = "sentence_transformers.models.Dense";
  write("modules.json", dense);
  expect_error("Transformer, Pooling, Dense");
  Json elsewhere = modules;
  elsewhere[1]["path"] = "../1_Pooling";
  write("modules.json", elsewhere);
  expect_error("'../1_Pooling' is not the name of a folder");
  for (const char* outside : {"..", ".", "../1_Pooling"}) {
    Json outside_model = modules;
    outside_model[0]["path"] = outside;
    write("modules.json", outside_model);
    expect_error("is not the name of a folder beside it");
  }
  write("modules.json", {{"modules", modules}});
  EXPECT_THROW((void)read_sentence_encoding(folder_), Error);
  write("modules.json", modules);
  write("config_sentence_transformers.json", {{"prompts", {{"query", "query: "}}}, {"default_prompt_name", "query"}});
  expect_error("default_prompt_name = \"query\"");
  fs::remove(folder_ / "config_sentence_transformers.json");
  EXPECT_TRUE(read_sentence_encoding(folder_).has_value());
  fs::remove(folder_ / "modules.json");
  EXPECT_FALSE(read_sentence_encoding(folder_).has_value());
}

TEST_F(SentenceFolder, ItsExportIsASentenceEncoderAgain) {
  import_model(folder_, scratch_ / "run");
  export_model((scratch_ / "run").string(), scratch_ / "exported");
  EXPECT_EQ(read_sentence_encoding(scratch_ / "exported"), read_sentence_encoding(folder_));
  const std::vector<std::string> files = sentence_files(folder_);
  EXPECT_NE(std::find(files.begin(), files.end(), "1_Pooling/config.json"), files.end());
  for (const std::string& file : files) {
    ASSERT_EQ(fs::exists(scratch_ / "exported" / file), fs::exists(folder_ / file)) << file;
    if (fs::exists(folder_ / file)) {
      EXPECT_EQ(read_file(scratch_ / "exported" / file), read_file(folder_ / file)) << file;
    }
  }
}

/// The import records its tokenizer, so that data made with it are recognized.
TEST_F(SentenceFolder, RecordsItsTokenizer) {
  const std::string usual = fs::temp_directory_path();
  ::setenv("TMPDIR", (scratch_ / "none").c_str(), 1);  // it needs no other directory
  import_model(folder_, scratch_ / "run");
  ::setenv("TMPDIR", usual.c_str(), 1);
  Tokenizer::from_file(folder_).save(scratch_ / "tokenizer.model");
  EXPECT_EQ(read_json(scratch_ / "run" / "data.json")["tokenizer"]["tokenizer.model"]["bytes"],
            fs::file_size(scratch_ / "tokenizer.model"));
  EXPECT_FALSE(fs::exists(scratch_ / "run" / "tokenizer-of-data"));
}

}  // namespace
}  // namespace plumb
