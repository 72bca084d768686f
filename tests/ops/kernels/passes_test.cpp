// The memory-bound kernels and the matrix product compared with ATen or plain loops in float64.
#include <omp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <thread>
#include <vector>

#include "ops/kernels/kernel_check.h"
#include "plumb/ops/kernels/activation.h"
#include "plumb/ops/kernels/dropout.h"
#include "plumb/ops/kernels/elementwise.h"
#include "plumb/ops/kernels/gemm.h"
#include "plumb/ops/kernels/top_values.h"
#include "plumb/ops/linear.h"
#include "plumb/ops/precision.h"
#include "support/bfloat16.h"

namespace plumb::testing {
namespace {

constexpr int64_t kWidths[] = {1, 3, 8, 16, 31, 64, 65, 200};

template <typename T>
class PassKernels : public KernelTest<T> {};
TYPED_TEST_SUITE(PassKernels, KernelTypes);

TYPED_TEST(PassKernels, ReluAndItsGradient) {
  using T = TypeParam;
  for (const int64_t width : kWidths) {
    const Tensor x = this->values({4, width}, 1), dy = this->values({4, width}, 3);
    this->on_every_instruction_set([&] {
      Guarded<T> y(x);
      kernels::elementwise<T>().rectify(y.data() + width, 2 * width);
      EXPECT_TRUE((*y).narrow(0, 1, 2).equal(x.clamp_min(0).narrow(0, 1, 2)));
      EXPECT_TRUE((*y)[0].equal(x[0]) && (*y)[3].equal(x[3]));
      Guarded<T> dx(x.sizes(), this->kType);
      kernels::elementwise<T>().relu_backward(dy.data_ptr<T>(), x.data_ptr<T>(), dx.data(), width, 3 * width);
      EXPECT_TRUE((*dx).narrow(0, 1, 2).equal((dy * (x > 0)).narrow(0, 1, 2)));
      EXPECT_TRUE(dx.untouched(0) && dx.untouched(3));
    });
  }
}

TYPED_TEST(PassKernels, SiluAndGelu) {
  using T = TypeParam;
  using Function = std::function<Tensor(const Tensor&)>;
  const Function silu = [](const Tensor& x) { return x * x.sigmoid(); };
  const Function gelu = [](const Tensor& x) {
    return x / 2 * (1 + (std::sqrt(2 / M_PI) * (x + 0.044715 * x.pow(3))).tanh());
  };
  const std::pair<kernels::LogisticGate, Function> cases[] = {{{1, 0}, silu},
                                                              {{2 * std::sqrt(2 / M_PI), 0.044715}, gelu}};
  for (const auto& [gate, f] : cases) {
    for (const int64_t width : kWidths) {
      const Tensor x = this->values({3, width}, 1, 3.0), dy = this->values({3, width}, 2);
      const Tensor a = this->values({3, width}, 3), in = this->wide(x).requires_grad_();
      const Tensor y = f(in), slope = gradients({y.sum()}, {in}, {}, true)[0];
      const Tensor curvature = gradients({slope.sum()}, {in}, {})[0];
      this->on_every_instruction_set([&] {
        Guarded<T> found(x.sizes(), this->kType), dx(x.sizes(), this->kType), ddx(x.sizes(), this->kType);
        kernels::logistic_gate<T>().forward(gate, x.data_ptr<T>(), found.data(), width, 2 * width);
        kernels::logistic_gate<T>().backward(gate, dy.data_ptr<T>(), x.data_ptr<T>(), dx.data(), width, 2 * width);
        kernels::logistic_gate<T>().double_backward(gate, a.data_ptr<T>(), dy.data_ptr<T>(), x.data_ptr<T>(),
                                                    ddx.data(), width, 2 * width);
        this->expect_close((*found)[1], y[1]);
        this->expect_close((*dx)[1], (slope * this->wide(dy))[1]);
        const Tensor product = (this->wide(a) * this->wide(dy))[1];  // of which the curvature is a small difference
        this->expect_close((*ddx)[1], curvature[1] * product, product.abs().max().item<double>());
        for (const Guarded<T>* each : {&found, &dx, &ddx}) EXPECT_TRUE(each->untouched(0) && each->untouched(2));
      });
    }
    // Where the exponential overflows or vanishes.
    const double far[] = {-1e30, -1e4, -200, -90, 90, 200, 1e4, 1e30};
    const Tensor x = at::tensor(at::ArrayRef<double>(far), at::kDouble).to(this->kType), ones = at::ones_like(x);
    this->on_every_instruction_set([&] {
      Guarded<T> y(x.sizes(), this->kType), dx(x.sizes(), this->kType);
      kernels::logistic_gate<T>().forward(gate, x.data_ptr<T>(), y.data(), 0, 8);
      EXPECT_TRUE(at::allclose((*y), x.clamp_min(0), 1e-6, 1e-30)) << *y;
      kernels::logistic_gate<T>().backward(gate, ones.data_ptr<T>(), x.data_ptr<T>(), dx.data(), 1, 7);
      EXPECT_TRUE(at::allclose((*dx).narrow(0, 1, 6), (x > 0).to(x.scalar_type()).narrow(0, 1, 6), 1e-6, 1e-30)) << *dx;
      kernels::logistic_gate<T>().double_backward(gate, ones.data_ptr<T>(), ones.data_ptr<T>(), x.data_ptr<T>(),
                                                  dx.data(), 0, 8);
      EXPECT_LT((*dx).abs().max().template item<double>(), 1e-30) << *dx;
    });
  }
}

TYPED_TEST(PassKernels, ColumnSumsAreAddedTo) {
  using T = TypeParam;
  for (const int64_t width : kWidths) {
    const Tensor x = this->values({13, width}, 1), before = this->values({width}, 2);
    this->on_every_instruction_set([&] {
      for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, 13}, {2, 5}, {4, 4}, {3, 11}}) {
        Guarded<T> sums(before);
        kernels::elementwise<T>().column_sums(x.data_ptr<T>(), width, begin, end, sums.data());
        this->expect_close(*sums, this->wide(before) + this->wide(x).narrow(0, begin, end - begin).sum(0), 1);
      }
    });
  }
}

