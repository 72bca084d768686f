// Row normalization: LayerNorm and, without centering, RMSNorm; forward, backward, and double backward.
#pragma once

#include <cstdint>

namespace plumb::kernels {

/// x, y: (rows, width); gamma: (width); beta: (width) or null; statistics: (rows, 2) receives mean and 1/σ.
///   y = (x − μ)·r·γ + β,  r = 1/√(mean((x − μ)²) + eps),  μ = mean(x) if `center` else 0.
template <typename T>
struct NormForward {
  int64_t width;
  bool center;
  T eps;
  const T* x;
  const T* gamma;
  const T* beta;
  T* y;
  T* statistics;
};

/// With h = dy∘γ and x̂ = (x − μ)·r:  dx = r·(h − mean(h)[if center] − x̂·mean(h∘x̂)),  dγ = Σ dy∘x̂,  dβ = Σ dy.
/// dgamma, dbeta: (width), added to (dbeta may be null).
template <typename T>
struct NormBackward {
  int64_t width;
  bool center;
  const T* x;
  const T* gamma;
  const T* statistics;
  const T* dy;
  T* dx;
  T* dgamma;
  T* dbeta;
};

/// From cotangents a of dx, b of dγ and c of dβ (c may be null), computes those of dy, x and γ (ddy, dx, dgamma):
///   u = r·(a − mean(a) − x̂·mean(a∘x̂)),  ddy = γ∘u + b∘x̂ + c,  dgamma += Σ dy∘u,
///   v = −r·(a·mean(h∘x̂) + h·mean(a∘x̂)) + b∘dy,
///   dx = r·(v − mean(v) − x̂·mean(v∘x̂)) − x̂·r·(a·dx₁)/width,  where dx₁ is the dx of the backward pass.
/// Unless `center`, mean(a) and mean(v) are 0.
template <typename T>
struct NormDoubleBackward {
  int64_t width;
  bool center;
  const T* x;
  const T* gamma;
  const T* statistics;
  const T* dy;
  const T* a;
  const T* b;
  const T* c;
  T* ddy;
  T* dx;
  T* dgamma;
};

/// Each processes rows [begin, end).
template <typename T>
struct NormKernels {
  void (*forward)(const NormForward<T>& pass, int64_t begin, int64_t end);
  void (*backward)(const NormBackward<T>& pass, int64_t begin, int64_t end);
  void (*double_backward)(const NormDoubleBackward<T>& pass, int64_t begin, int64_t end);
};

/// Those of the instructions in use.
template <typename T>
const NormKernels<T>& norm();

}  // namespace plumb::kernels
