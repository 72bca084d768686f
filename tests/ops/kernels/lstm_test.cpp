// The LSTM cell kernels compared with the equations in float64 and their derivatives, and products with packed weights.
#include "plumb/ops/kernels/lstm.h"

#include <array>

#include "ops/kernels/kernel_check.h"
#include "plumb/ops/kernels/gemm.h"

namespace plumb::testing {
namespace {

template <typename T>
class LstmKernels : public KernelTest<T> {
 protected:
  using KernelTest<T>::values;

  static constexpr std::array<int64_t, 7> kSizes = {1, 2, 7, 16, 31, 67, 256};

  /// h_t and c_t from the gates' sums and c_{t−1}, written as in the paper.
  static std::vector<Tensor> expected(const Tensor& sums, const Tensor& before) {
    const std::vector<Tensor> part = sums.chunk(4);
    const auto sigmoid = [](const Tensor& z) { return 1 / (1 + (-z).exp()); };
    const Tensor cell = sigmoid(part[1]) * before + sigmoid(part[0]) * part[2].tanh();
    return {sigmoid(part[3]) * cell.tanh(), cell};
  }
};
TYPED_TEST_SUITE(LstmKernels, KernelTypes);

TYPED_TEST(LstmKernels, CellIsTheFormula) {
  using T = TypeParam;
  for (const int64_t size : this->kSizes) {
    SCOPED_TRACE(size);
    const Tensor sums = this->values({4 * size}, 1, 2.0), before = this->values({size}, 2);
    const std::vector<Tensor> part = this->wide(sums).chunk(4);
    const std::vector<Tensor> expected = this->expected(this->wide(sums), this->wide(before));
    this->on_every_instruction_set([&] {
      Guarded<T> gates(sums), cell({size}, this->kType), hidden({size}, this->kType), output({size}, this->kType);
      kernels::lstm<T>().forward({size, gates.data(), before.data_ptr<T>(), cell.data(), hidden.data(), output.data()});
      this->expect_close(*hidden, expected[0], 0.1);
      this->expect_close(*output, expected[0], 0.1);
      this->expect_close(*cell, expected[1], 0.1);
      this->expect_close(*gates, at::cat({part[0].sigmoid(), part[1].sigmoid(), part[2].tanh(), part[3].sigmoid()}));
    });
  }
}

TYPED_TEST(LstmKernels, GatesSaturate) {
  using T = TypeParam;
  const Tensor far = at::tensor({-1e30, -1000.0, -100.0, 100.0, 1000.0, 1e30}, this->kType);
  const int64_t size = far.numel();
  const Tensor before = at::ones({size}, this->kType);
  const Tensor step = (this->wide(far) > 0).to(at::kDouble), sign = this->wide(far).sign();
  this->on_every_instruction_set([&] {
    Guarded<T> gates(far.repeat({4})), cell({size}, this->kType), hidden({size}, this->kType),
        output({size}, this->kType);
    kernels::lstm<T>().forward({size, gates.data(), before.data_ptr<T>(), cell.data(), hidden.data(), output.data()});
    this->expect_close(*gates, at::cat({step, step, sign, step}));
    this->expect_close(*cell, 2 * step);
  });
}

TYPED_TEST(LstmKernels, BackwardIsTheDerivative) {
  using T = TypeParam;
  for (const int64_t size : this->kSizes) {
    SCOPED_TRACE(size);
    const Tensor sums = this->values({4 * size}, 1, 2.0), before = this->values({size}, 2);
    const Tensor doutput = this->values({size}, 3), dhidden = this->values({size}, 4), dcell = this->values({size}, 5);
    const std::vector<Tensor> leaves = {leaf(sums), leaf(before)};
    const std::vector<Tensor> expected =
        gradients(this->expected(leaves[0], leaves[1]), leaves, {this->wide(doutput + dhidden), this->wide(dcell)});
    this->on_every_instruction_set([&] {
      const Tensor gates = sums.clone(), cell = at::empty_like(before), hidden = at::empty_like(before);
      kernels::lstm<T>().forward({size, gates.data_ptr<T>(), before.data_ptr<T>(), cell.data_ptr<T>(),
                                  hidden.data_ptr<T>(), hidden.data_ptr<T>()});
      Guarded<T> dbefore(dcell), dgates({4 * size}, this->kType);
      kernels::lstm<T>().backward({size, gates.data_ptr<T>(), before.data_ptr<T>(), cell.data_ptr<T>(),
                                   doutput.data_ptr<T>(), dhidden.data_ptr<T>(), dbefore.data(), dgates.data()});
      this->expect_close(*dgates, expected[0], 1);
      this->expect_close(*dbefore, expected[1], 1);
    });
  }
}

TEST(PackedWeightKernels, MultiplyByATransposedMatrixAndAdd) {
  for (const auto& [m, n, k] : {std::tuple<int64_t, int64_t, int64_t>{1, 1, 1}, {5, 17, 9}, {80, 68, 33}}) {
    const Tensor a = random_tensor({m, k}, 1).to(at::kFloat), w = random_tensor({n, k}, 2).to(at::kFloat);
    const Tensor begin = random_tensor({m, n}, 3).to(at::kFloat);
    const Tensor expected = at::mm(a.to(at::kDouble), w.t().to(at::kDouble)) + begin.to(at::kDouble);
    const Tensor turned = w.t().contiguous();
    for (const bool transposed : {false, true}) {
      const Tensor& stored = transposed ? turned : w;
      const kernels::PackedWeight<float> packed(stored.data_ptr<float>(), n, k, transposed);
      Guarded<float> c(begin);
      kernels::gemm<float>(m, a.data_ptr<float>(), packed, c.data(), {.accumulate = true});
      EXPECT_LT(((*c).to(at::kDouble) - expected).abs().max().item<double>(), 1e-5) << m << ' ' << transposed;
    }
  }
}

}  // namespace
}  // namespace plumb::testing
