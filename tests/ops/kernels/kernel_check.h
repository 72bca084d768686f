// Shared by the kernel tests: values, outputs surrounded by guards, and loops over all instruction sets.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <type_traits>

#include "plumb/ops/kernels/instruction_set.h"
#include "support/gradcheck.h"
#include "support/reference.h"

namespace plumb::testing {

/// A suite that runs for float and for double.
template <typename T>
class KernelTest : public ::testing::Test {
 protected:
  static constexpr at::ScalarType kType = std::is_same_v<T, float> ? at::kFloat : at::kDouble;
  static constexpr double kTolerance = std::is_same_v<T, float> ? 3e-6 : 1e-13;

  void TearDown() override { kernels::use_instruction_set(""); }

  static Tensor values(at::IntArrayRef shape, uint64_t seed, double scale = 1.0) {
    return random_tensor(shape, seed, scale).to(kType);
  }
  /// A copy in float64.
  static Tensor wide(const Tensor& tensor) { return tensor.to(at::kDouble, /*non_blocking=*/false, /*copy=*/true); }

  /// |found − expected| ≤ tolerance · (largest |expected| + floor), element by element.
  static void expect_close(const Tensor& found, const Tensor& expected, double floor = 0) {
    ASSERT_EQ(found.sizes(), expected.sizes());
    if (found.numel() == 0) return;
    const double error = (wide(found) - expected.detach()).abs().max().template item<double>();
    EXPECT_LE(error, kTolerance * (expected.detach().abs().max().template item<double>() + floor));
  }
  static void expect_close(double found, double expected, double floor = 0) {
    EXPECT_NEAR(found, expected, kTolerance * (std::abs(expected) + floor));
  }

  template <typename Work>
  static void on_every_instruction_set(const Work& work) {
    for (const std::string& name : kernels::instruction_sets()) {
      SCOPED_TRACE(name);
      kernels::use_instruction_set(name);
      work();
    }
  }
};
using KernelTypes = ::testing::Types<float, double>;

/// An output matrix of a kernel, surrounded by values that the kernel must not modify.
template <typename T>
class Guarded {
 public:
  explicit Guarded(const Tensor& begin)
      : all_(at::full({begin.numel() + 2 * kGuard}, kSentinel, begin.options())),
        matrix_(all_.narrow(0, kGuard, begin.numel()).view(begin.sizes())) {
    matrix_.copy_(begin);
  }
  Guarded(at::IntArrayRef shape, at::ScalarType type) : Guarded(at::full(shape, kSentinel, type)) {}
  ~Guarded() {
    EXPECT_TRUE((all_.narrow(0, 0, kGuard) == kSentinel).all().item<bool>()) << "written before the beginning";
    EXPECT_TRUE((all_.narrow(0, all_.numel() - kGuard, kGuard) == kSentinel).all().item<bool>()) << "written past it";
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  T* data() { return matrix_.data_ptr<T>(); }
  const Tensor& operator*() const { return matrix_; }
  [[nodiscard]] bool untouched(int64_t row) const { return (matrix_[row] == kSentinel).all().item<bool>(); }

 private:
  static constexpr int64_t kGuard = 64;
  static constexpr double kSentinel = -777;
  Tensor all_, matrix_;
};

/// A float64 copy that requires gradients.
inline Tensor leaf(const Tensor& tensor) { return tensor.detach().to(at::kDouble).clone().requires_grad_(true); }

}  // namespace plumb::testing
