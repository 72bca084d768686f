// Decoding step by step gives the hidden states of decoding the whole prefix.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "plumb/base/random.h"
#include "plumb/model/decoder.h"
#include "plumb/model/encoder_decoder.h"
#include "plumb/nn/attention/attention.h"
#include "plumb/nn/attention/dpfp.h"
#include "plumb/nn/norm/norm.h"

namespace plumb {
namespace {

/// Random everywhere, gains and biases too: a parameter left at 0 or 1 would hide a mistake.
void fill(const Model& model) {
  Random random(5, "incremental test");
  const Tensor flat = model.parameters().flat();
  for (int64_t i = 0; i < flat.numel(); ++i) flat.data_ptr<double>()[i] = 0.3 * random.normal();
}

ModelConfig small() {
  ModelConfig config;
  config.d_model = 12;
  config.feed_forward = 20;
  config.heads = 2;
  config.encoder_layers = 2;
  config.decoder_layers = 3;
  config.source_vocabulary = config.target_vocabulary = 11;
  config.max_positions = 24;
  return config;
}

/// Rows with the tokens that each has read; every one is decoded anew as a whole and compared in its last position.
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
      // Relative to the largest value: schemes that scale x without a norm that undoes it reach millions.
      ASSERT_LT(difference, 1e-12 * std::max(1.0, expected.abs().max().item<double>()))
          << "row " << r << ", position " << rows_[r].tokens.size() - 1;
    }
  }

  /// As reorder does: row i continues row order[i].
  void reorder(const std::vector<int64_t>& order, const std::vector<int64_t>& rows_per_source) {
    std::vector<Row> moved;
    for (const int64_t i : order) moved.push_back(rows_[static_cast<size_t>(i)]);
    rows_ = std::move(moved);
    state_.reorder(order, rows_per_source);
  }

 private:
  struct Row {
    int64_t sentence;
    std::vector<int64_t> tokens;
  };

  /// The last hidden state of the row's tokens, decoded at once with the memory of its sentence alone.
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

/// Rows branch, change places, and leave, a whole sentence among them.
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
        config.options = {
            {"dpfp",
             Options(DpfpOptions{11})}};  // every query shares features with some key: no quotient of rounding errors
        expect_equal(config);
      }
    }
  }
}

/// A decoder's rows branch and end; each is compared with its whole sequence.
TEST(Incremental, DecoderOfEveryAttentionAndPosition) {
  for (const std::string& attention : attentions().names()) {
    for (const std::string& encoding : positions().names()) {
      const bool biased = encoding == "alibi" || encoding == "t5" || encoding == "transformer-xl";
      if (biased && attention != "softmax") continue;
      SCOPED_TRACE(fmt::format("{} {}", attention, encoding));
      ModelConfig config = small();
      config.kind = "decoder";
      config.attention = attention;
      config.positions = encoding;
      config.options = {{"dpfp", Options(DpfpOptions{11})}};
      Decoder model(config, at::kDouble);
      fill(model);
      Random random(1, "tokens");
      const at::NoGradGuard no_graph;
      DecoderState state = model.start(2);
      std::vector<std::vector<int64_t>> rows(2);
      for (int step = 0; step < 9; ++step) {
        std::vector<int64_t> tokens;
        for (auto& row : rows) {
          row.push_back(row.empty() ? kBos : static_cast<int64_t>(random.below(11)));
          tokens.push_back(row.back());
        }
        const Tensor hidden = model.step(state, tokens);
        for (size_t r = 0; r < rows.size(); ++r) {
          ForwardContext context;
          const Ragged layout({static_cast<int64_t>(rows[r].size())});
          const Tensor whole = model.hidden(rows[r], layout, context)[-1];
          ASSERT_LT((hidden[static_cast<int64_t>(r)] - whole).abs().max().item<double>(), 1e-11) << step << ' ' << r;
        }
        if (step == 3) {
          state.reorder({1, 1, 0}, {1, 1, 1});
          rows = {rows[1], rows[1], rows[0]};
        }
        if (step == 6) {
          state.reorder({2, 0}, {1, 1});
          rows = {rows[2], rows[0]};
        }
      }
    }
  }
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