TYPED_TEST(PassKernels, DropoutKeepsWhatPhiloxSays) {
  using T = TypeParam;
  constexpr uint64_t kSeed = 0x123456789ABCDEF0, kStream = 0xFEDCBA9876543210;
  const Tensor x = this->values({1100}, 1), residual = this->values({1100}, 2);
  for (const uint32_t keep_below : {0U, 20000U, 58982U, 65536U}) {
    // Starting at a multiple of eight positions, which share a counter, or not; and beyond counter 2³², so that both of
    // its words matter.
    for (const int64_t first : {int64_t{0}, int64_t{8} * 77, int64_t{1001}, (int64_t{1} << 36) - 512}) {
      const std::vector<double> kept = reference::dropout_mask(kSeed, kStream, keep_below, first, x.numel());
      const Tensor mask = at::tensor(kept, at::kDouble);
      this->on_every_instruction_set([&] {
        const kernels::DropoutMask key{kSeed, kStream, keep_below, first};
        for (const bool with_residual : {false, true}) {
          Guarded<T> out(x.sizes(), this->kType);
          const T* base = with_residual ? residual.data_ptr<T>() : nullptr;
          // In pieces, as for threads: the mask does not depend on where a piece begins.
          for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, 8}, {8, 304}, {304, 307}, {307, 1001}}) {
            kernels::dropout<T>().add(key, T(1.25), base, x.data_ptr<T>(), out.data(), begin, end);
          }
          Tensor expected = 1.25 * this->wide(x) * mask;
          if (with_residual) expected += this->wide(residual);
          this->expect_close((*out).narrow(0, 0, 1001), expected.narrow(0, 0, 1001), 1);
          EXPECT_TRUE(out.untouched(1001));
        }
      });
    }
  }
}

TYPED_TEST(PassKernels, DropoutOfAPartIsThatPartOfDropout) {
  using T = TypeParam;
  const Tensor x = this->values({4096}, 1);
  this->on_every_instruction_set([&] {
    Guarded<T> whole(x.sizes(), this->kType), part(x.sizes(), this->kType);
    kernels::dropout<T>().add({3, 5, 40000, 0}, T(1), nullptr, x.data_ptr<T>(), whole.data(), 0, 4096);
    kernels::dropout<T>().add({3, 5, 40000, 1000}, T(1), nullptr, x.data_ptr<T>() + 1000, part.data() + 1000, 0, 3096);
    EXPECT_TRUE((*part).narrow(0, 1000, 3096).equal((*whole).narrow(0, 1000, 3096)));
  });
}

