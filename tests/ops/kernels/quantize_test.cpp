// Quantization to 8 bits and back compared with the formulas in float64.
#include "plumb/ops/kernels/quantize.h"

#include <cmath>
#include <limits>

#include "ops/kernels/kernel_check.h"

namespace plumb::testing {
namespace {

constexpr int64_t kWidths[] = {1, 3, 15, 16, 17, 64, 65, 200};

class Quantize : public KernelTest<float> {};

TEST_F(Quantize, RoundsToTheNearestOf255Values) {
  for (const int64_t n : kWidths) {
    const Tensor x = values({n}, static_cast<uint64_t>(n), 3.0);
    on_every_instruction_set([&] {
      SCOPED_TRACE(n);
      std::vector<int8_t> found(static_cast<size_t>(n) + 64, 99);
      const double scale = kernels::quantize(x.data_ptr<float>(), n, found.data());
      const double expected = wide(x).abs().max().item<double>() / 127;
      EXPECT_NEAR(scale, expected, 1e-6 * expected);
      double largest = 0;
      for (int64_t i = 0; i < n; ++i) {
        const double value = found[static_cast<size_t>(i)];
        EXPECT_NEAR(value, x.data_ptr<float>()[i] / expected, 0.5 + 1e-4);
        largest = std::max(largest, std::abs(value));
      }
      EXPECT_EQ(largest, 127);
      for (size_t i = static_cast<size_t>(n); i < found.size(); ++i) ASSERT_EQ(found[i], 99) << "written past the end";
    });
  }
}

TEST_F(Quantize, OfZerosIsZero) {
  const Tensor x = at::zeros({37});
  on_every_instruction_set([&] {
    std::vector<int8_t> found(37, 99);
    EXPECT_EQ(kernels::quantize(x.data_ptr<float>(), 37, found.data()), 0);
    EXPECT_EQ(found, std::vector<int8_t>(37, 0));
  });
}

TEST_F(Quantize, WhatIsNotFiniteShowsInTheScale) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const int64_t place : {0, 20, 36}) {
      Tensor x = values({37}, 1);
      x[place] = -bad;
      on_every_instruction_set([&] {
        std::vector<int8_t> found(37);
        EXPECT_FALSE(std::isfinite(kernels::quantize(x.data_ptr<float>(), 37, found.data())));
      });
    }
  }
}

TEST_F(Quantize, AndBack) {
  for (const int64_t n : kWidths) {
    const Tensor sums = at::randint(-2000000, 2000000, {n}, at::kInt);
    const Tensor scales = values({n}, 2).abs(), bias = values({n}, 3);
    on_every_instruction_set([&] {
      for (const auto& [shift, relu] : {std::pair{true, false}, {true, true}, {false, true}, {false, false}}) {
        Guarded<float> y({n}, kType);
        kernels::dequantize(sums.data_ptr<int32_t>(), 1e-6F, scales.data_ptr<float>(),
                            shift ? bias.data_ptr<float>() : nullptr, relu, n, y.data());
        Tensor expected = 1e-6 * wide(scales) * sums.to(at::kDouble);
        if (shift) expected += wide(bias);
        expect_close(*y, relu ? expected.clamp_min(0) : expected, 1);
      }
    });
  }
}

}  // namespace
}  // namespace plumb::testing
