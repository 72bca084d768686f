// The matrix products of a training step and of decoding, by the oneDNN that this is built with: compares two versions.
//
//   g++ -O2 -std=c++20 -I src bench/peers/onednn_products.cpp -ldnnl -o products && OMP_NUM_THREADS=2 ./products
//
// Of another version, such as Debian 13's, whose packages libdnnl-dev, libdnnl3.6, libc6, libstdc++6, libgcc-s1 and
// libgomp1 have been unpacked into ROOT (dpkg-deb -x):
//
//   L=ROOT/usr/lib/x86_64-linux-gnu
//   g++ -O2 -std=c++20 -I src -isystem ROOT/usr/include bench/peers/onednn_products.cpp $L/libdnnl.so.3.7 \
//     -Wl,--allow-shlib-undefined -o products-3
//   OMP_NUM_THREADS=2 $L/ld-linux-x86-64.so.2 --library-path $L ./products-3
#include <cstdint>
#include <cstdio>
#include <random>
#include <vector>

#include "plumb/base/timing.h"
#include "plumb/ops/kernels/onednn.h"

namespace {

using DataType = dnnl::memory::data_type;
using Dims = dnnl::memory::dims;

struct Shape {
  const char* what;
  int64_t m, n, k;
  bool transpose_a, transpose_b;
};

constexpr Shape kShapes[] = {
    {"feed-forward, forward", 2048, 1024, 512, false, true},
    {"feed-forward, input's gradient", 2048, 512, 1024, false, false},
    {"feed-forward, weights' gradient", 1024, 512, 2048, true, false},
    {"query, key, value", 2048, 1536, 512, false, true},
    {"output", 512, 10000, 512, false, true},
    {"output, weights' gradient", 10000, 512, 512, true, false},
    {"width 128, forward", 4096, 256, 128, false, true},
    {"width 128, weights' gradient", 256, 128, 4096, true, false},
    {"decoding, 100 rows", 100, 512, 512, false, true},
};

/// The rate of (m, k) · (k, n) in operations per second.
double rate(const Shape& s, DataType type) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const auto matrix = [&](int64_t rows, int64_t columns, bool transposed, DataType of) {
    return dnnl::memory::desc({rows, columns}, of, transposed ? Dims{1, rows} : Dims{columns, 1});
  };
  const auto a = matrix(s.m, s.k, s.transpose_a, type), b = matrix(s.k, s.n, s.transpose_b, type);
  const auto c = matrix(s.m, s.n, false, type == DataType::s8 ? DataType::s32 : DataType::f32);
  const auto random = [&](const dnnl::memory::desc& desc) {
    dnnl::memory filled(desc, engine);
    std::mt19937 generator(1);
    auto* bytes = static_cast<uint8_t*>(filled.get_data_handle());
    // Small numbers in every type, and none of them subnormal.
    for (size_t i = 0; i < desc.get_size(); ++i) bytes[i] = static_cast<uint8_t>(0x38 + generator() % 4);
    return filled;
  };
  const dnnl::matmul product(plumb::kernels::onednn::product(engine, a, b, nullptr, c));
  dnnl::memory left = random(a), right = random(b), result(c, engine);
  const double seconds = plumb::median_seconds(9, [&] {
    product.execute(stream, {{DNNL_ARG_SRC, left}, {DNNL_ARG_WEIGHTS, right}, {DNNL_ARG_DST, result}});
    stream.wait();
  });
  return 2.0 * static_cast<double>(s.m * s.n * s.k) / seconds;
}

}  // namespace

int main() {
  const dnnl_version_t* version = dnnl_version();
  std::printf("oneDNN %d.%d.%d, GFLOP/s\n%-34s %9s %9s %9s\n", version->major, version->minor, version->patch,
              "product", "float32", "bfloat16", "int8");
  for (const Shape& shape : kShapes) {
    std::printf("%-34s %9.0f", shape.what, 1e-9 * rate(shape, DataType::f32));
    for (const DataType type : {DataType::bf16, DataType::s8}) {
      try {
        std::printf(" %9.0f", 1e-9 * rate(shape, type));
      } catch (const dnnl::error&) {
        std::printf(" %9s", "refused");
      }
    }
    std::printf("\n");
  }
}
