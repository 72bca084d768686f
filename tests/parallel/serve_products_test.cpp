// Iterations led by rank 0: which rank computes what, and how errors propagate.
#include "plumb/parallel/serve_products.h"

#include <gtest/gtest.h>

#include <mutex>

#include "plumb/base/error.h"
#include "support/contains.h"
#include "support/ranks.h"

namespace plumb {
namespace {

using test::as_ranks;

/// Rank r's part of a product: the product of the numbers in `which`, times r + 1, times the vector. The sum over n
/// ranks has the factor n(n + 1)/2.
ProductFunction parts_of(const Group& group, int64_t& calls) {
  return [&group, &calls](const std::vector<int64_t>& which, const std::vector<Tensor>& vectors) {
    ++calls;
    int64_t factor = group.rank() + 1;
    for (const int64_t number : which) factor *= number;
    std::vector<Tensor> products;
    for (const Tensor& v : vectors) {
      products.push_back(v * static_cast<double>(factor));
      group.sum(products.back());
    }
    return products;
  };
}

TEST(ServedProducts, RankZeroDecidesAndAllCompute) {
  for (const int64_t size : {1, 2, 3}) {
    as_ranks(size, [&](const Group& group) {
      int64_t calls = 0, led = 0;
      serve_products(group, at::kDouble, parts_of(group, calls), [&](const ProductFunction& products) {
        ++led;
        const double all = static_cast<double>(size * (size + 1)) / 2;
        const Tensor longer = at::arange(5, at::kDouble), shorter = at::arange(2, at::kDouble) + 0.5;
        const std::vector<Tensor> two = products({}, {longer, shorter});
        EXPECT_TRUE(at::equal(two.at(0), all * longer));
        EXPECT_TRUE(at::equal(two.at(1), all * shorter));
        EXPECT_TRUE(at::equal(products({2, 7}, {shorter}).at(0), 14 * all * shorter));
        EXPECT_TRUE(at::equal(longer, at::arange(5, at::kDouble)));  // unchanged
      });
      EXPECT_EQ(calls, 2);
      EXPECT_EQ(led, group.rank() == 0 ? 1 : 0);
      group.barrier();  // no rank waits for more products
    });
  }
}

TEST(ServedProducts, VectorsHaveTheTypeThatIsGiven) {
  as_ranks(2, [](const Group& group) {
    int64_t calls = 0;
    serve_products(group, at::kFloat, parts_of(group, calls), [](const ProductFunction& products) {
      const Tensor v = at::arange(3, at::kFloat);
      EXPECT_TRUE(at::equal(products({1}, {v.narrow(0, 1, 2)}).at(0), 3 * v.narrow(0, 1, 2)));
    });
    EXPECT_EQ(calls, 1);
  });
}

TEST(ServedProducts, NoneAreAskedFor) {
  as_ranks(3, [](const Group& group) {
    int64_t calls = 0;
    serve_products(group, at::kDouble, parts_of(group, calls), [](const ProductFunction&) {});
    EXPECT_EQ(calls, 0);
  });
}

TEST(ServedProducts, WhenTheLeaderFailsNobodyWaits) {
  std::mutex mutex;
  std::vector<std::string> messages;
  as_ranks(3, [&](const Group& group) {
    int64_t calls = 0;
    try {
      serve_products(group, at::kDouble, parts_of(group, calls), [](const ProductFunction& products) {
        products({}, {at::ones({2}, at::kDouble)});
        throw Error("the product is not finite");
      });
    } catch (const Error& error) {
      group.fail(error.what());
      const std::lock_guard lock(mutex);
      messages.emplace_back(error.what());
    }
  });
  ASSERT_EQ(messages.size(), 3U);
  for (const std::string& message : messages) EXPECT_CONTAINS(message, "the product is not finite");
}

}  // namespace
}  // namespace plumb
