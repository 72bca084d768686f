// Incremental decoding gives the same hidden states as decoding the entire prefix.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "plumb/base/error.h"
#include "plumb/base/random.h"
#include "plumb/model/decoder.h"
#include "plumb/model/encoder_decoder.h"
#include "plumb/nn/attention/attention.h"
#include "plumb/nn/attention/dpfp.h"
#include "plumb/nn/norm/norm.h"
#include "support/batches.h"
#include "support/gradcheck.h"
#include "support/small_model.h"

namespace plumb {
namespace {

/// Random everywhere, including gains and biases: a parameter left at 0 or 1 would hide a mistake.
void fill(const Model& model) {
  model.parameters().flat().copy_(testing::random_tensor({model.parameters().count()}, 5, 0.3));
}

ModelConfig small() {
  ModelConfig config = test::small_model("encoder-decoder");
  config.d_model = 12;  // heads of six elements, not a whole vector
  config.decoder_layers = 3;
  return config;
}

/// All rotations of DPFP: every query shares features with some key, so nothing is divided by rounding error.
VariantOptions all_rotations() { return {{"dpfp", Options(DpfpOptions{11})}}; }

/// Rows with the tokens that each has read. Each row is decoded again as a whole and compared at its last position.
class Stepwise {
 public:
  explicit Stepwise(const ModelConfig& config) : model_(config, at::kDouble) {
    fill(model_);
    source_ = {4, 5, 6, 7, 2, 8, 2, 9, 10, 3, 2};
    layout_ = Ragged({5, 2, 4});
    const at::NoGradGuard no_graph;
    memory_ = model_.encode(source_, layout_, context_);
    state_ = model_.start(memory_, layout_);
    rows_ = {{0, {}}, {1, {}}, {2, {}}};
  }

  void step() {
    std::vector<int64_t> tokens;
    for (Row& row : rows_) {
      row.tokens.push_back(row.tokens.empty() ? kBos : static_cast<int64_t>(random_.below(11)));
      tokens.push_back(row.tokens.back());
    }
    const Tensor hidden = model_.step(state_, tokens);
    ASSERT_EQ(hidden.size(0), static_cast<int64_t>(rows_.size()));
    for (size_t r = 0; r < rows_.size(); ++r) {
      const Tensor expected = whole(rows_[r]);
      const double difference = (hidden.select(0, static_cast<int64_t>(r)) - expected).abs().max().item<double>();
      // Relative to the largest value: schemes that scale x without a norm to undo it reach millions.
      ASSERT_LT(difference, 1e-12 * std::max(1.0, expected.abs().max().item<double>()))
          << "row " << r << ", position " << rows_[r].tokens.size() - 1;
    }
  }

  /// Like DecoderState::reorder: row i continues row order[i].
  void reorder(const std::vector<int64_t>& order, const std::vector<int64_t>& rows_per_source) {
    std::vector<Row> moved;
    for (const int64_t i : order) moved.push_back(rows_[static_cast<size_t>(i)]);
    rows_ = std::move(moved);
    state_.reorder(order, rows_per_source);
  }

  DecoderState& state() { return state_; }

 private:
  struct Row {
    int64_t sentence;
    std::vector<int64_t> tokens;
  };

  /// The last hidden state of the row's tokens, decoded at once with its own sentence's memory only.
  Tensor whole(const Row& row) {
    const at::NoGradGuard no_graph;
    const Tensor memory = memory_.narrow(0, layout_.begin(row.sentence), layout_.length(row.sentence));
    const Ragged target({static_cast<int64_t>(row.tokens.size())});
    return model_.decode(row.tokens, target, memory, Ragged({memory.size(0)}), context_)[-1];
  }

