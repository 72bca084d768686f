#include "plumb/parallel/group.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "plumb/base/error.h"
#include "support/ranks.h"

namespace plumb {
namespace {

using test::as_ranks;

/// A tensor (2, 3) of rank r: element i is 100·r + i.
Tensor of_rank(int64_t rank, at::ScalarType type = at::kDouble) {
  return (100 * rank + at::arange(6, at::kLong)).view({2, 3}).to(type);
}

constexpr at::ScalarType kTypes[] = {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kLong, at::kInt, at::kByte};

/// Tests that hold for groups of 1, 2 and 3 ranks.
class OverRanks : public ::testing::TestWithParam<int64_t> {
 protected:
  [[nodiscard]] static int64_t size() { return GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(Of, OverRanks, ::testing::Values(1, 2, 3), ::testing::PrintToStringParamName());

TEST_P(OverRanks, AreNumbered) {
  std::vector<int> seen(static_cast<size_t>(size()), 0);
  as_ranks(size(), [&](const Group& group) {
    EXPECT_EQ(group.size(), size());
    seen.at(static_cast<size_t>(group.rank())) += 1;
  });
  EXPECT_EQ(seen, std::vector<int>(static_cast<size_t>(size()), 1));
}

// Σ_r (r + i) = n·i + n(n − 1)/2
TEST_P(OverRanks, Sum) {
  const int64_t n = size();
  as_ranks(n, [&](const Group& group) {
    for (const at::ScalarType type : kTypes) {
      const Tensor x = (at::arange(6, at::kLong) + group.rank()).view({2, 3}).to(type);
      group.sum(x);
      EXPECT_TRUE(at::equal(x, (n * at::arange(6, at::kLong) + n * (n - 1) / 2).view({2, 3}).to(type))) << type;
    }
  });
}

// In bfloat16, 256 + 1 is 256; only a sum that is rounded once gives 258.
TEST(Group, HalfPrecisionIsSummedInFloat) {
  as_ranks(3, [](const Group& group) {
    const Tensor x = at::full({1}, group.rank() == 0 ? 256.0 : 1.0, at::kBFloat16);
    group.sum(x);
    EXPECT_EQ(x.to(at::kDouble).item<double>(), 258.0);
  });
}

// The sum of these values depends on the order; all ranks must get the same result.
TEST(Group, SumsAreTheSameBitsInAllRanks) {
  as_ranks(3, [](const Group& group) {
    const Tensor x = at::sin(at::arange(1000, at::kFloat) * static_cast<double>(1 + group.rank())) * 1e3;
    group.sum(x);
    for (const Tensor& other : group.all_gather(x)) EXPECT_TRUE(at::equal(other, x));
  });
}

TEST_P(OverRanks, WritesInPlaceWhateverTheLayout) {
  const int64_t n = size();
  as_ranks(n, [&](const Group& group) {
    const Tensor whole = of_rank(group.rank());
    group.sum(whole.t());
    EXPECT_TRUE(at::equal(whole, (n * at::arange(6, at::kLong) + 50 * n * (n - 1)).view({2, 3}).to(at::kDouble)));

    const Tensor matrix = of_rank(group.rank());
    group.broadcast(matrix.narrow(1, 1, 1), n - 1);  // a column
    Tensor expected = of_rank(group.rank());
    expected.narrow(1, 1, 1).copy_(of_rank(n - 1).narrow(1, 1, 1));
    EXPECT_TRUE(at::equal(matrix, expected));
  });
}

TEST_P(OverRanks, SumManyTensorsInOneExchange) {
  const int64_t n = size();
  as_ranks(n, [&](const Group& group) {
    const auto r = static_cast<double>(group.rank());
    const std::vector<Tensor> found = group.sum_coalesced(
        {at::full({2, 3}, r, at::kDouble), at::zeros({0}, at::kDouble), at::full({}, 10 * r + 1, at::kDouble)});
    const double sum = static_cast<double>(n * (n - 1)) / 2;
    ASSERT_EQ(found.size(), 3U);
    EXPECT_TRUE(at::equal(found[0], at::full({2, 3}, sum, at::kDouble)));
    EXPECT_EQ(found[1].numel(), 0);
    EXPECT_TRUE(at::equal(found[2], at::full({}, 10 * sum + static_cast<double>(n), at::kDouble)));
    EXPECT_EQ(group.cost().calls, n > 1 ? 1 : 0);
    EXPECT_TRUE(group.sum_coalesced({}).empty());
  });
}

TEST_P(OverRanks, SumNumbersAndConditions) {
  const auto n = static_cast<double>(size());
  as_ranks(size(), [&](const Group& group) {
    const auto r = static_cast<double>(group.rank());
    EXPECT_EQ(group.sums({r, 0.5}), (std::vector<double>{n * (n - 1) / 2, n / 2}));
    EXPECT_EQ(group.sums({r}), (std::vector<double>{n * (n - 1) / 2}));
    EXPECT_TRUE(group.any(group.rank() == group.size() - 1));
    EXPECT_FALSE(group.any(false));
  });
}

TEST_P(OverRanks, BroadcastFromEach) {
  as_ranks(size(), [&](const Group& group) {
    for (int64_t root = 0; root < size(); ++root) {
      for (const at::ScalarType type : kTypes) {
        const Tensor x = of_rank(group.rank(), type);
        group.broadcast(x, root);
        EXPECT_TRUE(at::equal(x, of_rank(root, type))) << type;
      }
      const Tensor flag = at::full({2}, group.rank() == root, at::kBool);
      group.broadcast(flag, root);
      EXPECT_TRUE(flag.all().item<bool>());
      EXPECT_EQ(group.broadcast(fmt::format("from {}", group.rank()), root), fmt::format("from {}", root));
      const std::string odd = group.rank() == root ? std::string("a\0b", 3) : "";
      EXPECT_EQ(group.broadcast(odd, root), std::string("a\0b", 3));
      EXPECT_EQ(group.broadcast(group.rank() == root ? "" : "something", root), "");
    }
    group.broadcast(at::zeros({0}));
  });
}

TEST_P(OverRanks, GatherInEach) {
  as_ranks(size(), [&](const Group& group) {
    const auto expect_all = [&](const std::vector<Tensor>& parts, at::ScalarType type) {
      ASSERT_EQ(static_cast<int64_t>(parts.size()), size());
      for (int64_t rank = 0; rank < size(); ++rank)
        EXPECT_TRUE(at::equal(parts[static_cast<size_t>(rank)], of_rank(rank, type))) << type;
    };
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kLong}) {
      const Tensor x = of_rank(group.rank(), type);
      for (int64_t root = 0; root < size(); ++root) {
        const std::vector<Tensor> parts = group.gather(x, root);
        if (group.rank() == root) {
          expect_all(parts, type);
        } else {
          EXPECT_TRUE(parts.empty());
        }
      }
      expect_all(group.all_gather(x), type);
      expect_all(group.all_gather(x.t().contiguous().t()), type);
    }
    const std::vector<Tensor> nothing = group.all_gather(at::zeros({0, 4}));
    ASSERT_EQ(static_cast<int64_t>(nothing.size()), size());
    EXPECT_EQ(nothing.back().sizes(), at::IntArrayRef({0, 4}));
  });
}

TEST_P(OverRanks, ScatterFromEach) {
  as_ranks(size(), [&](const Group& group) {
    for (int64_t root = 0; root < size(); ++root) {
      std::vector<Tensor> parts;
      for (int64_t rank = 0; rank < size() && group.rank() == root; ++rank) parts.push_back(of_rank(10 * root + rank));
      const Tensor x = at::zeros({2, 3}, at::kDouble);
      group.scatter(parts, x, root);
      EXPECT_TRUE(at::equal(x, of_rank(10 * root + group.rank())));
    }
  });
}

// A pipeline: every rank adds its number to each message from the previous rank, so rank r has message + 0 + 1 + … + r.
TEST_P(OverRanks, SendAndReceive) {
  const int64_t n = size();
  as_ranks(n, [&](const Group& group) {
    for (int64_t message = 0; message < 3; ++message) {
      const Tensor x = at::full({2, 2}, message, at::kLong);
      if (group.rank() > 0) group.receive(x.t(), group.rank() - 1);
      x.add_(group.rank());
      if (group.rank() + 1 < n) group.send(x, group.rank() + 1);
      EXPECT_TRUE(at::equal(x, at::full({2, 2}, message + group.rank() * (group.rank() + 1) / 2, at::kLong)));
    }
  });
}

TEST_P(OverRanks, WaitAtABarrier) {
  std::atomic<int64_t> arrived = 0;
  as_ranks(size(), [&](const Group& group) {
    for (int64_t round = 1; round <= 3; ++round) {
      ++arrived;
      group.barrier();
      EXPECT_GE(arrived, round * size());
      group.barrier();
    }
  });
}

TEST_P(OverRanks, CountWhatTheyExchange) {
  as_ranks(size(), [&](const Group& group) {
    group.sum(at::zeros({5}, at::kDouble));
    group.broadcast(at::zeros({3}, at::kFloat));
    static_cast<void>(group.all_gather(at::zeros({7}, at::kByte)));
    const ExchangeCost cost = group.cost();
    EXPECT_EQ(cost.calls, size() > 1 ? 3 : 0);
    EXPECT_EQ(cost.bytes, size() > 1 ? 40 + 12 + 7 : 0);
    EXPECT_EQ(cost.seconds > 0, size() > 1);
  });
}

// With S = Σ over ranks of x_r, the loss Σ_r w_r·S⁴ has the gradient 4·S³·Σw in every rank. The gradient of that times
// v_r, summed over ranks, is 12·S²·Σw·Σv; likewise, the third derivative with u_r is 24·S·Σw·Σv·Σu.
TEST_P(OverRanks, DifferentiateASumToAnyOrder) {
  const double x_of[] = {0.3, 0.4, -0.2}, w_of[] = {0.5, 2.0, 1.5}, v_of[] = {1.0, -3.0, 0.25},
               u_of[] = {2.0, 0.5, -1.0};
  double s = 0, w = 0, v = 0, u = 0;
  for (int64_t rank = 0; rank < size(); ++rank) {
    s += x_of[rank];
    w += w_of[rank];
    v += v_of[rank];
    u += u_of[rank];
  }
  as_ranks(size(), [&](const Group& group) {
    const int64_t rank = group.rank();
    const Tensor x = at::full({1}, x_of[rank], at::kDouble).requires_grad_(true);
    const Tensor sum = group.all_reduce(x);
    EXPECT_NEAR(sum.item<double>(), s, 1e-15);
    EXPECT_EQ(x.item<double>(), x_of[rank]);
    const Tensor loss = w_of[rank] * sum.pow(4).sum();
    const Tensor first = gradients({loss}, {x}, {}, true)[0];
    EXPECT_NEAR(first.item<double>(), 4 * std::pow(s, 3) * w, 1e-12);
    const Tensor second = gradients({(first * v_of[rank]).sum()}, {x}, {}, true)[0];
    EXPECT_NEAR(second.item<double>(), 12 * s * s * w * v, 1e-12);
    const Tensor third = gradients({(second * u_of[rank]).sum()}, {x}, {})[0];
    EXPECT_NEAR(third.item<double>(), 24 * s * w * v * u, 1e-12);
  });
}

// With A = Σ over ranks of a_r, the loss (Σ_r a_r·x²)² = A²·x⁴ of every rank has the derivatives 4·A²·x³, 12·A²·x² and
// 24·A²·x; that by a_r is 2·A·x⁴.
TEST_P(OverRanks, DifferentiateADividedComputationToAnyOrder) {
  const double a_of[] = {0.5, 2.0, -0.75}, x_value = 0.7;
  double a = 0;
  for (int64_t rank = 0; rank < size(); ++rank) a += a_of[rank];
  as_ranks(size(), [&](const Group& group) {
    const Tensor x = at::full({1}, x_value, at::kDouble).requires_grad_(true);
    const Tensor own = at::full({1}, a_of[group.rank()], at::kDouble).requires_grad_(true);
    const Tensor loss = group.reduce_from_region(own * group.copy_to_region(x).pow(2)).pow(2).sum();
    EXPECT_NEAR(loss.item<double>(), a * a * std::pow(x_value, 4), 1e-14);
    const std::vector<Tensor> first = gradients({loss}, {x, own}, {}, true);
    EXPECT_NEAR(first[0].item<double>(), 4 * a * a * std::pow(x_value, 3), 1e-14);
    EXPECT_NEAR(first[1].item<double>(), 2 * a * std::pow(x_value, 4), 1e-14);
    const Tensor second = gradients({first[0].sum()}, {x}, {}, true)[0];
    EXPECT_NEAR(second.item<double>(), 12 * a * a * x_value * x_value, 1e-13);
    EXPECT_NEAR(gradients({second.sum()}, {x}, {})[0].item<double>(), 24 * a * a * x_value, 1e-13);
  });
}

TEST(Group, AGraphKeepsTheConnection) {
  as_ranks(2, [](Group group) {
    const Tensor x = at::full({1}, 1.0, at::kDouble).requires_grad_(true);
    const auto weight = static_cast<double>(1 + group.rank());
    const Tensor loss = weight * group.all_reduce(x).sum();
    group = Group();
    EXPECT_EQ(gradients({loss}, {x}, {})[0].item<double>(), 3.0);
  });
}

TEST(Group, OfOneGivesBackWhatItWasGiven) {
  const Group group;
  EXPECT_EQ(group.rank(), 0);
  EXPECT_EQ(group.size(), 1);
  const Tensor x = at::ones({2}).requires_grad_(true);
  EXPECT_TRUE(group.all_reduce(x).is_same(x));
  EXPECT_TRUE(group.copy_to_region(x).is_same(x));
  EXPECT_TRUE(group.reduce_from_region(x).is_same(x));
  EXPECT_TRUE(group.sum_coalesced({x})[0].is_same(x));
  EXPECT_EQ(group.split(7).size(), 1);
  EXPECT_EQ(group.cost().calls, 0);
}

// Four ranks as a 2×2 matrix: groups of rows, and groups of columns.
TEST(Group, SplitsIntoRowsAndColumns) {
  as_ranks(4, [](const Group& group) {
    const int64_t row = group.rank() / 2;
    const int64_t column = group.rank() % 2;
    const Group rows = group.split(row);
    const Group columns = group.split(column);
    EXPECT_EQ(rows.size(), 2);
    EXPECT_EQ(rows.rank(), column);
    EXPECT_EQ(columns.size(), 2);
    EXPECT_EQ(columns.rank(), row);
    const auto value = static_cast<double>(std::int64_t{1} << group.rank());
    EXPECT_EQ(rows.sums({value}), std::vector<double>{row == 0 ? 1.0 + 2.0 : 4.0 + 8.0});
    EXPECT_EQ(columns.sums({value}), std::vector<double>{column == 0 ? 1.0 + 4.0 : 2.0 + 8.0});
    EXPECT_EQ(group.sums({value}), std::vector<double>{15.0});
    const Group row_again = group.split(row);
    EXPECT_EQ(row_again.broadcast(fmt::format("{}", group.rank()), 1), fmt::format("{}", 2 * row + 1));
  });
}

TEST(Group, SplitsUnevenlyAndAgain) {
  as_ranks(3, [](const Group& group) {
    const Group outer = group.split(group.rank() == 1 ? -5 : 9);
    EXPECT_EQ(outer.size(), group.rank() == 1 ? 1 : 2);
    EXPECT_EQ(outer.rank(), group.rank() == 2 ? 1 : 0);
    const std::vector<double> sum = outer.sums({1.0 + static_cast<double>(group.rank())});
    EXPECT_EQ(sum, std::vector<double>{group.rank() == 1 ? 2.0 : 1.0 + 3.0});
    const Group same = outer.split(0);
    EXPECT_EQ(same.size(), outer.size());
    EXPECT_EQ(same.rank(), outer.rank());
    EXPECT_EQ(outer.split(outer.rank()).size(), 1);
    EXPECT_EQ(group.sums({1.0}), std::vector<double>{3.0});
  });
}

/// The errors of the other two ranks after rank 2 has left.
class LostRank : public ::testing::TestWithParam<std::pair<const char*, std::function<void(const Group&)>>> {};
TEST_P(LostRank, IsAnError) {
  as_ranks(3, [](const Group& group) {
    EXPECT_EQ(group.sums({1.0}), std::vector<double>{3.0});
    if (group.rank() == 2) return;
    try {
      GetParam().second(group);
      FAIL() << "exchanged with a rank that has left";
    } catch (const Error& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with("lost another process of this run: ")) << error.what();
      EXPECT_EQ(error.hint(), "see that process's log; rerun to resume");
    }
  });
}
INSTANTIATE_TEST_SUITE_P(
    In, LostRank,
    ::testing::Values(std::pair("Sum", [](const Group& group) { group.sum(at::ones({4})); }),
                      std::pair("Broadcast", [](const Group& group) { group.broadcast(at::ones({4}), 2); }),
                      std::pair("Gather",
                                [](const Group& group) { static_cast<void>(group.all_gather(at::ones({4}))); }),
                      std::pair("Receive", [](const Group& group) { group.receive(at::ones({4}), 2); }),
                      std::pair("Send",
                                [](const Group& group) {
                                  for (;;) group.send(at::ones({4}), 2);  // the first few may succeed
                                }),
                      std::pair("Barrier", [](const Group& group) { group.barrier(); }),
                      std::pair("Derivative",
                                [](const Group& group) {
                                  const Tensor x = at::ones({4}).requires_grad_(true);
                                  gradients({group.all_reduce(x).sum()}, {x}, {});
                                })),
    [](const auto& info) { return std::string(info.param.first); });

TEST_P(OverRanks, RefuseWhatCannotBe) {
  as_ranks(size(), [&](const Group& group) {
    const Tensor x = at::zeros({2});
    EXPECT_THROW(group.broadcast(x, size()), Error);
    EXPECT_THROW(group.broadcast(x, -1), Error);
    EXPECT_THROW(static_cast<void>(group.gather(x, size())), Error);
    EXPECT_THROW(group.send(x, size()), Error);
    EXPECT_THROW(group.send(x, group.rank()), Error);
    EXPECT_THROW(group.receive(x, group.rank()), Error);
    const int64_t self = group.rank();
    EXPECT_THROW(group.scatter({}, x, self), Error);
    EXPECT_THROW(group.scatter(std::vector<Tensor>(static_cast<size_t>(size()), at::zeros({3})), x, self), Error);
    EXPECT_EQ(group.sums({1.0}), std::vector<double>{static_cast<double>(size())});  // nothing was exchanged
  });
}

}  // namespace
}  // namespace plumb
