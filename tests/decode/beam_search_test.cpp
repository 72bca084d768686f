// Beam search compared with exhaustive enumeration, a greedy loop, and a plain beam search that decodes every prefix
// from the beginning.
#include "plumb/decode/beam_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "plumb/base/error.h"
#include "plumb/base/random.h"
#include "plumb/decode/translate.h"
#include "plumb/model/encoder_decoder.h"
#include "support/batches.h"
#include "support/errors.h"
#include "support/gradcheck.h"
#include "support/small_model.h"

namespace plumb {
namespace {

using Ids = std::vector<int32_t>;

/// A model whose next tokens depend strongly on source and prefix.
EncoderDecoder random_model(uint64_t seed, int64_t vocabulary = 7, const std::string& positions = "sinusoidal") {
  ModelConfig config = test::small_model("encoder-decoder", 2, vocabulary);
  config.share_embeddings = "none";
  config.positions = positions;
  config.max_positions = 9;
  EncoderDecoder model(config, at::kDouble);
  model.parameters().flat().copy_(testing::random_tensor({model.parameters().count()}, seed, 0.5));
  return model;
}

/// log p(next token) after a prefix, (vocabulary), by decoding the whole prefix.
class Oracle {
 public:
  Oracle(EncoderDecoder& model, const Ids& source) : model_(model) {
    std::vector<int64_t> ids(source.begin(), source.end());
    ids.push_back(kEos);
    layout_ = Ragged({static_cast<int64_t>(ids.size())});
    const at::NoGradGuard no_graph;
    memory_ = model.encode(ids, layout_, context_);
  }

  std::vector<double> next(const Ids& prefix) {
    std::vector<int64_t> target = {kBos};
    target.insert(target.end(), prefix.begin(), prefix.end());
    const at::NoGradGuard no_graph;
    const Tensor hidden =
        model_.decode(target, Ragged({static_cast<int64_t>(target.size())}), memory_, layout_, context_);
    const Tensor scores = at::log_softmax(model_.logits(hidden)[-1], 0).contiguous();
    return {scores.data_ptr<double>(), scores.data_ptr<double>() + scores.size(0)};
  }

