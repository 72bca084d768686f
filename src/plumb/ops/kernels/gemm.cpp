#include "plumb/ops/kernels/gemm.h"

#include <fmt/format.h>
#include <omp.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <new>
#include <unordered_map>
#include <vector>

#include "plumb/base/error.h"
#include "plumb/base/parallel.h"
#include "plumb/ops/kernels/elementwise.h"
#include "plumb/ops/kernels/onednn.h"

namespace plumb::kernels {
namespace {

using DataType = dnnl::memory::data_type;

/// Everything that a compiled product depends on.
using Key = std::array<int64_t, 12>;

/// The compiled products that all threads keep, and the threads that keep some.
std::atomic<int64_t> kept_products = 0, keeping_threads = 0;

/// A compiled product and the operands that it is run on.
struct Compiled {
  dnnl::matmul primitive;
  dnnl::memory a, b, c, bias;
  std::unordered_map<int, dnnl::memory> arguments;
  uint64_t used = 0;  // when, by the clock of its engine
};

struct Engine {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::map<Key, std::unique_ptr<Compiled>> compiled;
  uint64_t clock = 0;

  Engine() { ++keeping_threads; }
  ~Engine() {
    --keeping_threads;
    kept_products -= std::ssize(compiled);
  }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Makes room for another product, of 4 to 13 KB, by dropping those that were not used for the longest time. Ragged
  /// text has many shapes, and every thread meets them: the more threads, the fewer each may keep.
  void make_room() {
    constexpr int64_t kAll = 16384, kLeast = 512, kMost = 4096;
    while (std::ssize(compiled) >= std::clamp(kAll / keeping_threads.load(), kLeast, kMost)) {
      compiled.erase(std::min_element(compiled.begin(), compiled.end(), [](const auto& one, const auto& other) {
        return one.second->used < other.second->used;
      }));
      --kept_products;
    }
  }
};

/// One per thread: neither streams nor operands may be shared.
Engine& engine() {
  static thread_local Engine instance;
  return instance;
}

dnnl::memory::desc matrix(int64_t rows, int64_t columns, int64_t stride, bool transposed, DataType type) {
  return {{rows, columns}, type, transposed ? dnnl::memory::dims{1, stride} : dnnl::memory::dims{stride, 1}};
}

DataType type_of_sums(DataType type) { return type == DataType::s8 ? DataType::s32 : DataType::f32; }

/// Throws std::bad_alloc unless there is memory for oneDNN's compiler: some versions do not check whether they got
/// memory for the code.
void require_room() {
  constexpr size_t kRoom = size_t{16} << 20;
  void* room = ::mmap(nullptr, kRoom, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) throw std::bad_alloc();
  ::munmap(room, kRoom);
}

/// `packed`: the layout of B if it is packed.
std::unique_ptr<Compiled> compile(const Product& p, DataType type, const dnnl::memory::desc* packed, Engine& on) {
  require_room();
  const auto a = matrix(p.m, p.k, p.lda, p.transpose_a, type);
  const auto b = packed != nullptr ? *packed : matrix(p.k, p.n, p.ldb, p.transpose_b, type);
  const auto c = matrix(p.m, p.n, p.ldc, false, type_of_sums(type));
  const dnnl::memory::desc bias({1, p.n}, DataType::f32, dnnl::memory::dims{p.n, 1});
  dnnl::post_ops after;
  if (p.accumulate) after.append_sum(1.0F);
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(after);
  auto compiled = std::make_unique<Compiled>(
      Compiled{dnnl::matmul(onednn::product(on.engine, a, b, p.bias != nullptr ? &bias : nullptr, c, attributes)),
               dnnl::memory(a, on.engine, nullptr),
               dnnl::memory(b, on.engine, nullptr),
               dnnl::memory(c, on.engine, nullptr),
               dnnl::memory(bias, on.engine, nullptr),
               {},
               0});
  compiled->arguments = {{DNNL_ARG_SRC, compiled->a}, {DNNL_ARG_WEIGHTS, compiled->b}, {DNNL_ARG_DST, compiled->c}};
  if (p.bias != nullptr) compiled->arguments.emplace(DNNL_ARG_BIAS, compiled->bias);
  return compiled;
}

Compiled& compiled_for(const Product& p, DataType type, const dnnl::memory::desc* packed, Engine& on) {
  // In a parallel region, a product runs on the calling thread alone.
  const int64_t threads = omp_in_parallel() != 0 ? 1 : omp_get_max_threads();
  const Key key = {p.transpose_a,
                   p.transpose_b,
                   p.m,
                   p.n,
                   p.k,
                   p.lda,
                   p.ldb,
                   p.ldc,
                   (p.accumulate ? 1 : 0) + (p.bias != nullptr ? 2 : 0),
                   static_cast<int64_t>(type),
                   packed != nullptr,  // the layout depends only on type and shape
                   threads};
  auto known = on.compiled.find(key);
  if (known == on.compiled.end()) {
    on.make_room();
    known = on.compiled.emplace(key, compile(p, type, packed, on)).first;
    ++kept_products;
  }
  known->second->used = ++on.clock;
  return *known->second;
}

/// max(C, 0); NaN stays NaN, whereas oneDNN's ReLU gives 0.
void rectify(const Product& p, float* c) {
  const auto rectify_row = elementwise<float>().rectify;
  parallel_ranges(p.m, std::max<int64_t>(1, (1 << 15) / std::max<int64_t>(p.n, 1)), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) rectify_row(c + row * p.ldc, p.n);
  });
}