  EncoderDecoder model_;
  ForwardContext context_;
  std::vector<int64_t> source_;
  Ragged layout_;
  Tensor memory_;
  DecoderState state_;
  std::vector<Row> rows_;
  Random random_{1, "tokens"};
};

TEST(Incremental, RowsKeepTheirSources) {
  Stepwise stepwise(small());
  stepwise.reorder({0, 0, 1, 2, 2}, {2, 1, 2});
  using Rows = std::vector<int64_t>;
  for (const auto& [order, rows] : {std::pair<Rows, Rows>{{0, 5}, {1, 0, 1}},
                                    {{-1}, {1, 0, 0}},
                                    {{0, 1}, {2, 0}},  // one source too few
                                    {{0, 1}, {}},
                                    {{0, 1}, {1, 0, 0}},  // a row without a source
                                    {{0}, {1, 1, 0}},
                                    {{0, 2}, {2, 0, 0}},  // a row of another source
                                    {{3, 2}, {0, 1, 1}},
                                    {{0, 1}, {3, -1, 0}}}) {
    EXPECT_THROW(stepwise.state().reorder(order, rows), Error);
  }
  ASSERT_NO_FATAL_FAILURE(stepwise.step());  // as before
}

/// Rows branch, swap and leave, including an entire sentence.
void expect_equal(const ModelConfig& config) {
  Stepwise stepwise(config);
  for (int i = 0; i < 3; ++i) ASSERT_NO_FATAL_FAILURE(stepwise.step());
  stepwise.reorder({0, 0, 0, 1, 2, 2}, {3, 1, 2});
  for (int i = 0; i < 3; ++i) ASSERT_NO_FATAL_FAILURE(stepwise.step());
  stepwise.reorder({2, 0, 5, 4, 5}, {2, 0, 3});
  for (int i = 0; i < 2; ++i) ASSERT_NO_FATAL_FAILURE(stepwise.step());
  stepwise.reorder({1, 0, 3}, {2, 0, 1});
  for (int i = 0; i < 3; ++i) ASSERT_NO_FATAL_FAILURE(stepwise.step());
}

class SchemeAndNorm : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(SchemeAndNorm, StepsEqualTheWhole) {
  ModelConfig config = small();
  std::tie(config.residual, config.norm) = GetParam();
  expect_equal(config);
}

std::vector<std::string> schemes() {
  std::vector<std::string> all = residual_schemes().names();
  for (const char* strings :
       {"n/da", "/dan", "/adn", "/nda", "/dna", "dn/a", "nd/da", "d/da", "/da", "/d", "n/d", "n/dna", "rn/dzrh"})
    all.emplace_back(strings);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Decoding, SchemeAndNorm,
                         ::testing::Combine(::testing::ValuesIn(schemes()), ::testing::ValuesIn(norms().names())),
                         [](const auto& info) {
                           std::string name =
                               fmt::format("{}_with_{}", std::get<0>(info.param), std::get<1>(info.param));
                           for (char& c : name) {
                             if (c == '/') c = 'T';
                             if (c == '-') c = '_';
                           }
                           return name;
                         });

TEST(Incremental, EveryPositionAndSharing) {
  for (const std::string& positions : positions().names()) {
    for (const char* share : {"none", "target", "all"}) {
      SCOPED_TRACE(positions + " " + share);
      ModelConfig config = small();
      config.positions = positions;
      config.share_embeddings = share;
      expect_equal(config);
    }
  }
}

TEST(Incremental, EveryAttentionWithQueryKeyNormAndRotation) {
  for (const std::string& attention : attentions().names()) {
    for (const char* qk_norm : {"none", "rmsnorm"}) {
      for (const char* positions : {"sinusoidal", "rotary", "none"}) {
        SCOPED_TRACE(fmt::format("{} {} {}", attention, qk_norm, positions));
        ModelConfig config = small();
        config.attention = attention;
        config.qk_norm = qk_norm;
        config.positions = positions;
        config.options = all_rotations();
        expect_equal(config);
      }
    }
  }
}

TEST(Incremental, EveryAttentionOfTheNormalizedTransformer) {
  for (const std::string& attention : attentions().names()) {
    SCOPED_TRACE(attention);
    ModelConfig config = small();
    config.residual = "ngpt";
    config.attention = attention;
    config.positions = "rotary";
    config.options = all_rotations();
    expect_equal(config);
  }
}

/// A decoder whose rows read pieces of different lengths, branch and end; every token's hidden state is compared with
/// that of the row's entire sequence.
class Piecewise {
 public:
  explicit Piecewise(const ModelConfig& config) : model_(config, at::kDouble), state_(model_.start(3)), rows_(3) {
    fill(model_);
  }