 private:
  EncoderDecoder& model_;
  ForwardContext context_;
  Ragged layout_;
  Tensor memory_;
};

struct Scored {
  Ids ids;
  double sum = 0;
  double score = -std::numeric_limits<double>::infinity();
};

double penalized(double sum, const Ids& ids, double length_penalty) {
  return sum / std::pow(static_cast<double>(ids.size()) + 1.0, length_penalty);
}

/// The best of all sequences of at most `limit` tokens that begin with `prefix`.
void enumerate(Oracle& oracle, const Ids& prefix, double sum, int64_t limit, double length_penalty, Scored& best) {
  const std::vector<double> next = oracle.next(prefix);
  const double score = penalized(sum + next[kEos], prefix, length_penalty);
  if (score > best.score) best = {prefix, sum + next[kEos], score};
  if (static_cast<int64_t>(prefix.size()) == limit) return;
  for (int32_t id = kEos + 1; id < static_cast<int32_t>(next.size()); ++id) {
    Ids longer = prefix;
    longer.push_back(id);
    enumerate(oracle, longer, sum + next[static_cast<size_t>(id)], limit, length_penalty, best);
  }
}

Ids greedy(Oracle& oracle, int64_t limit) {
  Ids ids;
  while (static_cast<int64_t>(ids.size()) < limit) {
    const std::vector<double> next = oracle.next(ids);
    const auto best = static_cast<int32_t>(std::max_element(next.begin() + kEos, next.end()) - next.begin());
    if (best == kEos) break;
    ids.push_back(best);
  }
  return ids;
}

/// The rules in beam_search.h, literally, without early stopping.
Ids plain_beam_search(Oracle& oracle, int64_t limit, int64_t beam, double length_penalty) {
  std::vector<Scored> active(1);
  Scored best;
  int64_t finished = 0;
  const auto finish = [&](const Ids& ids, double sum) {
    const double score = penalized(sum, ids, length_penalty);
    ++finished;
    if (score > best.score) best = {ids, sum, score};
  };
  for (int64_t length = 0; !active.empty() && finished < beam; ++length) {
    std::vector<Scored> all;
    for (const Scored& hypothesis : active) {
      const std::vector<double> next = oracle.next(hypothesis.ids);
      if (length == limit) finish(hypothesis.ids, hypothesis.sum + next[kEos]);
      for (int32_t id = kEos; id < static_cast<int32_t>(next.size()) && length < limit; ++id) {
        Scored longer = hypothesis;
        longer.ids.push_back(id);
        longer.sum += next[static_cast<size_t>(id)];
        all.push_back(longer);
      }
    }
    std::sort(all.begin(), all.end(), [](const Scored& a, const Scored& b) { return a.sum > b.sum; });
    if (static_cast<int64_t>(all.size()) > 2 * beam) all.resize(static_cast<size_t>(2 * beam));
    active.clear();
    for (size_t rank = 0; rank < all.size(); ++rank) {
      Scored& candidate = all[rank];
      if (candidate.ids.back() != kEos) {
        if (static_cast<int64_t>(active.size()) < beam) active.push_back(candidate);
      } else if (static_cast<int64_t>(rank) < beam && finished < beam) {
        candidate.ids.pop_back();
        finish(candidate.ids, candidate.sum);
      }
    }
  }
  return best.ids;
}

std::vector<Ids> random_sources(int64_t vocabulary, size_t count) {
  Random random(3, "sources");
  std::vector<Ids> sources(count);
  for (Ids& source : sources) {
    source.resize(1 + random.below(6));
    for (int32_t& id : source) id = static_cast<int32_t>(3 + random.below(static_cast<uint64_t>(vocabulary) - 3));
  }
  return sources;
}

DecodeOptions options_of(int64_t beam, double length_penalty, int64_t limit) {
  DecodeOptions options;
  options.beam = beam;
  options.length_penalty = length_penalty;
  options.length_factor = 0;
  options.length_extra = limit;
  return options;
}

TEST(BeamSearch, AWideBeamFindsTheBestOfAllSequences) {
  size_t not_greedy = 0;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    EncoderDecoder model = random_model(seed);
    const std::vector<Ids> sources = random_sources(7, 4);
    for (const double length_penalty : {0.0, 1.0, 1.6}) {
      const std::vector<Ids> found = beam_search(model, sources, options_of(700, length_penalty, 4));
      for (size_t i = 0; i < sources.size(); ++i) {
        Oracle oracle(model, sources[i]);
        Scored best;
        enumerate(oracle, {}, 0, 4, length_penalty, best);
        EXPECT_EQ(found[i], best.ids) << "seed " << seed << ", sentence " << i << ", length penalty " << length_penalty;
        not_greedy += best.ids != greedy(oracle, 4) ? 1 : 0;
      }
    }
  }
  EXPECT_GT(not_greedy, 5U);  // otherwise the search had nothing to find
}

TEST(BeamSearch, BeamOneIsGreedy) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    EncoderDecoder model = random_model(seed, 12);
    const std::vector<Ids> sources = random_sources(12, 6);
    const std::vector<Ids> found = beam_search(model, sources, options_of(1, 1.0, 7));
    for (size_t i = 0; i < sources.size(); ++i) {
      Oracle oracle(model, sources[i]);
      EXPECT_EQ(found[i], greedy(oracle, 7));
    }
  }
}

