#include "plumb/ops/kernels/gemm.h"

#include <fmt/format.h>
#include <omp.h>

#include <array>
#include <dnnl.hpp>
#include <map>
#include <memory>
#include <unordered_map>

#include "plumb/base/error.h"

namespace plumb::kernels {
namespace {

using DataType = dnnl::memory::data_type;

/// All that a compiled product depends on.
using Key = std::array<int64_t, 11>;

/// A compiled product and the operands that it is run on.
struct Compiled {
  dnnl::matmul primitive;
  dnnl::memory a, b, c, bias;
  std::unordered_map<int, dnnl::memory> arguments;
};

struct Engine {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::map<Key, std::unique_ptr<Compiled>> compiled;
};

/// One a thread: neither streams nor operands may be shared.
Engine& engine() {
  static thread_local Engine instance;
  return instance;
}

dnnl::memory::desc matrix(int64_t rows, int64_t columns, int64_t stride, bool transposed, DataType type) {
  return {{rows, columns}, type, transposed ? dnnl::memory::dims{1, stride} : dnnl::memory::dims{stride, 1}};
}

std::unique_ptr<Compiled> compile(const Product& p, DataType type, Engine& on) {
  const auto a = matrix(p.m, p.k, p.lda, p.transpose_a, type);
  const auto b = matrix(p.k, p.n, p.ldb, p.transpose_b, type);
  const auto c = matrix(p.m, p.n, p.ldc, false, DataType::f32);
  const dnnl::memory::desc bias({1, p.n}, DataType::f32, dnnl::memory::dims{p.n, 1});
  dnnl::post_ops after;
  if (p.accumulate) after.append_sum(1.0F);
  if (p.relu) after.append_eltwise(1.0F, dnnl::algorithm::eltwise_relu, 0.0F, 0.0F);
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(after);
  const dnnl::matmul::desc description =
      p.bias != nullptr ? dnnl::matmul::desc(a, b, bias, c) : dnnl::matmul::desc(a, b, c);
  auto compiled = std::make_unique<Compiled>(
      Compiled{dnnl::matmul(dnnl::matmul::primitive_desc(description, attributes, on.engine)),
               dnnl::memory(a, on.engine, nullptr),
               dnnl::memory(b, on.engine, nullptr),
               dnnl::memory(c, on.engine, nullptr),
               dnnl::memory(bias, on.engine, nullptr),
               {}});
  compiled->arguments = {{DNNL_ARG_SRC, compiled->a}, {DNNL_ARG_WEIGHTS, compiled->b}, {DNNL_ARG_DST, compiled->c}};
  if (p.bias != nullptr) compiled->arguments.emplace(DNNL_ARG_BIAS, compiled->bias);
  return compiled;
}

Compiled& compiled_for(const Product& p, DataType type, Engine& on) {
  // Within a parallel region a product runs on the thread that asks for it.
  const int64_t threads = omp_in_parallel() != 0 ? 1 : omp_get_max_threads();
  const Key key = {p.transpose_a,
                   p.transpose_b,
                   p.m,
                   p.n,
                   p.k,
                   p.lda,
                   p.ldb,
                   p.ldc,
                   (p.accumulate ? 1 : 0) + (p.relu ? 2 : 0) + (p.bias != nullptr ? 4 : 0),
                   static_cast<int64_t>(type),
                   threads};
  const auto found = on.compiled.find(key);
  if (found != on.compiled.end()) return *found->second;
  constexpr size_t kCapacity = 4096;  // shapes; batches of ragged text have many
  if (on.compiled.size() >= kCapacity) on.compiled.clear();
  return *on.compiled.emplace(key, compile(p, type, on)).first->second;
}

template <typename T>
constexpr DataType kDataType = DataType::f32;
template <>
constexpr DataType kDataType<Bfloat16> = DataType::bf16;

}  // namespace

template <typename T>
void gemm(const Product& product, const T* a, const T* b, float* c) {
  try {
    Engine& on = engine();
    Compiled& compiled = compiled_for(product, kDataType<T>, on);
    // oneDNN takes all operands as writable.
    compiled.a.set_data_handle(const_cast<T*>(a));
    compiled.b.set_data_handle(const_cast<T*>(b));
    compiled.c.set_data_handle(c);
    if (product.bias != nullptr) compiled.bias.set_data_handle(const_cast<float*>(product.bias));
    compiled.primitive.execute(on.stream, compiled.arguments);
    on.stream.wait();
  } catch (const dnnl::error& error) {
    throw Error(fmt::format("oneDNN refused a matrix product of ({}, {}) by ({}, {}): {}", product.m, product.k,
                            product.k, product.n, error.what()),
                kDataType<T> == DataType::bf16 ? "does this processor compute in bfloat16?" : "");
  }
}

template void gemm<float>(const Product&, const float*, const float*, float*);
template void gemm<Bfloat16>(const Product&, const Bfloat16*, const Bfloat16*, float*);

}  // namespace plumb::kernels
