// The cross-entropy kernels compared with the formula in float64 and its derivatives.
#include "plumb/ops/kernels/cross_entropy.h"

#include "ops/kernels/kernel_check.h"

namespace plumb::testing {
namespace {

template <typename T>
class CrossEntropyKernels : public KernelTest<T> {
 protected:
  template <typename Work>
  void for_each_case(const Work& work) {
    for (const int64_t vocabulary : {1, 2, 7, 16, 65, 1001}) {
      for (const int64_t label : {int64_t{0}, vocabulary / 2, vocabulary - 1}) {
        for (const double smoothing : {0.0, 0.25}) {
          SCOPED_TRACE(::testing::Message()
                       << "label " << label << " of " << vocabulary << ", smoothing " << smoothing);
          const Tensor logits = this->values({1, vocabulary}, 1, 2.0);
          this->on_every_instruction_set([&] {
            work(kernels::CrossEntropyRow<T>{vocabulary, label, static_cast<T>(smoothing)}, logits);
          });
        }
      }
    }
  }
  static T partition(const Tensor& logits) {
    return static_cast<T>(at::logsumexp(KernelTest<T>::wide(logits), {1}).template item<double>());
  }
};
TYPED_TEST_SUITE(CrossEntropyKernels, KernelTypes);

TYPED_TEST(CrossEntropyKernels, LossIsTheFormula) {
  using T = TypeParam;
  this->for_each_case([&](const kernels::CrossEntropyRow<T>& row, const Tensor& logits) {
    const auto found = kernels::cross_entropy<T>().loss(row, logits.data_ptr<T>());
    const Tensor wide = this->wide(logits);
    const auto loss = [&](double smoothing) {
      return reference::cross_entropy(wide, {row.label}, {}, smoothing, 1.0).template item<double>();
    };
    this->expect_close(found.nll, loss(0), 1);
    this->expect_close(found.smoothed, loss(static_cast<double>(row.smoothing)), 1);
    this->expect_close(found.log_partition, at::logsumexp(wide, {1}).template item<double>(), 1);
  });
}

TYPED_TEST(CrossEntropyKernels, LargeLogitsDoNotOverflow) {
  using T = TypeParam;
  const Tensor logits = at::tensor({1000.0, -1000.0, 1001.0, 990.0, 3.0}, at::kDouble).to(this->kType);
  this->on_every_instruction_set([&] {
    const auto found = kernels::cross_entropy<T>().loss({5, 1, T{0}}, logits.data_ptr<T>());
    this->expect_close(found.nll, 2001 + std::log1p(std::exp(-1.0) + std::exp(-11.0)));
  });
}

TYPED_TEST(CrossEntropyKernels, GradientIsTheDerivative) {
  using T = TypeParam;
  this->for_each_case([&](const kernels::CrossEntropyRow<T>& row, const Tensor& logits) {
    const Tensor x = leaf(logits);
    const Tensor loss = reference::cross_entropy(x, {row.label}, {}, static_cast<double>(row.smoothing), 0.75);
    const Tensor expected = gradients({loss}, {x}, {})[0];
    Guarded<T> out(at::zeros_like(logits)), in_place(logits);
    kernels::cross_entropy<T>().gradient(row, logits.data_ptr<T>(), this->partition(logits), T(0.75), out.data());
    kernels::cross_entropy<T>().gradient(row, in_place.data(), this->partition(logits), T(0.75), in_place.data());
    this->expect_close(*out, expected, 1);
    this->expect_close(*in_place, expected, 1);
    Guarded<T> together(logits);
    const auto found = kernels::cross_entropy<T>().with_gradient(row, T(0.75), together.data());
    const auto alone = kernels::cross_entropy<T>().loss(row, logits.data_ptr<T>());
    this->expect_close(*together, expected, 1);
    this->expect_close(found.nll, alone.nll, 1);
    this->expect_close(found.smoothed, alone.smoothed, 1);
    this->expect_close(found.log_partition, alone.log_partition, 1);
  });
}

TYPED_TEST(CrossEntropyKernels, CurvatureIsTheSecondDerivative) {
  using T = TypeParam;
  this->for_each_case([&](const kernels::CrossEntropyRow<T>& row, const Tensor& logits) {
    const Tensor c = this->values(logits.sizes(), 2);
    const Tensor x = leaf(logits), upstream = leaf(at::ones({}));
    const Tensor loss = reference::cross_entropy(x, {row.label}, {}, static_cast<double>(row.smoothing), 1.0);
    const auto first = gradients({loss * upstream * 0.75}, {x}, {}, /*create_graph=*/true);
    const auto second = gradients(first, {x, upstream}, {this->wide(c)});
    Guarded<T> out(at::zeros_like(logits));
    const T sum = kernels::cross_entropy<T>().curvature(row, logits.data_ptr<T>(), this->partition(logits), T(0.75),
                                                        c.template data_ptr<T>(), out.data());
    this->expect_close(*out, second[0], 1);
    this->expect_close(0.75 * static_cast<double>(sum), second[1].template item<double>(), 3);
  });
}

}  // namespace
}  // namespace plumb::testing