/// Runs the product on these operands; `packed`, if not null, replaces B.
void run(const Product& p, DataType type, const void* a, const void* b, const dnnl::memory* packed, void* c) {
  try {
    Engine& on = engine();
    const dnnl::memory::desc layout = packed != nullptr ? packed->get_desc() : dnnl::memory::desc();
    Compiled& compiled = compiled_for(p, type, packed != nullptr ? &layout : nullptr, on);
    // oneDNN takes all operands as writable.
    compiled.a.set_data_handle(const_cast<void*>(a));
    if (packed != nullptr) {
      compiled.arguments.insert_or_assign(DNNL_ARG_WEIGHTS, *packed);  // set_data_handle() would write to its padding
    } else {
      compiled.b.set_data_handle(const_cast<void*>(b));
    }
    compiled.c.set_data_handle(c);
    if (p.bias != nullptr) compiled.bias.set_data_handle(const_cast<float*>(p.bias));
    compiled.primitive.execute(on.stream, compiled.arguments);
    on.stream.wait();
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_out_of_memory) throw std::bad_alloc();
    throw Error(
        fmt::format("oneDNN refused a matrix product of ({}, {}) by ({}, {}): {}", p.m, p.k, p.k, p.n, error.what()),
        type == DataType::bf16 ? "does this processor support bfloat16?" : "");
  }
  if (p.relu) rectify(p, static_cast<float*>(c));
}

template <typename T>
constexpr DataType kDataType = DataType::f32;
template <>
constexpr DataType kDataType<Bfloat16> = DataType::bf16;
template <>
constexpr DataType kDataType<int8_t> = DataType::s8;

/// A contiguous copy of `count` values that are `step` apart.
template <typename T>
std::vector<T> together(const T* values, int64_t count, int64_t step) {
  std::vector<T> result(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) result[static_cast<size_t>(i)] = values[i * step];
  return result;
}

}  // namespace

template <typename T>
void gemm(const Product& product, const T* a, const T* b, float* c) {
  // With AVX-512, oneDNN 3.7 ignores the strides of an A with one row and of a C with one column, and takes their
  // elements to be contiguous. So they are copied.
  const bool spread_a = product.m == 1 && product.transpose_a && product.lda > 1;
  const bool spread_c = product.n == 1 && product.ldc > 1;
  if (!spread_a && !spread_c) return run(product, kDataType<T>, a, b, nullptr, c);
  Product dense = product;
  std::vector<T> row;
  std::vector<float> column;
  if (spread_a) {
    row = together(a, product.k, product.lda);
    dense.lda = 1;
  }
  if (spread_c) {
    column = product.accumulate ? together(c, product.m, product.ldc) : std::vector<float>(product.m);
    dense.ldc = 1;
  }
  run(dense, kDataType<T>, spread_a ? row.data() : a, b, nullptr, spread_c ? column.data() : c);
  for (size_t i = 0; i < column.size(); ++i) c[static_cast<int64_t>(i) * product.ldc] = column[i];
}

template void gemm<float>(const Product&, const float*, const float*, float*);
template void gemm<Bfloat16>(const Product&, const Bfloat16*, const Bfloat16*, float*);

template <typename T>
struct PackedWeight<T>::Content {
  dnnl::memory memory;
};

template <typename T>
PackedWeight<T>::PackedWeight(const T* weight, int64_t n, int64_t k, bool transposed) : n_(n), k_(k) {
  // oneDNN chooses the best layout, which is the same for any number of rows.
  constexpr int64_t kRows = 64;
  constexpr DataType kType = kDataType<T>;
  try {
    const dnnl::memory::desc any({k, n}, kType, dnnl::memory::format_tag::any);
    const auto best = onednn::product(engine().engine, matrix(kRows, k, k, false, kType), any, nullptr,
                                      matrix(kRows, n, n, false, type_of_sums(kType)));
    dnnl::memory plain(matrix(k, n, transposed ? n : k, !transposed, kType), engine().engine, const_cast<T*>(weight));
    dnnl::memory packed(best.weights_desc(), engine().engine);
    dnnl::reorder(plain, packed).execute(engine().stream, plain, packed);
    engine().stream.wait();
    content_ = std::make_shared<Content>(Content{packed});
  } catch (const dnnl::error& error) {
    throw Error(fmt::format("oneDNN refused to pack a weight of ({}, {}): {}", n, k, error.what()),
                kType == DataType::bf16 ? "does this processor support bfloat16?" : "");
  }
}

template class PackedWeight<float>;
template class PackedWeight<Bfloat16>;
template class PackedWeight<int8_t>;

template <typename T>
void gemm(int64_t m, const T* a, const PackedWeight<T>& weight, SumOf<T>* c, const PackedOptions& options) {
  const Product product{.m = m,
                        .n = weight.n(),
                        .k = weight.k(),
                        .lda = weight.k(),
                        .ldc = weight.n(),
                        .accumulate = options.accumulate,
                        .relu = options.relu,
                        .bias = options.bias};
  run(product, kDataType<T>, a, nullptr, &weight.content().memory, c);
}

template void gemm(int64_t, const float*, const PackedWeight<float>&, float*, const PackedOptions&);
template void gemm(int64_t, const Bfloat16*, const PackedWeight<Bfloat16>&, float*, const PackedOptions&);
template void gemm(int64_t, const int8_t*, const PackedWeight<int8_t>&, int32_t*, const PackedOptions&);

int64_t compiled_products() { return kept_products; }

bool adds_pairs_in_16_bits() {
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::sse41:
    case dnnl::cpu_isa::avx:
    case dnnl::cpu_isa::avx2:
    case dnnl::cpu_isa::avx512_core:
      return true;
    default:
      return false;
  }
}

}  // namespace plumb::kernels
