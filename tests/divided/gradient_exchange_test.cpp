// Gradients summed in buckets compared with sums of each rank's own gradients.
#include "plumb/divided/gradient_exchange.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "plumb/base/error.h"
#include "plumb/base/timing.h"
#include "support/ranks.h"

namespace plumb {
namespace {

using test::as_ranks;

/// Leaves of a few shapes; the same in every rank.
std::vector<Tensor> leaves(at::ScalarType type = at::kFloat) {
  std::vector<Tensor> all;
  int64_t seed = 0;
  for (const auto& shape : std::vector<std::vector<int64_t>>{{7, 5}, {5}, {5, 11}, {1}, {3, 3}}) {
    int64_t count = 1;
    for (const int64_t n : shape) count *= n;
    all.push_back(at::sin(at::arange(count, at::kDouble) + static_cast<double>(++seed)).view(shape).to(type));
    all.back().requires_grad_(true);
  }
  return all;
}

/// A loss whose gradients differ between ranks in many bits. It does not use the last leaf, and uses the first twice.
Tensor loss_of(const std::vector<Tensor>& x, int64_t rank) {
  const double r = 1.0 + static_cast<double>(rank);
  const Tensor in = at::sin(at::arange(7, x[0].options().requires_grad(false)) * r).view({1, 7});
  const Tensor hidden = at::tanh(at::matmul(in, x[0]) + x[1]);
  return (at::matmul(hidden, x[2]) * x[3]).pow(2).sum() / r + (x[0] * x[0]).sum() * (r / 7);
}

struct Way {
  bool overlap;
  int64_t bucket_bytes;
};
const Way kWays[] = {{true, 1}, {true, 100}, {true, 1 << 22}, {false, 100}, {false, 1 << 22}};

class Exchange : public ::testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Of, Exchange, ::testing::Values(1, 2, 3), ::testing::PrintToStringParamName());

TEST_P(Exchange, IsTheSumInTheOrderOfTheRanksWhateverTheBuckets) {
  const int64_t ranks = GetParam();
  std::vector<Tensor> expected;  // ((g₀ + g₁) + g₂) + …
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const std::vector<Tensor> x = leaves();
    const std::vector<Tensor> own = gradients({loss_of(x, rank)}, x, {});
    for (size_t i = 0; i < own.size(); ++i) {
      if (rank == 0) expected.push_back(own[i].clone());
      if (rank > 0) expected[i] = expected[i] + own[i];
    }
  }
  as_ranks(ranks, [&](const Group& group) {
    for (const Way& way : kWays) {
      const std::vector<Tensor> x = leaves();
      GradientExchange exchange(group, x, {way.overlap, false, way.bucket_bytes});
      for (int64_t turn = 0; turn < 3; ++turn) {
        const std::vector<Tensor> sums = exchange.gradients_of(loss_of(x, group.rank()));
        ASSERT_EQ(sums.size(), x.size());
        for (size_t i = 0; i < sums.size(); ++i)
          EXPECT_TRUE(at::equal(sums[i], expected[i])) << i << ", overlap " << way.overlap << ", " << way.bucket_bytes;
        for (const Tensor& leaf : x) EXPECT_FALSE(leaf.grad().defined());
      }
      EXPECT_EQ(exchange.cost().bytes > 0, ranks > 1);
    }
  });
}

/// The identity, whose backward pass first waits until something has been exchanged.
class WaitsForAnExchange : public torch::autograd::Function<WaitsForAnExchange> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x, const std::function<bool()>& wait) {
    context->saved_data["wait"] = reinterpret_cast<int64_t>(&wait);
    return x.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& derivatives) {
    EXPECT_TRUE((*reinterpret_cast<const std::function<bool()>*>(context->saved_data["wait"].toInt()))());
    return {derivatives[0], Tensor()};
  }
};

// Two layers of a weight and a gain, declared as models declare them: all gains after all weights.
TEST(ExchangeOrder, OfTheLastLayerBeginsBeforeTheFirstIsDone) {
  as_ranks(2, [](const Group& group) {
    const auto leaf = [] { return at::ones({4}, at::kDouble).requires_grad_(true); };
    const std::vector<Tensor> x = {leaf(), leaf(), leaf(), leaf()};
    const int64_t layer_bytes = 2 * x[0].numel() * 8;
    GradientExchange exchange(group, x, {.bucket_bytes = layer_bytes, .order = {0, 2, 1, 3}});
    const std::function<bool()> exchanged = [&] {
      for (const Stopwatch watch; watch.seconds() < 60; std::this_thread::sleep_for(std::chrono::milliseconds(1)))
        if (exchange.cost().calls > 0) return true;
      return false;
    };
    const Tensor first = WaitsForAnExchange::apply(x[0] * x[2], exchanged);
    for (const Tensor& sum : exchange.gradients_of((first * x[1] * x[3]).sum()))
      EXPECT_TRUE(at::equal(sum, at::full_like(sum, 2)));
  });
}

TEST_P(Exchange, AddsTheGradientsOfEarlierMicroBatches) {
  as_ranks(GetParam(), [&](const Group& group) {
    for (const Way& way : kWays) {
      const std::vector<Tensor> x = leaves(at::kDouble);
      std::vector<Tensor> earlier;
      for (const Tensor& leaf : x) earlier.push_back(at::full_like(leaf, 1.0 + static_cast<double>(group.rank())));
      GradientExchange exchange(group, x, {way.overlap, false, way.bucket_bytes});
      const std::vector<Tensor> without = exchange.gradients_of(loss_of(x, group.rank()));
      const std::vector<Tensor> with = exchange.gradients_of(loss_of(x, group.rank()), earlier);
      const auto n = static_cast<double>(GetParam());
      for (size_t i = 0; i < x.size(); ++i)
        EXPECT_LT((with[i] - without[i] - n * (n + 1) / 2).abs().max().item<double>(), 1e-12);
    }
  });
}

