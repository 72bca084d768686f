// Vectors of texts from a model whose states reveal its input.
#include "plumb/decode/embed.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <mutex>

#include "support/errors.h"
#include "support/small_tokenizer.h"

namespace plumb {
namespace {

/// The state of a token is (token, position, 1) times the length of its sequence.
class Places final : public Embeds {
 public:
  Tensor hidden(const std::vector<int64_t>& tokens, const std::vector<int64_t>& segments, const Ragged& layout,
                ForwardContext&) override {
    EXPECT_TRUE(segments.empty());
    EXPECT_FALSE(at::GradMode::is_enabled());
    Tensor out = at::empty({layout.tokens(), 3}, at::kDouble);
    double* value = out.data_ptr<double>();
    for (int64_t s = 0; s < layout.sequences(); ++s) {
      for (int64_t t = layout.begin(s); t < layout.begin(s + 1); ++t) {
        const auto length = static_cast<double>(layout.length(s));
        *value++ = length * static_cast<double>(tokens[static_cast<size_t>(t)]);
        *value++ = length * static_cast<double>(t - layout.begin(s));
        *value++ = broken ? std::numeric_limits<double>::infinity() : length;
      }
    }
    const std::scoped_lock lock(mutex_);
    ++calls;
    return out;
  }

  int64_t calls = 0;
  bool broken = false;

 private:
  std::mutex mutex_;
};

class Embedding : public ::testing::Test {
 protected:
  /// BOS, the tokens of a text, and EOS.
  [[nodiscard]] std::vector<double> ids_of(const std::string& text) const {
    std::vector<double> ids = {static_cast<double>(tokenizer_.specials().bos)};
    for (const int32_t id : tokenizer_.encode(text)) ids.push_back(id);
    ids.push_back(tokenizer_.specials().eos);
    return ids;
  }

  [[nodiscard]] std::string error(const EmbedOptions& options) {
    return test::message_of([&] { (void)embed_texts(model_, tokenizer_, texts_, options); });
  }

  const Tokenizer tokenizer_ = test::small_tokenizer();
  const std::vector<std::string> texts_ = {"the cat sat on the mat", "", "a dog", "the dog sees the cat"};
  Places model_;
};

TEST_F(Embedding, PoolsTheStatesOfAllTokens) {
  for (const int64_t batch_tokens : {1, 12, 4096}) {
    EmbedOptions options;
    options.batch_tokens = batch_tokens;
    std::vector<int64_t> done;
    model_.calls = 0;
    const TextVectors found =
        embed_texts(model_, tokenizer_, texts_, options, [&done](int64_t texts) { done.push_back(texts); });
    EXPECT_EQ(found.truncated, 0);
    EXPECT_EQ(model_.calls, std::ssize(done));
    EXPECT_EQ(done.back(), std::ssize(texts_));
    EXPECT_TRUE(batch_tokens > 1 || model_.calls == std::ssize(texts_));
    ASSERT_EQ(found.vectors.sizes(), at::IntArrayRef({4, 3}));
    for (size_t i = 0; i < texts_.size(); ++i) {
      const std::vector<double> ids = ids_of(texts_[i]);
      const auto length = static_cast<double>(ids.size());
      double sum = 0;
      for (const double id : ids) sum += id;
      const Tensor row = found.vectors[static_cast<int64_t>(i)];
      EXPECT_NEAR(row[0].item<double>(), sum, 1e-12);  // the mean, times the length
      EXPECT_NEAR(row[1].item<double>(), length * (length - 1) / 2, 1e-12);
      EXPECT_EQ(row[2].item<double>(), length);
    }
  }
}

TEST_F(Embedding, NormalizesAndPoolsOtherwise) {
  EmbedOptions options;
  options.pooling = "last";
  options.normalize = true;
  const Tensor found = embed_texts(model_, tokenizer_, {"a dog"}, options).vectors[0];
  const double place = static_cast<double>(ids_of("a dog").size()) - 1, eos = tokenizer_.specials().eos;
  const double length = std::sqrt(eos * eos + place * place + 1);
  EXPECT_NEAR(found[0].item<double>(), eos / length, 1e-15);
  EXPECT_NEAR(found[1].item<double>(), place / length, 1e-15);
  EXPECT_NEAR(found[2].item<double>(), 1 / length, 1e-15);
}

TEST_F(Embedding, TruncatesBeforeTheLastSpecialToken) {
  EmbedOptions options;
  options.pooling = "last";
  options.max_tokens = 4;
  const TextVectors found = embed_texts(model_, tokenizer_, texts_, options);
  EXPECT_EQ(found.truncated, 2);  // not those of "", 2 tokens, and "a dog", 4
  ASSERT_EQ(tokenizer_.encode("a dog").size(), 2U);
  EXPECT_EQ(found.vectors[0][0].item<double>(), 4.0 * tokenizer_.specials().eos);
  EXPECT_EQ(found.vectors[0][2].item<double>(), 4);
  const IdsToEmbed cut = ids_to_embed(tokenizer_, texts_[0], options);
  const std::vector<int32_t> whole = tokenizer_.encode(texts_[0]);
  EXPECT_TRUE(cut.truncated);
  EXPECT_EQ(cut.ids, (std::vector<int32_t>{tokenizer_.specials().bos, whole[0], whole[1], tokenizer_.specials().eos}));
}

// Reads texts from their ends; a text that is too long loses the same tokens as in a forward model.
TEST_F(Embedding, ABackwardModelReadsTextsFromTheirEnds) {
  EmbedOptions options;
  options.backward = true;
  options.max_tokens = 5;
  const std::vector<int32_t> whole = tokenizer_.encode(texts_[0]);
  const Specials& specials = tokenizer_.specials();
  EXPECT_EQ(ids_to_embed(tokenizer_, texts_[0], options).ids,
            (std::vector<int32_t>{specials.bos, whole[2], whole[1], whole[0], specials.eos}));
}

TEST_F(Embedding, SaysWhatIsWrong) {
  EmbedOptions options;
  options.pooling = "none";
  EXPECT_CONTAINS(error(options), "yields no vector for a text");
  options = {};
  options.max_tokens = 2;
  EXPECT_CONTAINS(error(options), "besides the 2 special tokens");
  options = {};
  options.batch_tokens = 0;
  EXPECT_CONTAINS(error(options), "batch_tokens");
  options = {};
  options.as_tokenizer_says = true;  // this tokenizer adds none
  EXPECT_CONTAINS(error(options), "text 2 has no tokens");
  options = {};
  model_.broken = true;
  EXPECT_CONTAINS(error(options), "not finite");
}

}  // namespace
}  // namespace plumb
