// The row normalization kernels compared with the formula in float64 and its derivatives.
#include "plumb/ops/kernels/norm.h"

#include "ops/kernels/kernel_check.h"

namespace plumb::testing {
namespace {

template <typename T>
class NormKernels : public KernelTest<T> {
 protected:
  using KernelTest<T>::values;
  using KernelTest<T>::kType;
  static constexpr int64_t kRows = 6, kBegin = 1, kEnd = 5;  // the kernels process the rows [kBegin, kEnd)

  static Tensor range(const Tensor& rows) { return rows.narrow(0, kBegin, kEnd - kBegin); }
  static void expect_rows_outside_untouched(const Guarded<T>& matrix) {
    EXPECT_TRUE(matrix.untouched(kBegin - 1));
    EXPECT_TRUE(matrix.untouched(kEnd));
  }

  /// Calls work for LayerNorm and RMSNorm of several widths, after setting the inputs.
  template <typename Work>
  void for_each_case(const Work& work) {
    for (const int64_t width : {1, 2, 7, 16, 31, 67, 256, 513}) {
      for (const bool center : {true, false}) {
        SCOPED_TRACE(::testing::Message() << "width " << width << (center ? ", centered" : ""));
        x_ = values({kRows, width}, 1) + 0.5;
        gamma_ = values({width}, 2);
        beta_ = center ? values({width}, 3) : Tensor();
        dy_ = values({kRows, width}, 4);
        this->on_every_instruction_set([&] {
          statistics_ = at::full({kRows, 2}, -1.0, kType);
          work(width, center);
        });
      }
    }
  }

  void forward(int64_t width, bool center, T* y) {
    kernels::norm<T>().forward({width, center, T(kEps), x_.data_ptr<T>(), gamma_.data_ptr<T>(),
                                center ? beta_.data_ptr<T>() : nullptr, y, statistics_.data_ptr<T>()},
                               kBegin, kEnd);
  }

  /// Returns y; `leaves` are dy, x, γ and, if centered, β.
  Tensor expected(std::vector<Tensor>& leaves) {
    leaves = {leaf(range(dy_)), leaf(range(x_)), leaf(gamma_)};
    if (beta_.defined()) leaves.push_back(leaf(beta_));
    return reference::norm(leaves[1], leaves[2], beta_.defined() ? leaves[3] : Tensor(), static_cast<double>(T(kEps)));
  }

  static constexpr double kEps = 1e-2;
  Tensor x_, gamma_, beta_, dy_, statistics_;
};
TYPED_TEST_SUITE(NormKernels, KernelTypes);

TYPED_TEST(NormKernels, ForwardIsTheFormula) {
  this->for_each_case([&](int64_t width, bool center) {
    Guarded<TypeParam> y({this->kRows, width}, this->kType);
    this->forward(width, center, y.data());
    std::vector<Tensor> leaves;
    this->expect_close(this->range(*y), this->expected(leaves), 1);
    this->expect_rows_outside_untouched(y);
    const Tensor& x = leaves[1].detach();
    const Tensor mean = center ? x.mean(1) : at::zeros({x.size(0)}, at::kDouble);
    const Tensor square = (x - mean.unsqueeze(1)).square().mean(1);
    const Tensor eps = at::full({}, static_cast<double>(TypeParam(this->kEps)), at::kDouble);
    this->expect_close(this->range(this->statistics_), at::stack({mean, (square + eps).rsqrt()}, 1));
  });
}

TYPED_TEST(NormKernels, BackwardIsTheDerivative) {
  this->for_each_case([&](int64_t width, bool center) {
    using T = TypeParam;
    Guarded<T> y({this->kRows, width}, this->kType), dx({this->kRows, width}, this->kType);
    this->forward(width, center, y.data());
    const Tensor before = this->values({width}, 5);
    Guarded<T> dgamma(before), dbeta(before);
    kernels::norm<T>().backward({width, center, this->x_.template data_ptr<T>(), this->gamma_.template data_ptr<T>(),
                                 this->statistics_.template data_ptr<T>(), this->dy_.template data_ptr<T>(), dx.data(),
                                 dgamma.data(), center ? dbeta.data() : nullptr},
                                this->kBegin, this->kEnd);
    std::vector<Tensor> leaves;
    const Tensor expected = this->expected(leaves);
    const std::vector<Tensor> inputs(leaves.begin() + 1, leaves.end());
    const auto gradient = gradients({expected}, inputs, {leaves[0]});
    this->expect_close(this->range(*dx), gradient[0], 1);
    this->expect_rows_outside_untouched(dx);
    this->expect_close(*dgamma, gradient[1] + this->wide(before), 1);  // added to
    this->expect_close(*dbeta, (center ? gradient[2] : at::zeros_like(gradient[1])) + this->wide(before), 1);
  });
}

TYPED_TEST(NormKernels, DoubleBackwardIsTheSecondDerivative) {
  this->for_each_case([&](int64_t width, bool center) {
    using T = TypeParam;
    Guarded<T> y({this->kRows, width}, this->kType);
    Guarded<T> ddy({this->kRows, width}, this->kType), dx({this->kRows, width}, this->kType);
    this->forward(width, center, y.data());
    const Tensor a = this->values({this->kRows, width}, 6), b = this->values({width}, 7), c = this->values({width}, 8);
    const Tensor before = this->values({width}, 5);
    Guarded<T> dgamma(before);
    kernels::norm<T>().double_backward(
        {width, center, this->x_.template data_ptr<T>(), this->gamma_.template data_ptr<T>(),
         this->statistics_.template data_ptr<T>(), this->dy_.template data_ptr<T>(), a.data_ptr<T>(), b.data_ptr<T>(),
         center ? c.data_ptr<T>() : nullptr, ddy.data(), dx.data(), dgamma.data()},
        this->kBegin, this->kEnd);
    std::vector<Tensor> leaves;
    const Tensor expected = this->expected(leaves);
    const std::vector<Tensor> inputs(leaves.begin() + 1, leaves.end());
    const auto first = gradients({expected}, inputs, {leaves[0]}, /*create_graph=*/true);
    std::vector<Tensor> cotangents = {this->wide(this->range(a)), this->wide(b)};
    if (center) cotangents.push_back(this->wide(c));
    const auto second = gradients(first, {leaves[0], leaves[1], leaves[2]}, cotangents);
    this->expect_close(this->range(*ddy), second[0], 1);
    this->expect_close(this->range(*dx), second[1], 10);  // terms of up to this size cancel
    this->expect_close(*dgamma, second[2] + this->wide(before), 1);
    this->expect_rows_outside_untouched(ddy);
    this->expect_rows_outside_untouched(dx);
  });
}

}  // namespace
}  // namespace plumb::testing
