// A language model made of random numbers, for tests of code that works on any generating model.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "plumb/base/random.h"
#include "plumb/model/capabilities.h"
#include "plumb/text/specials.h"

namespace plumb::test {

/// The tokens that each row has read.
class History final : public AttentionState {
 public:
  explicit History(size_t rows) : rows(rows) {}
  void reorder(const std::vector<int64_t>& order) override {
    std::vector<std::vector<int64_t>> moved;
    moved.reserve(order.size());
    for (const int64_t i : order) moved.push_back(rows.at(static_cast<size_t>(i)));
    rows = std::move(moved);
  }
  [[nodiscard]] int64_t bytes() const override { return 0; }
  std::vector<std::vector<int64_t>> rows;
};

/// The logits after a sequence are drawn from a generator seeded with a hash of the whole sequence.
class RandomModel final : public Generates {
 public:
  explicit RandomModel(uint64_t seed, int64_t vocabulary = 12, int64_t longest = std::numeric_limits<int64_t>::max())
      : seed_(seed), vocabulary_(vocabulary), longest_(longest) {}

  [[nodiscard]] std::vector<double> logits_after(const std::vector<int64_t>& sequence) const {
    return logits_of(hash_of(sequence));
  }

  Tensor read(DecoderState& state, const std::vector<int64_t>& tokens, const Ragged& layout) override {
    auto& rows = dynamic_cast<History&>(*state.self.at(0)).rows;
    EXPECT_EQ(layout.sequences(), static_cast<int64_t>(rows.size()));
    EXPECT_EQ(layout.tokens(), static_cast<int64_t>(tokens.size()));
    {
      const std::scoped_lock lock(mutex_);
      reads.push_back(layout);
    }
    Tensor hidden = at::empty({layout.tokens(), 1}, at::kDouble);
    for (int64_t r = 0; r < layout.sequences(); ++r) {
      std::vector<int64_t>& row = rows[static_cast<size_t>(r)];
      for (int64_t t = layout.begin(r); t < layout.begin(r + 1); ++t) {
        row.push_back(tokens[static_cast<size_t>(t)]);
        hidden.data_ptr<double>()[t] = static_cast<double>(hash_of(row));
      }
      EXPECT_LE(static_cast<int64_t>(row.size()), longest_);
    }
    return hidden;
  }

  [[nodiscard]] Tensor logits(const Tensor& hidden) const override {
    EXPECT_FALSE(at::GradMode::is_enabled());
    Tensor out = at::empty({hidden.size(0), vocabulary_}, at::kDouble);
    for (int64_t r = 0; r < hidden.size(0); ++r) {
      const std::vector<double> row = logits_of(static_cast<uint64_t>(hidden[r][0].item<double>()));
      std::copy(row.begin(), row.end(), out.data_ptr<double>() + r * vocabulary_);
    }
    return out;
  }

  [[nodiscard]] int64_t longest() const override { return longest_; }
  [[nodiscard]] int64_t vocabulary() const override { return vocabulary_; }

  DecoderState start(int64_t rows) override {
    DecoderState state;
    state.positions.assign(static_cast<size_t>(rows), 0);
    state.self.push_back(std::make_unique<History>(static_cast<size_t>(rows)));
    return state;
  }

  std::vector<Ragged> reads;  // the layouts of all calls
  double eos = 0;             // added to the logit of EOS
  bool broken = false;        // all logits are NaN

 private:
  /// 52 bits, which a double holds exactly.
  [[nodiscard]] uint64_t hash_of(const std::vector<int64_t>& sequence) const {
    uint64_t hash = seed_;
    for (const int64_t id : sequence) {
      const auto words = philox(hash, 0, static_cast<uint64_t>(id));
      hash = uint64_t{words[0]} << 32 | words[1];
    }
    return hash >> 12;
  }

  [[nodiscard]] std::vector<double> logits_of(uint64_t hash) const {
    Random random(hash, "random model");
    std::vector<double> logits(static_cast<size_t>(vocabulary_));
    for (double& logit : logits) logit = broken ? std::nan("") : 1.5 * random.normal();
    logits[static_cast<size_t>(Specials().eos)] += eos;
    return logits;
  }

  uint64_t seed_;
  int64_t vocabulary_;
  int64_t longest_;
  std::mutex mutex_;
};

}  // namespace plumb::test