  void read(const std::vector<int64_t>& lengths) {
    ASSERT_EQ(lengths.size(), rows_.size());
    std::vector<int64_t> tokens;
    for (size_t r = 0; r < rows_.size(); ++r) {
      for (int64_t i = 0; i < lengths[r]; ++i) {
        rows_[r].push_back(static_cast<int64_t>(random_.below(11)));
        tokens.push_back(rows_[r].back());
      }
    }
    const at::NoGradGuard no_graph;
    const Ragged layout(lengths);
    const Tensor hidden = model_.read(state_, tokens, layout);
    ASSERT_EQ(hidden.size(0), layout.tokens());
    for (size_t r = 0; r < rows_.size(); ++r) {
      const auto length = static_cast<int64_t>(rows_[r].size());
      ASSERT_EQ(state_.positions[r], length);
      if (lengths[r] == 0) continue;
      ForwardContext context;
      const Tensor whole = model_.hidden(rows_[r], Ragged({length}), context);
      const Tensor expected = whole.narrow(0, length - lengths[r], lengths[r]);
      const Tensor found = hidden.narrow(0, layout.begin(static_cast<int64_t>(r)), lengths[r]);
      ASSERT_LT((found - expected).abs().max().item<double>(),
                1e-12 * std::max(1.0, expected.abs().max().item<double>()))
          << "row " << r << ", " << lengths[r] << " of " << length << " tokens";
    }
  }
  void reorder(const std::vector<int64_t>& order) {
    std::vector<std::vector<int64_t>> moved;
    for (const int64_t row : order) moved.push_back(rows_[static_cast<size_t>(row)]);
    rows_ = std::move(moved);
    state_.reorder(order);
  }

