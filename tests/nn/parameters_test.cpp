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

TEST(Parameters, ASubsetSharesValuesAndItsPartOfTheFlatBuffer) {
  Parameters parameters(at::kDouble);
  for (const char* name : {"a", "b", "c"}) parameters.add(name, {2, 3}, Role::weight);
  parameters.allocate();
  parameters.flat().copy_(at::arange(18, at::kDouble));
  const Parameters last = parameters.subset({1, 2}), outer = parameters.subset({0, 2}), none = parameters.subset({});
  EXPECT_TRUE(last.at("c").value.is_same(parameters.at("c").value));
  EXPECT_TRUE(at::equal(last.flat(), at::arange(6, 18, at::kDouble)));
  EXPECT_TRUE(last.flat().is_alias_of(parameters.flat()));
  EXPECT_EQ(outer.all()[1].name, "c");
  EXPECT_FALSE(outer.has_flat());  // b lies between them
  EXPECT_EQ(none.count(), 0);
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
