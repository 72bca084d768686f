// Linear layers with packed weights, in each precision, compared with the formulas in float64.
#include "plumb/ops/packed_linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <tuple>

#include "plumb/base/error.h"
#include "plumb/ops/linear.h"
#include "support/fallbacks.h"
#include "support/gradcheck.h"

namespace plumb {
namespace {

using ops::Precision;
using testing::random_tensor;

constexpr std::tuple<int64_t, int64_t, int64_t> kShapes[] = {{1, 1, 1},    {1, 17, 65},   {16, 64, 64},
                                                             {37, 65, 17}, {50, 33, 129}, {130, 512, 70}};

Tensor floats(at::IntArrayRef shape, uint64_t seed) { return random_tensor(shape, seed).to(at::kFloat); }

/// The operand that the product uses, in float64: rounded to bfloat16, or to 255 values per row.
Tensor seen(const Tensor& x, Precision precision) {
  if (precision == Precision::bfloat16) return x.to(at::kBFloat16).to(at::kDouble);
  Tensor wide = x.to(at::kDouble);
  if (precision == Precision::float32) return wide;
  const Tensor scale = wide.abs().amax(1, /*keepdim=*/true) / 127;
  return (wide / scale).round() * scale;
}

/// Whether products in this precision are exact here up to float32 rounding.
bool multiplies(Precision precision) {
  const Tensor most = at::ones({16, 64});
  try {
    const Tensor y = ops::PackedLinear(most, precision)(most, Tensor(), false);
    return (y - 64).abs().max().item<double>() < 1e-4;
  } catch (const Error&) {
    return false;
  }
}

class PackedLinear : public ::testing::TestWithParam<const char*> {};

TEST_P(PackedLinear, IsTheFormula) {
  const Precision precision = ops::precision_of(GetParam());
  if (!multiplies(precision)) GTEST_SKIP() << "this processor has no exact products in " << GetParam();
  for (const auto& [rows, in, out] : kShapes) {
    const Tensor x = floats({rows, in}, 1), weight = floats({out, in}, 2), bias = floats({out}, 3);
    const ops::PackedLinear linear(weight, precision);
    const Tensor product = at::mm(seen(x, precision), seen(weight, precision).t());
    for (const auto& [shift, relu] : {std::pair{false, false}, {true, false}, {true, true}, {false, true}}) {
      SCOPED_TRACE(::testing::Message() << rows << ": " << in << " -> " << out << (shift ? " bias" : "")
                                        << (relu ? " relu" : ""));
      Tensor expected = shift ? product + bias.to(at::kDouble) : product;
      if (relu) expected = expected.clamp_min(0);
      const Tensor y = linear(x, shift ? bias : Tensor(), relu);
      ASSERT_EQ(y.sizes(), expected.sizes());
      EXPECT_TRUE(y.is_contiguous());
      EXPECT_LE((y.to(at::kDouble) - expected).abs().max().item<double>(),
                1e-5 * (1 + product.abs().max().item<double>()));
    }
    EXPECT_EQ(linear(x.narrow(0, 0, 0), bias, false).sizes(), (at::IntArrayRef{0, out}));
  }
}

TEST_P(PackedLinear, OfNoFeaturesIsTheBias) {
  const Precision precision = ops::precision_of(GetParam());
  const Tensor bias = floats({5}, 1);
  EXPECT_TRUE(ops::PackedLinear(floats({5, 0}, 2), precision)(floats({3, 0}, 3), bias, false)
                  .equal(bias.expand({3, 5}).contiguous()));
  EXPECT_EQ(ops::PackedLinear(floats({0, 4}, 2), precision)(floats({3, 4}, 3), Tensor(), false).sizes(),
            (at::IntArrayRef{3, 0}));
}

TEST_P(PackedLinear, PassesOnWhatIsNotFinite) {
  const Precision precision = ops::precision_of(GetParam());
  if (!multiplies(precision)) GTEST_SKIP() << "this processor has no exact products in " << GetParam();
  Tensor x = floats({3, 40}, 1);
  x[1][7] = std::numeric_limits<double>::quiet_NaN();
  const Tensor y = ops::PackedLinear(floats({20, 40}, 2), precision)(x, Tensor(), false);
  EXPECT_TRUE(y[1].isnan().all().item<bool>());
  EXPECT_FALSE(y[0].isnan().any().item<bool>() || y[2].isnan().any().item<bool>());
}

INSTANTIATE_TEST_SUITE_P(All, PackedLinear, ::testing::Values("float32", "bf16", "int8"),
                         [](const auto& info) { return std::string(info.param); });

TEST(PackedWeights, ServeLinearLayersWithoutAGraphWhileTheirGuardStands) {
  Tensor x = floats({5, 32}, 1), weight = floats({48, 32}, 2), bias = floats({48}, 3);
  ops::MatrixPrecision precision(Precision::float32, /*weights_stay=*/true);
  const Tensor plain = ops::linear(x, weight, bias);
  const Tensor half = ops::linear(x, weight.narrow(0, 0, 24), bias.narrow(0, 0, 24));
  const ops::PrecisionGuard guard(precision);
  const test::FallbackCounter fallbacks;
  {
    const at::NoGradGuard no_graph;
    EXPECT_EQ(ops::packing_for(x), &precision);
    EXPECT_EQ(ops::packing_for(x.to(at::kDouble)), nullptr);
    EXPECT_TRUE(at::allclose(ops::linear(x, weight, bias), plain, 1e-5, 1e-5));
    // A part of a weight that starts at the same address is a different weight.
    EXPECT_TRUE(at::allclose(ops::linear(x, weight.narrow(0, 0, 24), bias.narrow(0, 0, 24)), half, 1e-5, 1e-5));
    EXPECT_EQ(&precision.packed(weight), &precision.packed(weight));
    weight.zero_();  // has no effect: declared constant, the weight has been packed
    EXPECT_TRUE(at::allclose(ops::linear(x, weight, bias), plain, 1e-5, 1e-5));
  }
  EXPECT_EQ(ops::packing_for(x), nullptr) << "with a graph";
  EXPECT_EQ(fallbacks.counts(), (std::map<std::string, int64_t>{}));
}

// A weight that is computed for one product only: its memory must not be given to the next one.
TEST(PackedWeights, AreNotTakenForOthersAtTheirAddress) {
  const at::NoGradGuard no_graph;
  ops::MatrixPrecision precision(Precision::float32, /*weights_stay=*/true);
  const ops::PrecisionGuard guard(precision);
  const Tensor x = floats({5, 32}, 1), base = floats({32, 32}, 2);
  for (int64_t i = 1; i <= 20; ++i) {
    const Tensor found = ops::linear(x, base * i, Tensor());
    EXPECT_TRUE(at::allclose(found, at::mm(x, base.t()) * i, 1e-4, 1e-4)) << i;
  }
  // The transpose has the same address and shape.
  const Tensor by_rows = ops::linear(x, base, Tensor()), by_columns = ops::linear(x, base.t(), Tensor());
  EXPECT_TRUE(at::allclose(by_rows, at::mm(x, base.t()), 1e-4, 1e-4));
  EXPECT_TRUE(at::allclose(by_columns, at::mm(x, base), 1e-4, 1e-4));
}

TEST(PackedWeights, AreOfTheGuardsPrecision) {
  const at::NoGradGuard no_graph;
  const Tensor x = floats({5, 32}, 1), weight = floats({48, 32}, 2), bias = floats({48}, 3);
  const Tensor plain = ops::linear(x, weight, bias);
  for (const char* name : {"bf16", "int8"}) {
    const Precision in = ops::precision_of(name);
    if (!multiplies(in)) continue;
    ops::MatrixPrecision precision(in, /*weights_stay=*/true);
    const ops::PrecisionGuard guard(precision);
    const Tensor found = ops::linear(x, weight, bias);
    EXPECT_TRUE(found.equal(ops::PackedLinear(weight, in)(x, bias, false))) << name;
    EXPECT_FALSE(found.equal(plain)) << name;
  }
  EXPECT_THROW(static_cast<void>(ops::PackedLinear(weight, Precision::float32)(x.narrow(1, 0, 31), bias, false)),
               Error);
}

TEST(PackedWeights, InEightBitsDoNotTrain) {
  EXPECT_THROW(const ops::MatrixPrecision trains(Precision::int8), Error);
  EXPECT_NO_THROW(const ops::MatrixPrecision translates(Precision::int8, /*weights_stay=*/true));
}

}  // namespace
}  // namespace plumb