 private:
  Decoder model_;
  DecoderState state_;
  std::vector<std::vector<int64_t>> rows_;
  Random random_{1, "tokens"};
};

void expect_pieces_equal(ModelConfig config) {
  config.kind = "decoder";
  {
    Piecewise rows(config);  // a ragged prompt first
    ASSERT_NO_FATAL_FAILURE(rows.read({4, 1, 3}));
    ASSERT_NO_FATAL_FAILURE(rows.read({1, 1, 1}));
    ASSERT_NO_FATAL_FAILURE(rows.read({2, 0, 3}));
    rows.reorder({2, 0, 0, 1});
    ASSERT_NO_FATAL_FAILURE(rows.read({1, 1, 1, 1}));
    ASSERT_NO_FATAL_FAILURE(rows.read({0, 1, 0, 1}));
    ASSERT_NO_FATAL_FAILURE(rows.read({1, 4, 2, 5}));
    rows.reorder({3, 1});
    ASSERT_NO_FATAL_FAILURE(rows.read({1, 1}));
  }
  Piecewise rows(config);  // one token first, or none
  ASSERT_NO_FATAL_FAILURE(rows.read({1, 1, 1}));
  rows.reorder({1, 1, 0});
  ASSERT_NO_FATAL_FAILURE(rows.read({3, 2, 1}));
  Piecewise late(config);
  ASSERT_NO_FATAL_FAILURE(late.read({0, 3, 0}));
  ASSERT_NO_FATAL_FAILURE(late.read({2, 1, 1}));
  ASSERT_NO_FATAL_FAILURE(late.read({1, 1, 1}));
}

bool adds_to_scores(const std::string& encoding) {
  return encoding == "alibi" || encoding == "t5" || encoding == "transformer-xl";
}

TEST(Incremental, DecoderOfEveryAttentionAndPosition) {
  for (const std::string& attention : attentions().names()) {
    for (const std::string& encoding : positions().names()) {
      if (adds_to_scores(encoding) && attention != "softmax") continue;
      SCOPED_TRACE(fmt::format("{} {}", attention, encoding));
      ModelConfig config = small();
      config.attention = attention;
      config.positions = encoding;
      config.options = all_rotations();
      ASSERT_NO_FATAL_FAILURE(expect_pieces_equal(config));
    }
  }
}

TEST(Incremental, GroupsOfHeadsOfAnySize) {
  for (const std::string& attention : attentions().names()) {
    for (const int64_t kv_heads : {1, 2}) {
      for (const std::string& encoding : positions().names()) {
        if (adds_to_scores(encoding) ? attention != "softmax" : encoding != "rotary" && encoding != "sinusoidal")
          continue;
        SCOPED_TRACE(fmt::format("{} {} {}", attention, kv_heads, encoding));
        ModelConfig config = small();
        config.attention = attention;
        config.positions = encoding;
        config.options = all_rotations();
        config.heads = 4;
        config.kv_heads = kv_heads;
        config.head_size = 5;
        config.qk_norm = kv_heads == 1 ? "none" : "layernorm";
        config.value_residual = kv_heads == 2;
        ASSERT_NO_FATAL_FAILURE(expect_pieces_equal(config));
        ASSERT_NO_FATAL_FAILURE(expect_equal(config));
      }
    }
  }
}

TEST(Incremental, EveryKindOfRotation) {
  for (const char* options : {"interleaved = false", "features = 4", "features = 4\ninterleaved = false", "theta = 3.0",
                              "scaling = \"linear\"\nfactor = 2.0", "scaling = \"ntk\"\nfactor = 2.0",
                              "scaling = \"llama3\"\nfactor = 2.0\noriginal_length = 20"}) {
    SCOPED_TRACE(options);
    ModelConfig config = small();
    config.positions = "rotary";
    Config::from_string(std::string("[model.rotary]\n") + options, "test").read("model", config);
    ASSERT_NO_FATAL_FAILURE(expect_pieces_equal(config));
    ASSERT_NO_FATAL_FAILURE(expect_equal(config));
  }
}

TEST(Incremental, ValueResidualAndGateOfEveryAttention) {
  for (const std::string& attention : attentions().names()) {
    for (bool ModelConfig::*part : {&ModelConfig::value_residual, &ModelConfig::attention_gate}) {
      SCOPED_TRACE(attention);
      ModelConfig config = small();
      config.attention = attention;
      config.*part = true;
      config.options = all_rotations();
      ASSERT_NO_FATAL_FAILURE(expect_pieces_equal(config));
      ASSERT_NO_FATAL_FAILURE(expect_equal(config));
    }
  }
}

TEST(Incremental, ParallelSubLayersOfEveryScheme) {
  for (const std::string& residual : schemes()) {
    SCOPED_TRACE(residual);
    ModelConfig config = small();
    config.residual = residual;
    config.parallel = true;
    ASSERT_NO_FATAL_FAILURE(expect_pieces_equal(config));
    ASSERT_NO_FATAL_FAILURE(expect_equal(config));
  }
}

TEST(Incremental, WholeArchitectures) {
  const std::vector<std::string> architectures = {// Llama
                                                  R"(norm = "rmsnorm"
positions = "rotary"
activation = "swiglu"
feed_forward_bias = false
attention_bias = "none"
heads = 4
kv_heads = 2
embedding_factor = 1.0
share_embeddings = "none"
[model.rotary]
interleaved = false)",
                                                  // GPT-2
                                                  R"(positions = "learned"
activation = "gelu-tanh"
embedding_factor = 1.0)",
                                                  // GPT-J
                                                  R"(parallel = true
positions = "rotary"
activation = "gelu-tanh"
attention_bias = "none"
output_bias = true
share_embeddings = "none"
[model.rotary]
features = 4)",
                                                  // Options that none of them have
                                                  R"(residual = "post-ln"
embedding_norm = true
attention_bias = "qkv"
activation = "geglu"
qk_norm = "rmsnorm"
value_residual = true)"};
  for (const std::string& architecture : architectures) {
    SCOPED_TRACE(architecture);
    ModelConfig config = small();
    Config::from_string("[model]\n" + architecture, "test").read("model", config);
    ASSERT_NO_FATAL_FAILURE(expect_pieces_equal(config));
    ASSERT_NO_FATAL_FAILURE(expect_equal(config));
  }
}

TEST(Incremental, RefusesWhatDoesNotFitTheRows) {
  ModelConfig config = small();
  config.kind = "decoder";
  config.positions = "learned";
  Decoder model(config, at::kDouble);
  EXPECT_EQ(model.longest(), config.max_positions);
  DecoderState state = model.start(2);
  EXPECT_THROW(model.step(state, {1}), Error);
  EXPECT_THROW(model.read(state, {1, 2, 3}, Ragged({1, 1, 1})), Error);
  EXPECT_NO_THROW(model.read(state, std::vector<int64_t>(25, 1), Ragged({24, 1})));
  EXPECT_THROW(model.step(state, {1, 1}), Error);  // position 25 of 24
}

TEST(Incremental, OneHeadAndHeadsLargerThanAVector) {
  for (const int64_t heads : {1, 3}) {
    ModelConfig config = small();
    config.d_model = 129;
    config.heads = heads;
    expect_equal(config);
  }
}

}  // namespace
}  // namespace plumb