TYPED_TEST(PassKernels, TopValuesAreThoseOfASort) {
  using T = TypeParam;
  for (const int64_t n : {1, 5, 64, 1000}) {
    const Tensor x = this->values({n}, 1);
    T* data = x.data_ptr<T>();
    for (int64_t i = 0; i < n; i += 3) data[i] = std::round(data[i]);  // ties
    if (n > 5) data[n - 2] = -std::numeric_limits<T>::infinity();
    std::vector<int32_t> order;
    for (int32_t i = 0; i < n; ++i) {
      if (data[i] > -std::numeric_limits<T>::infinity()) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return data[a] > data[b]; });
    this->on_every_instruction_set([&] {
      for (const int64_t k : {1, 4, 70}) {
        std::vector<T> values(static_cast<size_t>(k));
        std::vector<int32_t> ids(static_cast<size_t>(k));
        const int64_t found = kernels::top_values<T>().find(data, n, k, values.data(), ids.data());
        ASSERT_EQ(found, std::min<int64_t>(k, static_cast<int64_t>(order.size())));
        for (size_t i = 0; i < static_cast<size_t>(found); ++i) {
          EXPECT_EQ(ids[i], order[i]) << "place " << i << " of " << k << " among " << n;
          EXPECT_EQ(values[i], data[order[i]]);
        }
      }
    });
  }
}

TYPED_TEST(PassKernels, TheFirstNaNIsTheOnlyTopValue) {
  using T = TypeParam;
  for (const int64_t n : {1, 5, 64, 1000}) {
    for (const int64_t place : {int64_t{0}, n / 2, n - 1}) {
      const Tensor x = this->values({n}, 1);
      x[place] = std::numeric_limits<double>::quiet_NaN();
      x[n - 1] = std::numeric_limits<double>::quiet_NaN();
      this->on_every_instruction_set([&] {
        for (const int64_t k : {1, 4}) {
          std::vector<T> values(static_cast<size_t>(k));
          std::vector<int32_t> ids(static_cast<size_t>(k));
          EXPECT_EQ(kernels::top_values<T>().find(x.template data_ptr<T>(), n, k, values.data(), ids.data()), 1);
          EXPECT_EQ(ids[0], place);
          EXPECT_TRUE(std::isnan(values[0]));
        }
      });
    }
  }
}

/// A page of memory followed by an inaccessible one.
template <typename T>
class LastPage {
 public:
  LastPage() : page_(static_cast<size_t>(::sysconf(_SC_PAGESIZE))) {
    memory_ = ::mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED || ::mprotect(static_cast<char*>(memory_) + page_, page_, PROT_NONE) != 0) std::abort();
  }
  ~LastPage() { ::munmap(memory_, 2 * page_); }
  LastPage(const LastPage&) = delete;
  LastPage& operator=(const LastPage&) = delete;

  /// The last n elements, copies of those of x.
  T* last(const Tensor& x) {
    T* begin = reinterpret_cast<T*>(static_cast<char*>(memory_) + page_) - x.numel();
    std::copy_n(x.template data_ptr<T>(), x.numel(), begin);
    return begin;
  }

 private:
  size_t page_;
  void* memory_;
};

/// A vector access past the end would crash here; in general, it could also undo another thread's writes.
TYPED_TEST(PassKernels, TailsReachNoFurtherThanTheMemory) {
  using T = TypeParam;
  LastPage<T> in, out;
  for (int64_t n = 1; n <= 35; ++n) {
    const Tensor x = this->values({n}, 1), y = this->values({n}, 2);
    this->on_every_instruction_set([&] {
      const Tensor sum = this->wide(x) + this->wide(y);
      const auto expect = [&](const T* found) {
        this->expect_close(at::from_blob(const_cast<T*>(found), {n}, this->kType), sum);
      };
      T* written = out.last(y);
      kernels::elementwise<T>().column_sums(in.last(x), n, 0, 1, written);
      expect(written);
    });
  }
}

TYPED_TEST(PassKernels, LogPartition) {
  using T = TypeParam;
  for (const int64_t n : kWidths) {
    const Tensor x = this->values({n}, 1, 2.0) + 50;
    this->on_every_instruction_set([&] {
      this->expect_close(kernels::top_values<T>().log_partition(x.template data_ptr<T>(), n, T(52)),
                         at::logsumexp(this->wide(x), {0}).template item<double>());
    });
  }
}

