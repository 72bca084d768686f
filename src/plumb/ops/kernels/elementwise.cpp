#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plumb/ops/kernels/elementwise.cpp"
#include "plumb/ops/kernels/elementwise.h"

#include <hwy/foreach_target.h>
// Highway's order of includes: foreach_target.h first.
#include "plumb/ops/kernels/simd-inl.h"

#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace plumb::kernels::HWY_NAMESPACE {

template <typename T>
void AddBias(T* x, const T* bias, bool relu, int64_t width, int64_t begin, int64_t end) {
  const hn::ScalableTag<T> d;
  const auto zero = hn::Zero(d);
  for (int64_t row = begin; row < end; ++row) {
    T* y = x + row * width;
    if (bias == nullptr) {
      map_to(width, y, [&](auto load) HWY_ATTR { return hn::Max(load(y), zero); });
    } else if (relu) {
      map_to(width, y, [&](auto load) HWY_ATTR { return hn::Max(hn::Add(load(y), load(bias)), zero); });
    } else {
      map_to(width, y, [&](auto load) HWY_ATTR { return hn::Add(load(y), load(bias)); });
    }
  }
}

template <typename T>
void ReluBackward(const T* dy, const T* y, T* dx, int64_t begin, int64_t end) {
  const hn::ScalableTag<T> d;
  map_to(end - begin, dx + begin, [&](auto load) HWY_ATTR {
    return hn::IfThenElseZero(hn::Gt(load(y + begin), hn::Zero(d)), load(dy + begin));
  });
}

template <typename T>
void ColumnSums(const T* x, int64_t width, int64_t begin, int64_t end, T* sums) {
  int64_t row = begin;
  for (; row + 4 <= end; row += 4) {
    const T* x0 = x + row * width;
    map_to(width, sums, [&](auto load) HWY_ATTR {
      const auto pair0 = hn::Add(load(x0), load(x0 + width));
      const auto pair1 = hn::Add(load(x0 + 2 * width), load(x0 + 3 * width));
      return hn::Add(load(sums), hn::Add(pair0, pair1));
    });
  }
  for (; row < end; ++row) {
    const T* x0 = x + row * width;
    map_to(width, sums, [&](auto load) HWY_ATTR { return hn::Add(load(sums), load(x0)); });
  }
}

template <typename T>
void GatherRows(const T* table, const int64_t* ids, T scale, int64_t width, T* out, int64_t begin, int64_t end) {
  const hn::ScalableTag<T> d;
  const auto factor = hn::Set(d, scale);
  for (int64_t i = begin; i < end; ++i) {
    const T* row = table + ids[i] * width;
    map_to(width, out + i * width, [&](auto load) HWY_ATTR { return hn::Mul(factor, load(row)); });
  }
}

template <typename T>
void ScatterAddRows(const T* rows, const int64_t* ids, int64_t count, T scale, int64_t width, T* table, int64_t begin, int64_t end) {
  const hn::ScalableTag<T> d;
  const auto factor = hn::Set(d, scale);
  for (int64_t i = 0; i < count; ++i) {
    const T* row = rows + i * width + begin;
    T* out = table + ids[i] * width + begin;
    map_to(end - begin, out, [&](auto load) HWY_ATTR { return hn::MulAdd(factor, load(row), load(out)); });
  }
}

template <typename T>
void Adam(const AdamStep& s, const T* gradient, T* m, T* v, T* w, int64_t begin, int64_t end) {
  const auto beta1 = static_cast<T>(s.beta1), rest1 = static_cast<T>(1 - s.beta1);
  const auto beta2 = static_cast<T>(s.beta2), rest2 = static_cast<T>(1 - s.beta2);
  const auto eps = static_cast<T>(s.eps), step = static_cast<T>(s.step), root_scale = static_cast<T>(s.root_scale);
  const auto keep = static_cast<T>(1 - s.decay), gradient_scale = static_cast<T>(s.gradient_scale);
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) {
    const T g = gradient[i] * gradient_scale;
    const T mi = beta1 * m[i] + rest1 * g;
    const T vi = beta2 * v[i] + rest2 * g * g;
    m[i] = mi;
    v[i] = vi;
    w[i] = keep * w[i] - step * mi / (std::sqrt(vi) * root_scale + eps);
  }
}

