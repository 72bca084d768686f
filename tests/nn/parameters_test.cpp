#include "plumb/nn/parameters.h"

#include <gtest/gtest.h>

#include "plumb/base/error.h"

namespace plumb {
namespace {

TEST(Parameters, AreDeclaredOnce) {
  Parameters parameters(at::kDouble);
  parameters.add("a", {2, 3}, Role::weight);
  parameters.add_buffer("mean", {3}, 0);
  EXPECT_THROW((void)parameters.add("a", {1}, Role::bias), Error);
  EXPECT_THROW((void)parameters.add_constant("a", {1}, 1), Error);
  EXPECT_THROW((void)parameters.add_buffer("mean", {3}, 0), Error);
  EXPECT_EQ(parameters.count(), 6);
  EXPECT_EQ(parameters.buffers().size(), 1U);
}

// As Decoder declares them: norms after the matrices of all layers.
TEST(Parameters, AreOrderedByLayers) {
  Parameters parameters(at::kDouble);
  for (const char* name :
       {"tgt_embed.weight", "decoder.layers.0.linear1.weight", "decoder.layers.1.linear1.weight",
        "decoder.layers.0.norm1.weight", "decoder.layers.1.norm1.weight", "decoder.norm.weight", "output.weight"})
    parameters.add(name, {1}, Role::weight);
  EXPECT_EQ(order_of_layers(parameters), (std::vector<size_t>{0, 1, 3, 2, 4, 5, 6}));
}

}  // namespace
}  // namespace plumb