TEST(SymmetricProductKernel, IsTheProductAndExactlySymmetric) {
  for (const auto& [n, k] : {std::pair<int64_t, int64_t>{1, 1}, {5, 70}, {16, 3}, {17, 17}, {128, 40}, {300, 33}}) {
    SCOPED_TRACE(::testing::Message() << n << 'x' << k);
    const Tensor a = random_tensor({n, k + 3}, 1).to(at::kFloat).narrow(1, 0, k);  // part of a wider matrix
    std::vector<Tensor> factors = {a};
    if (test::has_bfloat16_products()) factors.push_back(ops::to_bfloat16(a.contiguous()));
    const Tensor some = random_tensor({n, n}, 2).to(at::kFloat), plus = some + some.t();
    for (const std::string& name : kernels::instruction_sets()) {
      SCOPED_TRACE(name);
      kernels::use_instruction_set(name);
      for (const Tensor& factor : factors) {
        const Tensor wide = factor.to(at::kDouble), square = at::mm(wide, wide.t());
        const auto expect = [&](const Tensor& found, const Tensor& expected) {
          EXPECT_TRUE(found.equal(found.t()));
          EXPECT_LE((found.to(at::kDouble) - expected).abs().max().item<double>(),
                    3e-6 * (1 + expected.abs().max().item<double>()));
        };
        expect(ops::symmetric_product(factor, factor), square);
        expect(
            ops::symmetric_product(factor, factor, {.scale = 2.5, .plus = plus, .plus_scale = -0.5, .diagonal = 0.25}),
            2.5 * square - 0.5 * plus.to(at::kDouble) + 0.25 * at::eye(n, at::kDouble));
      }
    }
    kernels::use_instruction_set("");
  }
}

TEST(MatrixProductKernel, EveryOrientationOfMatricesWithinOthers) {
  for (const auto& [m, n, k] : {std::tuple<int64_t, int64_t, int64_t>{1, 1, 1}, {1, 7, 65}, {33, 1, 2}, {19, 35, 67}}) {
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        SCOPED_TRACE(::testing::Message() << m << 'x' << k << 'x' << n << (ta ? " aT" : "") << (tb ? " bT" : ""));
        // Each operand is the left part of a wider matrix.
        const auto part = [](int64_t rows, int64_t columns, int64_t more, uint64_t seed) {
          return random_tensor({rows, columns + more}, seed).to(at::kFloat).narrow(1, 0, columns);
        };
        const Tensor a = part(ta ? k : m, ta ? m : k, 3, 1), b = part(tb ? n : k, tb ? k : n, 1, 2);
        const Tensor product = at::mm((ta ? a.t() : a).to(at::kDouble), (tb ? b.t() : b).to(at::kDouble));
        const Tensor around = random_tensor({m, n + 2}, 3).to(at::kFloat), before = around.clone();
        const Tensor sum = around.narrow(1, 0, n);
        ops::gemm(a, b, {.transpose_a = ta, .transpose_b = tb, .accumulate_into = sum});
        const auto error = [](const Tensor& found, const Tensor& expected) {
          return (found.to(at::kDouble) - expected).abs().max().item<double>() /
                 (1 + expected.abs().max().item<double>());
        };
        EXPECT_LE(error(ops::gemm(a, b, {.transpose_a = ta, .transpose_b = tb}), product), 3e-6);
        EXPECT_LE(error(sum, before.narrow(1, 0, n).to(at::kDouble) + product), 3e-6);
        EXPECT_TRUE(around.narrow(1, n, 2).equal(before.narrow(1, n, 2)));
      }
    }
  }
}

TEST(InstructionSets, EndWithTheBaselineAndRefuseWhatTheMachineLacks) {
  const auto names = kernels::instruction_sets();
  ASSERT_FALSE(names.empty());
  kernels::use_instruction_set(names.back());
  EXPECT_EQ(kernels::instruction_sets(), names);  // all are listed, whichever is in use
  EXPECT_ANY_THROW(kernels::use_instruction_set("abacus"));
  kernels::use_instruction_set("");
}

// Text of any length has products of thousands of shapes, which every thread meets.
TEST(MatrixProducts, OfAllThreadsTogetherKeepABoundedNumberOfShapes) {
  constexpr int64_t kThreads = 8, kShapes = 2200, kMost = 16384;
  const int64_t before = kernels::compiled_products();
  std::barrier all_done(kThreads);
  std::atomic<int64_t> kept = 0, wrong = 0;
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      omp_set_num_threads(1);
      const std::vector<float> a(kShapes, 1);
      std::vector<float> c(kShapes);
      const float b = 2;
      for (int64_t m = 1; m <= kShapes; ++m) {
        kernels::gemm<float>({.m = m, .n = 1, .k = 1, .lda = 1, .ldb = 1, .ldc = 1}, a.data(), &b, c.data());
        wrong += c[static_cast<size_t>(m) - 1] != 2;
      }
      all_done.arrive_and_wait();
      kept = kernels::compiled_products() - before;
      all_done.arrive_and_wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(kept, 0);
  EXPECT_LE(kept, kMost);
}

}  // namespace
}  // namespace plumb::testing
