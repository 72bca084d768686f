// Translation of text: order, empty lines, and the BLEU of a split.
#include "plumb/decode/translate.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/data/directory.h"
#include "plumb/data/prepare.h"
#include "plumb/model/encoder_decoder.h"
#include "plumb/ops/packed_linear.h"
#include "plumb/ops/threads.h"
#include "support/contains.h"
#include "support/gradcheck.h"
#include "support/paths.h"
#include "support/small_model.h"

namespace plumb {
namespace {

class Translate : public ::testing::Test {
 protected:
  Translate() {
    std::string german;
    std::string english;
    for (int i = 0; i < 60; ++i) {
      german += fmt::format("{} Hunde {} laufen\n", i, i % 7 == 0 ? "und Katzen" : "");
      english += fmt::format("{} dogs {} run\n", i, i % 7 == 0 ? "and cats" : "");
    }
    write_file_atomic(directory_ / "train.de", german);
    write_file_atomic(directory_ / "train.en", english);
    PrepareOptions options;
    options.train = {directory_ / "train.de", directory_ / "train.en"};
    options.tokenizer.vocabulary = 50;
    options.valid_size = 9;
    prepare_data(options, directory_ / "data");
  }

  static EncoderDecoder random_model(int64_t vocabulary) {
    ModelConfig config = test::small_model("encoder-decoder", 1, vocabulary);
    config.share_embeddings = "none";
    EncoderDecoder model(config, at::kDouble);
    model.parameters().flat().copy_(testing::random_tensor({model.parameters().count()}, 1, 0.5));
    return model;
  }

  test::TemporaryDirectory directory_;
};

TEST_F(Translate, KeepsTheOrderOfTheLinesAndEmptyOnesEmpty) {
  const DataDirectory data = DataDirectory::open(directory_ / "data");
  EncoderDecoder model = random_model(data.source_vocabulary());
  DecodeOptions options;
  options.batch_tokens = 40;
  options.length_extra = 4;
  const std::vector<std::string> lines = {"3 Hunde laufen", "", "12 Hunde und Katzen laufen und laufen", "   ",
                                          "Katzen"};
  int64_t done = 0;
  int64_t calls = 0;
  const std::vector<std::string> found = translate(model, data.source_tokenizer(), data.target_tokenizer(), lines,
                                                   options, [&](int64_t sentences, int64_t) {
                                                     EXPECT_GT(sentences, done);
                                                     done = sentences;
                                                     ++calls;
                                                   });
  EXPECT_EQ(done, 5);
  EXPECT_GT(calls, 1);
  ASSERT_EQ(found.size(), lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::vector<int32_t> ids = data.source_tokenizer().encode(lines[i]);
    EXPECT_EQ(ids.empty(), i == 1 || i == 3);
    EXPECT_EQ(found[i], data.target_tokenizer().decode(beam_search(model, {ids}, options)[0])) << i;
  }
  EXPECT_EQ(found[1], "");
  EXPECT_EQ(found[3], "");
}

TEST_F(Translate, SharesTheWorkEvenly) {
  const DataDirectory data = DataDirectory::open(directory_ / "data");
  EncoderDecoder model = random_model(data.source_vocabulary());
  DecodeOptions options;
  options.length_extra = 2;
  options.batch_tokens = 2000;  // of 5,000 in total: full batches would have 80, 80 and 40 sentences
  const std::vector<std::vector<int32_t>> sources(200, {4, 5, 6, 7});
  const int threads = omp_get_max_threads();
  ops::set_threads(2);
  std::vector<int64_t> sizes;
  int64_t before = 0;
  translate(model, sources, options, [&](int64_t done, int64_t) {
    sizes.push_back(done - before);
    before = done;
  });
  ops::set_threads(threads);
  ASSERT_EQ(sizes.size(), 4U);
  EXPECT_LE(*std::max_element(sizes.begin(), sizes.end()) - *std::min_element(sizes.begin(), sizes.end()), 1);
}

TEST_F(Translate, InReducedPrecisionIsNearlyTheSame) {
  const DataDirectory data = DataDirectory::open(directory_ / "data");
  EncoderDecoder wide = random_model(data.source_vocabulary());
  EncoderDecoder model(wide.config());
  model.parameters().flat().copy_(wide.parameters().flat());
  std::vector<std::vector<int32_t>> sources;
  for (const std::string& line : data.raw_source("valid")) sources.push_back(data.source_tokenizer().encode(line));
  DecodeOptions options;
  options.beam = 1;
  options.length_extra = 4;
  const auto expected = translate(wide, sources, options);
  EXPECT_EQ(translate(model, sources, options), expected);
  for (const char* precision : {"bf16", "int8"}) {
    options.precision = precision;
    try {
      const auto found = translate(model, sources, options);
      size_t equal = 0;
      for (size_t i = 0; i < found.size(); ++i) equal += found[i] == expected[i] ? 1 : 0;
      EXPECT_GE(2 * equal, found.size()) << precision;
    } catch (const Error& error) {
      EXPECT_CONTAINS(error.what(), "oneDNN refused");
    }
  }
}

TEST_F(Translate, ScoresAreComputedInThePrecisionToo) {
  EncoderDecoder wide = random_model(60);
  EncoderDecoder model(wide.config());
  model.parameters().flat().copy_(wide.parameters().flat());
  const at::NoGradGuard no_graph;
  const Tensor hidden = at::rand({3, 8});
  const Tensor plain = model.logits(hidden);
  ops::MatrixPrecision precision(ops::Precision::int8, /*weights_stay=*/true);
  const ops::PrecisionGuard guard(precision);
  const Tensor& weight = model.parameters().at("output.weight").value;
  EXPECT_TRUE(model.logits(hidden).equal(ops::PackedLinear(weight, ops::Precision::int8)(hidden, Tensor(), false)));
  EXPECT_FALSE(model.logits(hidden).equal(plain));
}

TEST_F(Translate, RefusesTokenizersOfAnotherVocabulary) {
  const DataDirectory data = DataDirectory::open(directory_ / "data");
  EncoderDecoder model = random_model(data.source_vocabulary() + 1);
  EXPECT_THROW(translate(model, data.source_tokenizer(), data.target_tokenizer(), {"Hunde"}, {}), Error);
}

}  // namespace
}  // namespace plumb
