// The attention kernels compared with the formula in float64 and its derivatives.
#include "plumb/ops/kernels/attention.h"

#include "ops/kernels/kernel_check.h"

namespace plumb::testing {
namespace {

struct Shape {
  int64_t queries, keys, size;
  bool causal;
};
// One query, a few, partial and full blocks of queries; sizes at and near multiples of the vector length.
constexpr Shape kShapes[] = {{1, 1, 1, false},   {1, 1, 5, true},     {1, 37, 5, false},    {5, 3, 16, false},
                             {6, 50, 33, false}, {7, 11, 8, false},   {7, 7, 33, true},     {48, 48, 16, true},
                             {49, 49, 8, true},  {113, 113, 3, true}, {97, 130, 19, false}, {3, 3, 70, true}};

template <typename T>
class AttentionKernels : public KernelTest<T> {
 protected:
  using KernelTest<T>::values;

  /// Calls work(shape, head) with row strides that exceed row lengths, as with several heads.
  template <typename Work>
  void for_each_case(const Work& work) {
    for (const Shape& s : kShapes) {
      SCOPED_TRACE(::testing::Message() << s.queries << " queries, " << s.keys << " keys, size " << s.size
                                        << (s.causal ? ", causal" : ""));
      query_ = values({s.queries, s.size + 3}, 1);
      packed_ = values({s.keys, 2 * s.size + 5}, 2);
      const T* kv = packed_.data_ptr<T>();
      const kernels::AttentionHead<T> head{s.queries,
                                           s.keys,
                                           s.size,
                                           s.causal,
                                           static_cast<T>(1 / std::sqrt(static_cast<double>(s.size))),
                                           query_.data_ptr<T>() + 1,
                                           query_.size(1),
                                           kv + 2,
                                           kv + 2 + s.size,
                                           packed_.size(1)};
      this->on_every_instruction_set([&] { work(s, head); });
    }
  }

  static Tensor q_part(const Tensor& matrix, const Shape& s) { return matrix.narrow(1, 1, s.size); }
  static Tensor k_part(const Tensor& matrix, const Shape& s) { return matrix.narrow(1, 2, s.size); }
  static Tensor v_part(const Tensor& matrix, const Shape& s) { return matrix.narrow(1, 2 + s.size, s.size); }

  /// Returns out; its leaves are q, k and v.
  Tensor expected(const Shape& s, std::vector<Tensor>& leaves) const {
    leaves = {leaf(q_part(query_, s)), leaf(k_part(packed_, s)), leaf(v_part(packed_, s))};
    return reference::attention_head(leaves[0], leaves[1], leaves[2], s.causal);
  }

