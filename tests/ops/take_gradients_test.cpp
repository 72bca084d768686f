#include "plumb/ops/take_gradients.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace plumb {
namespace {

Tensor leaf(std::vector<int64_t> shape, double first) {
  int64_t count = 1;
  for (const int64_t n : shape) count *= n;
  return at::sin(at::arange(count, at::kDouble) + first).view(shape).requires_grad_(true);
}

/// Of the first two leaves only; the second one's gradient comes from a transposed product.
Tensor loss_of(const std::vector<Tensor>& x) {
  return (at::matmul(x[0], x[1].t()).tanh() * 3).sum() + (x[0] * x[0]).sum();
}

std::vector<Tensor> taken(const std::vector<Tensor>& x, std::vector<Tensor> earlier) {
  std::vector<Tensor> found(x.size());
  take_gradients({loss_of(x)}, x, {}, std::move(earlier), [&](size_t i, Tensor each) {
    EXPECT_FALSE(found[i].defined()) << i;
    found[i] = std::move(each);
  });
  for (const Tensor& each : x) EXPECT_FALSE(each.grad().defined());
  return found;
}

TEST(TakeGradients, AddsToEarlierOnesInPlace) {
  const std::vector<Tensor> x = {leaf({4, 5}, 1), leaf({3, 5}, 2), leaf({2}, 3)};
  const std::vector<Tensor> once = gradients({loss_of(x)}, x, {});
  std::vector<Tensor> earlier;
  std::vector<void*> places;
  for (const Tensor& each : x) {
    earlier.push_back(at::cos(each.detach()));
    places.push_back(earlier.back().data_ptr());
  }
  const std::vector<Tensor> sums = taken(x, std::move(earlier));
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_TRUE(at::equal(sums[i], at::cos(x[i].detach()) + once[i])) << i;
    EXPECT_EQ(sums[i].data_ptr(), places[i]) << i;
  }
}

TEST(TakeGradients, WithoutEarlierOnesAreThoseOfTheLossAndZerosOfLeavesWithoutInfluence) {
  const std::vector<Tensor> x = {leaf({4, 5}, 1), leaf({3, 5}, 2), leaf({2}, 3)};
  const std::vector<Tensor> once = gradients({loss_of(x)}, x, {}), found = taken(x, {});
  for (size_t i = 0; i < x.size(); ++i) EXPECT_TRUE(at::equal(found[i], once[i])) << i;
  const Tensor third = at::ones({2}, at::kDouble);
  EXPECT_TRUE(at::equal(taken(x, {{}, {}, third.clone()})[2], third));
}

TEST(TakeGradients, LeavesAloneWhatSomebodyElseHolds) {
  const std::vector<Tensor> x = {leaf({4, 5}, 1), leaf({4, 5}, 2)};
  const std::vector<Tensor> once = gradients({loss_of(x)}, x, {});
  const std::vector<Tensor> held = {at::ones({4, 5}, at::kDouble), at::ones({4, 5}, at::kDouble)};
  EXPECT_TRUE(at::equal(taken(x, held)[0], once[0] + 1));
  EXPECT_TRUE(at::equal(held[0], at::ones_like(held[0])));
  // Two gradients that are views of the same numbers.
  Tensor both = at::ones({4, 5}, at::kDouble);
  std::vector<Tensor> views = {both.view({4, 5}), both.view({4, 5})};
  both = Tensor();
  const std::vector<Tensor> sums = taken(x, std::move(views));
  for (size_t i = 0; i < x.size(); ++i) EXPECT_TRUE(at::equal(sums[i], once[i] + 1)) << i;
  // One that is laid out otherwise.
  std::vector<Tensor> transposed = {at::ones({5, 4}, at::kDouble).t(), {}};
  EXPECT_TRUE(at::equal(taken(x, std::move(transposed))[0], once[0] + 1));
}

TEST(TakeGradients, GivesEachAwayBeforeTheNextIsComputed) {
  // The first leaf's gradient is complete before the last one's backward pass begins.
  const std::vector<Tensor> x = {leaf({3}, 1), leaf({3}, 2), leaf({3}, 3)};
  std::vector<size_t> order;
  take_gradients({((x[2].sin() * x[1]).sin() * x[0]).sum()}, x, {}, {}, [&](size_t i, const Tensor& each) {
    EXPECT_TRUE(each.defined());
    order.push_back(i);
  });
  EXPECT_EQ(order, (std::vector<size_t>{0, 1, 2}));
}

TEST(TakeGradients, LeavesNothingBehindAfterAnError) {
  const std::vector<Tensor> x = {leaf({4, 5}, 1), leaf({3, 5}, 2)};
  EXPECT_ANY_THROW(take_gradients({loss_of(x)}, x, {}, {at::ones({4, 5}, at::kDouble), {}},
                                  [](size_t, const Tensor&) { throw std::runtime_error("stop"); }));
  for (const Tensor& each : x) EXPECT_FALSE(each.grad().defined());
  EXPECT_TRUE(at::equal(taken(x, {})[0], gradients({loss_of(x)}, x, {})[0]));
}

}  // namespace
}  // namespace plumb