TEST(BeamSearch, FollowsItsRule) {
  size_t different = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    EncoderDecoder model = random_model(seed, 12);
    const std::vector<Ids> sources = random_sources(12, 6);
    for (const int64_t beam : {2, 3, 5}) {
      for (const double length_penalty : {0.0, 0.6, 1.0, 2.0}) {
        const std::vector<Ids> found = beam_search(model, sources, options_of(beam, length_penalty, 8));
        for (size_t i = 0; i < sources.size(); ++i) {
          Oracle oracle(model, sources[i]);
          EXPECT_EQ(found[i], plain_beam_search(oracle, 8, beam, length_penalty))
              << "beam " << beam << ", seed " << seed;
          different += found[i] != greedy(oracle, 8) ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(different, 50U);
}

TEST(BeamSearch, TheBatchDoesNotMatter) {
  EncoderDecoder model = random_model(4, 20);
  const std::vector<Ids> sources = random_sources(20, 25);
  for (const int64_t beam : {1, 4}) {
    DecodeOptions options;
    options.beam = beam;
    options.length_extra = 3;
    const std::vector<Ids> together = beam_search(model, sources, options);
    for (size_t i = 0; i < sources.size(); ++i) EXPECT_EQ(beam_search(model, {sources[i]}, options)[0], together[i]);
    for (const int64_t batch_tokens : {1, 60, 100000}) {
      options.batch_tokens = batch_tokens;
      EXPECT_EQ(translate(model, sources, options), together);
    }
  }
}

TEST(BeamSearch, LimitOfTheLengthFollowsTheSource) {
  EncoderDecoder model = random_model(1);
  const Tensor output = model.parameters().at("output.weight").value.detach();  // (vocabulary, d_model)
  output.narrow(0, 0, 5).zero_();
  output[6].copy_(-output[5]);  // either 5 or 6 has a positive score, EOS has 0: it is never the best
  DecodeOptions options;
  options.beam = 1;
  options.length_factor = 1.5;
  options.length_extra = 2;
  const std::vector<Ids> found = beam_search(model, {{3}, {3, 4, 5}, {}, {5, 5, 5, 5}}, options);
  EXPECT_EQ(found[0].size(), 3U);
  EXPECT_EQ(found[1].size(), 6U);
  EXPECT_EQ(found[2].size(), 0U);
  EXPECT_EQ(found[3].size(), 8U);
}

TEST(BeamSearch, LearnedPositionsEndTheOutputAndCutALongSource) {
  EncoderDecoder model = random_model(2, 7, "learned");  // of 9 positions
  DecodeOptions options = options_of(3, 1.0, 50);
  for (const Ids& ids : beam_search(model, {{3, 4}, {5}}, options)) EXPECT_LE(ids.size(), 8U);
  const std::vector<Ids> fitting = translate(model, {{3}, Ids(8, 4)}, options);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(translate(model, {{3}, Ids(9, 4)}, options), fitting);
  EXPECT_CONTAINS(::testing::internal::GetCapturedStderr(),
                  "warning: sentence 2 has 9 tokens; only the first 8 are translated");
}

// Wherever the special tokens are among the ids, the translations are those of the same model in the usual order.
TEST(BeamSearch, SpecialTokensMayHaveAnyIds) {
  for (const Ids& moved : {Ids{0, 1, 6, 2, 3, 4, 5}, Ids{6, 3, 5, 0, 1, 2, 4}, Ids{6, 5, 0, 1, 2, 3, 4}}) {
    EncoderDecoder usual = random_model(4), other = random_model(4);
    for (const char* name : {"tgt_embed.weight", "output.weight"}) {
      const Tensor from = usual.parameters().at(name).value.detach(), to = other.parameters().at(name).value.detach();
      for (int64_t id = 0; id < 7; ++id) to[moved[static_cast<size_t>(id)]].copy_(from[id]);
    }
    for (const int64_t beam : {1, 3}) {
      DecodeOptions options = options_of(beam, 1.0, 6);
      std::vector<Ids> expected = beam_search(usual, {{3, 4}, {5}, {6, 3, 3}}, options);
      for (Ids& ids : expected) {
        for (int32_t& id : ids) id = moved[static_cast<size_t>(id)];
      }
      options.target.pad = moved[0];
      options.target.bos = moved[1];
      options.target.eos = moved[2];
      EXPECT_EQ(beam_search(other, {{3, 4}, {5}, {6, 3, 3}}, options), expected) << "EOS " << moved[2];
    }
  }
}

TEST(BeamSearch, IdsBeyondTheTokenizersAreNeverPutOut) {
  for (const int64_t beam : {1, 3}) {
    EncoderDecoder model = random_model(9);
    const Tensor output = model.parameters().at("output.weight").value.detach();
    output[6].copy_(2 * output[5]);  // better than 5 wherever 5 is likely
    DecodeOptions options = options_of(beam, 1.0, 6);
    const auto put_out = [&] {
      int64_t count = 0;
      for (const Ids& ids : beam_search(model, {{3, 4}, {5}, {5, 3, 3}}, options))
        count += std::count(ids.begin(), ids.end(), 6);
      return count;
    };
    EXPECT_GT(put_out(), 0);
    options.target_pieces = 6;
    EXPECT_EQ(put_out(), 0);
  }
}

TEST(BeamSearch, ALongSourceIsCut) {
  EncoderDecoder model = random_model(5, 12);
  DecodeOptions options;
  options.longest_source = 4;
  const std::vector<Ids> found = translate(model, {{4, 5, 6, 7, 8, 9, 10}, {4, 5, 6, 7}}, options);
  EXPECT_EQ(found[0], found[1]);
}

TEST(BeamSearch, ADivergedModelIsAnError) {
  EncoderDecoder model = random_model(1);
  model.parameters().flat().fill_(std::numeric_limits<double>::quiet_NaN());
  for (const int64_t beam : {1, 3}) EXPECT_THROW(beam_search(model, {{4}}, options_of(beam, 1.0, 5)), Error);
}

/// The same weights in float32, to which the precisions apply.
EncoderDecoder in_float32(const EncoderDecoder& model) {
  EncoderDecoder narrow(model.config(), at::kFloat);
  narrow.parameters().flat().copy_(model.parameters().flat());
  return narrow;
}

TEST(BeamSearch, ADamagedParameterIsAnErrorInEveryPrecision) {
  for (const char* precision : {"float64", "float32", "bf16", "int8"}) {
    const bool wide = precision == std::string("float64");
    EncoderDecoder model = wide ? random_model(1) : in_float32(random_model(1));
    for (const Parameter& parameter : model.parameters().all()) {
      // Damages all rows of an embedding: a token that never occurs does no harm.
      const Tensor value = parameter.value.detach().view({-1});
      const Tensor damaged = parameter.role == Role::embedding ? value : value.narrow(0, value.size(0) / 2, 1);
      const Tensor before = damaged.clone();
      damaged.fill_(std::numeric_limits<double>::quiet_NaN());
      for (const int64_t beam : {1, 3}) {
        SCOPED_TRACE(::testing::Message() << parameter.name << ", beam " << beam << ", " << precision);
        DecodeOptions options = options_of(beam, 1.0, 5);
        if (!wide) options.precision = precision;
        const Error error = test::error_of([&] { (void)translate(model, {{4, 5}}, options); });
        const std::string what = error.what();
        EXPECT_TRUE(what.starts_with("the model gives") || what.starts_with("oneDNN refused")) << what;
      }
      damaged.copy_(before);
    }
  }
}

TEST(BeamSearch, ATokenWithoutAScoreIsAnError) {
  for (const double value : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    EncoderDecoder model = random_model(1);
    model.parameters().at("output.weight").value.detach()[5].fill_(value);
    for (const int64_t beam : {1, 3}) EXPECT_THROW(beam_search(model, {{4}}, options_of(beam, 1.0, 5)), Error);
  }
}

TEST(BeamSearch, ImpossibleOptions) {
  EncoderDecoder model = random_model(1);
  EXPECT_THROW(beam_search(model, {{4}}, options_of(0, 1.0, 5)), Error);
  EXPECT_THROW(beam_search(model, {{4}}, options_of(2, -1.0, 5)), Error);
  EXPECT_THROW(beam_search(model, {{4}}, options_of(2, 1.0, -5)), Error);
  EXPECT_THROW(translate(model, {}, options_of(0, 1.0, 5)), Error);
  EXPECT_TRUE(translate(model, {}, options_of(2, 1.0, 5)).empty());
}

}  // namespace
}  // namespace plumb
