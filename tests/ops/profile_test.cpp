#include "plumb/ops/profile.h"

#include <gtest/gtest.h>

#include <map>

#include "plumb/base/error.h"
#include "plumb/ops/linear.h"
#include "plumb/ops/norm.h"

namespace plumb::ops {
namespace {

std::map<std::string, Profile::Operation> by_name(const Profile& profile) {
  std::map<std::string, Profile::Operation> found;
  for (const Profile::Operation& each : profile.operations()) found[each.name] = each;
  return found;
}

Tensor random(std::vector<int64_t> shape) { return at::randn(shape, at::kFloat).requires_grad_(true); }

TEST(Profile, CountsOperationsForwardAndBackward) {
  const Tensor x = random({6, 8}), weight = random({4, 8}), gamma = random({8}), beta = random({8});
  const Profile profile;
  for (int turn = 0; turn < 2; ++turn) {
    const Tensor y = linear(layer_norm(x, gamma, beta, 1e-5), weight, Tensor());
    static_cast<void>(gradients({(y * y).sum()}, {x, weight, gamma, beta}, {}));
  }
  const auto found = by_name(profile);
  const double product = 2.0 * 6 * 8 * 4, bytes = 4.0 * (6 * 8 + 8 * 4 + 6 * 4);
  EXPECT_EQ(found.at("linear layer").calls, 2);
  EXPECT_EQ(found.at("linear layer").operations, 2 * product);
  EXPECT_EQ(found.at("linear layer").bytes, 2 * bytes);
  EXPECT_EQ(found.at("linear layer, backward").operations, 4 * product);
  EXPECT_EQ(found.at("linear layer, backward").bytes, 4 * bytes);
  EXPECT_EQ(found.at("layer norm").bytes, 2 * 2 * 4.0 * 6 * 8);
  EXPECT_EQ(found.at("layer norm, backward").bytes, 2 * 3 * 4.0 * 6 * 8);
  EXPECT_TRUE(found.contains("MulBackward0"));  // what belongs to no operation has its own name
  for (const auto& [name, each] : found) EXPECT_GT(each.seconds, 0) << name;
}

TEST(Profile, CountsAnOperationWithinAnotherAsPartOfIt) {
  const Tensor x = random({6, 8}), weight = random({4, 8});
  const Profile profile;
  {
    const Timed whole("whole", [] { return Cost{1, 2, 3, 4}; });
    static_cast<void>(gradients({linear(linear(x, weight, Tensor()), weight.t(), Tensor()).sum()}, {x}, {}));
  }
  const auto found = by_name(profile);
  EXPECT_EQ(found.size(), 1U);
  EXPECT_EQ(found.at("whole").operations, 1);
}

// An operation that consists of several nodes of the graph has its backward cost once.
TEST(Profile, CountsABackwardPassOnce) {
  const Tensor x = random({6, 8});
  const Profile profile;
  Tensor y;
  {
    const Timed timed("several", [] { return Cost{1, 2, 3, 4}; });
    y = (x * 2).sin() + 1;
  }
  static_cast<void>(gradients({y.sum()}, {x}, {}));
  const auto found = by_name(profile);
  EXPECT_EQ(found.at("several, backward").calls, 3);
  EXPECT_EQ(found.at("several, backward").operations, 3);
  EXPECT_EQ(found.at("several, backward").bytes, 4);
}

TEST(Profile, IsTheOnlyOneOfItsThreadAndEndsWithItsLife) {
  const Tensor x = random({6, 8}), weight = random({4, 8});
  {
    const Profile profile;
    EXPECT_THROW(Profile(), Error);
    EXPECT_TRUE(profile.operations().empty());
  }
  bool asked = false;
  const Timed timed("none", [&] {
    asked = true;
    return Cost();
  });
  EXPECT_FALSE(asked);
  const Profile again;
  static_cast<void>(linear(x, weight, Tensor()));
  EXPECT_EQ(again.operations().size(), 1U);
}

}  // namespace
}  // namespace plumb::ops
