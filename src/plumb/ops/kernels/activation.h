// Activations of the form f(x) = x·σ(g(x)), with g(x) = slope·(x + cubic·x³), and their first two derivatives.
#pragma once

#include <cstdint>

namespace plumb::kernels {

/// SiLU: slope 1, cubic 0. GELU's approximation: slope 2√(2/π), cubic 0.044715, since (1 + tanh u)/2 = σ(2u).
struct LogisticGate {
  double slope, cubic;
};

/// Each for elements [begin, end).
template <typename T>
struct LogisticGateKernels {
  /// y = f(x)
  void (*forward)(const LogisticGate& gate, const T* x, T* y, int64_t begin, int64_t end);
  /// dx = dy·f'(x), f' = σ + x·σ(1 − σ)·g'.
  void (*backward)(const LogisticGate& gate, const T* dy, const T* x, T* dx, int64_t begin, int64_t end);
  /// dx = a·dy·f''(x), f'' = σ(1 − σ)·(2g' + x·((1 − 2σ)·g'² + g'')).
  void (*double_backward)(const LogisticGate& gate, const T* a, const T* dy, const T* x, T* dx, int64_t begin,
                          int64_t end);
};

/// Those of the instructions in use.
template <typename T>
const LogisticGateKernels<T>& logistic_gate();

}  // namespace plumb::kernels