TEST(Exchange, KeepsPiecesOfTheSums) {
  as_ranks(3, [](const Group& group) {
    for (const bool overlap : {true, false}) {
      const std::vector<Tensor> x = leaves();
      std::vector<int64_t> sizes;
      for (const Tensor& leaf : x) sizes.push_back(leaf.numel());
      const ShardLayout layout(sizes, {{4, 0}, {1, 2, 3}}, 3);
      GradientExchange whole(group, x, {overlap}), in_pieces(group, x, {.overlap = overlap, .shards = &layout});
      const std::vector<Tensor> sums = whole.gradients_of(loss_of(x, group.rank()));
      const std::vector<Tensor> once = in_pieces.gradients_of(loss_of(x, group.rank()));
      std::vector<Tensor> expected;
      for (size_t i = 0; i < x.size(); ++i) {
        const ShardLayout::Range range = layout.range(i, group.rank());
        expected.push_back(sums[i].reshape({-1}).narrow(0, range.begin, range.count));
        EXPECT_TRUE(at::equal(once[i], expected[i])) << i << ", overlap " << overlap;
      }
      const std::vector<Tensor> twice = in_pieces.gradients_of(loss_of(x, group.rank()), once);
      for (size_t i = 0; i < x.size(); ++i) EXPECT_TRUE(at::equal(twice[i], 2 * expected[i])) << i;
    }
  });
}

/// x, whose backward pass says that it begins.
class Says : public torch::autograd::Function<Says> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x, std::atomic<bool>* begun) {
    context->saved_data["begun"] = reinterpret_cast<int64_t>(begun);
    return x.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& derivatives) {
    reinterpret_cast<std::atomic<bool>*>(context->saved_data["begun"].toInt())->store(true);
    return {derivatives[0], Tensor()};
  }
};

// Four layers, each a unit: while the first exchange waits for the other rank, the next two layers are computed, and
// not the fourth, whose gradients would be a fourth whole unit.
TEST(Exchange, OfPiecesHoldsUpTheBackwardPass) {
  std::atomic<bool> last_begun{false};
  as_ranks(2, [&](const Group& group) {
    std::vector<Tensor> x;
    for (int i = 0; i < 4; ++i) x.push_back(at::ones({4}, at::kDouble).requires_grad_(true));
    const ShardLayout layout({4, 4, 4, 4}, {{0}, {1}, {2}, {3}}, 2);
    GradientExchange exchange(group, x, {.shards = &layout});
    std::atomic<bool> unused{false};
    if (group.rank() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      EXPECT_FALSE(last_begun);
    }
    const Tensor last = Says::apply(x[0].sin(), group.rank() == 0 ? &last_begun : &unused);
    static_cast<void>(exchange.gradients_of((((last * x[1]).sin() * x[2]).sin() * x[3]).sum()));
  });
  EXPECT_TRUE(last_begun);
}

// Three ranks with 1, 2⁻⁸ and 2⁻⁸: in bfloat16, 1 + 2⁻⁸ is 1, but the sum in float32, rounded once, is 1 + 2⁻⁷.
TEST(Exchange, InHalfPrecisionSumsInFloatAndRoundsOnce) {
  as_ranks(3, [](const Group& group) {
    const Tensor x = at::zeros({5}).requires_grad_(true);
    GradientExchange exchange(group, {x}, {true, true, 1});
    const double own = group.rank() == 0 ? 1.0 : 0x1p-8;
    const std::vector<Tensor> sums = exchange.gradients_of((x * own).sum());
    EXPECT_EQ(sums[0].scalar_type(), at::kFloat);
    EXPECT_TRUE(at::equal(sums[0], at::full({5}, 1 + 0x1p-7)));
    // Two exchanges in bfloat16, with padding to 6 elements: one sends all of them, the other the rank's own third.
    EXPECT_EQ(exchange.cost().bytes, 2 * (6 + 2));
  });
}

TEST(Exchange, ARankThatFailsEndsTheOthers) {
  as_ranks(2, [](const Group& group) {
    const std::vector<Tensor> x = leaves();
    GradientExchange exchange(group, x, {true, false, 1});
    if (group.rank() == 1) return group.fail("out of memory");
    try {
      static_cast<void>(exchange.gradients_of(loss_of(x, 0)));
      FAIL() << "summed with a rank that has failed";
    } catch (const Error& error) {
      EXPECT_TRUE(std::string(error.what()).ends_with("has failed: out of memory")) << error.what();
    }
  });
}

TEST(AllToAll, SendsAPieceToEachRank) {
  as_ranks(3, [](const Group& group) {
    for (const at::ScalarType type : {at::kDouble, at::kBFloat16, at::kLong}) {
      const Tensor x = (100 * group.rank() + at::arange(6, at::kLong)).to(type);
      const Tensor received = group.all_to_all(x).to(at::kLong);
      for (int64_t from = 0; from < 3; ++from) {
        EXPECT_EQ(received[2 * from].item<int64_t>(), 100 * from + 2 * group.rank());
        EXPECT_EQ(received[2 * from + 1].item<int64_t>(), 100 * from + 2 * group.rank() + 1);
      }
    }
    EXPECT_THROW(static_cast<void>(group.all_to_all(at::zeros({4}))), Error);
    EXPECT_EQ(group.all_to_all(at::zeros({0})).numel(), 0);
  });
}

}  // namespace
}  // namespace plumb