void AddBiasF32(float* x, const float* bias, bool relu, int64_t width, int64_t b, int64_t e) { AddBias(x, bias, relu, width, b, e); }
void AddBiasF64(double* x, const double* bias, bool relu, int64_t width, int64_t b, int64_t e) { AddBias(x, bias, relu, width, b, e); }
void ReluBackwardF32(const float* dy, const float* y, float* dx, int64_t b, int64_t e) { ReluBackward(dy, y, dx, b, e); }
void ReluBackwardF64(const double* dy, const double* y, double* dx, int64_t b, int64_t e) { ReluBackward(dy, y, dx, b, e); }
void ColumnSumsF32(const float* x, int64_t width, int64_t b, int64_t e, float* sums) { ColumnSums(x, width, b, e, sums); }
void ColumnSumsF64(const double* x, int64_t width, int64_t b, int64_t e, double* sums) { ColumnSums(x, width, b, e, sums); }
void GatherRowsF32(const float* t, const int64_t* ids, float scale, int64_t width, float* out, int64_t b, int64_t e) {
  GatherRows(t, ids, scale, width, out, b, e);
}
void GatherRowsF64(const double* t, const int64_t* ids, double scale, int64_t width, double* out, int64_t b, int64_t e) {
  GatherRows(t, ids, scale, width, out, b, e);
}
void ScatterAddRowsF32(const float* rows, const int64_t* ids, int64_t n, float scale, int64_t width, float* t, int64_t b, int64_t e) {
  ScatterAddRows(rows, ids, n, scale, width, t, b, e);
}
void ScatterAddRowsF64(const double* rows, const int64_t* ids, int64_t n, double scale, int64_t width, double* t, int64_t b, int64_t e) {
  ScatterAddRows(rows, ids, n, scale, width, t, b, e);
}
void AdamF32(const AdamStep& s, const float* g, float* m, float* v, float* w, int64_t b, int64_t e) { Adam(s, g, m, v, w, b, e); }
void AdamF64(const AdamStep& s, const double* g, double* m, double* v, double* w, int64_t b, int64_t e) { Adam(s, g, m, v, w, b, e); }

}  // namespace plumb::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::kernels {

HWY_EXPORT(AddBiasF32);
HWY_EXPORT(AddBiasF64);
HWY_EXPORT(ReluBackwardF32);
HWY_EXPORT(ReluBackwardF64);
HWY_EXPORT(ColumnSumsF32);
HWY_EXPORT(ColumnSumsF64);
HWY_EXPORT(GatherRowsF32);
HWY_EXPORT(GatherRowsF64);
HWY_EXPORT(ScatterAddRowsF32);
HWY_EXPORT(ScatterAddRowsF64);
HWY_EXPORT(AdamF32);
HWY_EXPORT(AdamF64);

template <>
void add_bias(float* x, const float* bias, bool relu, int64_t width, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(AddBiasF32)(x, bias, relu, width, begin, end);
}
template <>
void add_bias(double* x, const double* bias, bool relu, int64_t width, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(AddBiasF64)(x, bias, relu, width, begin, end);
}
template <>
void relu_backward(const float* dy, const float* y, float* dx, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(ReluBackwardF32)(dy, y, dx, begin, end);
}
template <>
void relu_backward(const double* dy, const double* y, double* dx, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(ReluBackwardF64)(dy, y, dx, begin, end);
}
template <>
void column_sums(const float* x, int64_t width, int64_t begin, int64_t end, float* sums) {
  HWY_DYNAMIC_DISPATCH(ColumnSumsF32)(x, width, begin, end, sums);
}
template <>
void column_sums(const double* x, int64_t width, int64_t begin, int64_t end, double* sums) {
  HWY_DYNAMIC_DISPATCH(ColumnSumsF64)(x, width, begin, end, sums);
}
template <>
void gather_rows(const float* table, const int64_t* ids, float scale, int64_t width, float* out, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(GatherRowsF32)(table, ids, scale, width, out, begin, end);
}
template <>
void gather_rows(const double* table, const int64_t* ids, double scale, int64_t width, double* out, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(GatherRowsF64)(table, ids, scale, width, out, begin, end);
}
template <>
void scatter_add_rows(const float* rows, const int64_t* ids, int64_t count, float scale, int64_t width, float* table, int64_t begin,
                      int64_t end) {
  HWY_DYNAMIC_DISPATCH(ScatterAddRowsF32)(rows, ids, count, scale, width, table, begin, end);
}
template <>
void scatter_add_rows(const double* rows, const int64_t* ids, int64_t count, double scale, int64_t width, double* table, int64_t begin,
                      int64_t end) {
  HWY_DYNAMIC_DISPATCH(ScatterAddRowsF64)(rows, ids, count, scale, width, table, begin, end);
}
template <>
void adam(const AdamStep& step, const float* gradient, float* m, float* v, float* w, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(AdamF32)(step, gradient, m, v, w, begin, end);
}
template <>
void adam(const AdamStep& step, const double* gradient, double* m, double* v, double* w, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(AdamF64)(step, gradient, m, v, w, begin, end);
}

}  // namespace plumb::kernels
#endif  // HWY_ONCE