  Tensor query_, packed_;
};
TYPED_TEST_SUITE(AttentionKernels, KernelTypes);

TYPED_TEST(AttentionKernels, ForwardIsTheFormula) {
  using T = TypeParam;
  this->for_each_case([&](const Shape& s, const kernels::AttentionHead<T>& head) {
    Guarded<T> out({s.queries, s.size + 2}, this->kType);
    kernels::attention<T>().forward(head, out.data(), s.size + 2);
    std::vector<Tensor> leaves;
    this->expect_close((*out).narrow(1, 0, s.size), this->expected(s, leaves), 1);
    EXPECT_TRUE(((*out).narrow(1, s.size, 2) == -777).all().template item<bool>()) << "another head's columns";
  });
}

TYPED_TEST(AttentionKernels, BackwardIsTheDerivative) {
  using T = TypeParam;
  this->for_each_case([&](const Shape& s, const kernels::AttentionHead<T>& head) {
    const Tensor dout = this->values({s.queries, s.size + 2}, 3);
    Guarded<T> dquery(at::full_like(this->query_, -777)), dpacked(this->values({s.keys, 2 * s.size + 5}, 4));
    const Tensor before = this->wide(*dpacked);
    kernels::attention<T>().backward(
        head, {dout.data_ptr<T>(), s.size + 2, dquery.data() + 1, dpacked.data() + 2, dpacked.data() + 2 + s.size});
    std::vector<Tensor> leaves;
    const Tensor out = this->expected(s, leaves);
    const auto gradient = gradients({out}, leaves, {this->wide(dout.narrow(1, 0, s.size))});
    this->expect_close(this->q_part(*dquery, s), gradient[0], 1);
    this->expect_close(this->k_part(*dpacked, s), this->k_part(before, s) + gradient[1], 1);  // added to
    this->expect_close(this->v_part(*dpacked, s), this->v_part(before, s) + gradient[2], 1);
    EXPECT_TRUE(((*dquery).select(1, 0) == -777).all().template item<bool>());
  });
}

TYPED_TEST(AttentionKernels, DoubleBackwardIsTheSecondDerivative) {
  using T = TypeParam;
  this->for_each_case([&](const Shape& s, const kernels::AttentionHead<T>& head) {
    const Tensor dout = this->values({s.queries, s.size + 2}, 3);
    const Tensor a = this->values({s.queries, s.size + 3}, 5), bc = this->values({s.keys, 2 * s.size + 5}, 6);
    Guarded<T> ddout({s.queries, s.size + 2}, this->kType), q_bar(at::full_like(this->query_, -777));
    Guarded<T> kv_bar(this->values({s.keys, 2 * s.size + 5}, 7));
    const Tensor before = this->wide(*kv_bar);
    kernels::attention<T>().double_backward(
        head, {dout.data_ptr<T>(), s.size + 2, a.data_ptr<T>() + 1, bc.data_ptr<T>() + 2, bc.data_ptr<T>() + 2 + s.size,
               ddout.data(), q_bar.data() + 1, kv_bar.data() + 2, kv_bar.data() + 2 + s.size});
    std::vector<Tensor> leaves;
    const Tensor out = this->expected(s, leaves);
    leaves.push_back(leaf(dout.narrow(1, 0, s.size)));
    const auto first = gradients({out}, {leaves[0], leaves[1], leaves[2]}, {leaves[3]}, /*create_graph=*/true);
    const auto second =
        gradients(first, leaves,
                  {this->wide(this->q_part(a, s)), this->wide(this->k_part(bc, s)), this->wide(this->v_part(bc, s))});
    this->expect_close(this->q_part(*q_bar, s), second[0], 5);
    this->expect_close(this->k_part(*kv_bar, s), this->k_part(before, s) + second[1], 5);
    this->expect_close(this->v_part(*kv_bar, s), this->v_part(before, s) + second[2], 5);
    this->expect_close((*ddout).narrow(1, 0, s.size), second[3], 5);
  });
}

TYPED_TEST(AttentionKernels, CachedKeysMayLieAnywhere) {
  using T = TypeParam;
  for (const int64_t length : {1, 2, 19, 40}) {
    for (const int64_t size : {1, 8, 33, 70, 128}) {
      SCOPED_TRACE(::testing::Message() << length << " keys, size " << size);
      const Tensor q = this->values({size}, 1), rows = this->values({2 * length, 3 * size}, 2);
      std::vector<const T*> keys;
      std::vector<int64_t> order;
      for (int64_t p = 0; p < length; ++p) {
        order.push_back((p * 7 + 3) % (2 * length));
        keys.push_back(rows.data_ptr<T>() + order.back() * 3 * size);
      }
      const Tensor used = this->wide(rows).index_select(0, at::tensor(order, at::kLong));
      const Tensor expected = reference::attention_head(this->wide(q).unsqueeze(0), used.narrow(1, size, size),
                                                        used.narrow(1, 2 * size, size), false);
      const T scale = static_cast<T>(1 / std::sqrt(static_cast<double>(size)));
      this->on_every_instruction_set([&] {
        Guarded<T> out({size}, this->kType);
        kernels::attention<T>().cached({length, size, scale, q.data_ptr<T>(), keys.data(), size, size}, out.data());
        this->expect_close(*out, expected[0], 1);
      });
    }
  }
}

}  // namespace
}  // namespace plumb::testing
