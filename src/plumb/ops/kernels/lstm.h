// The element-wise part of an LSTM: one position of one sequence.
#pragma once

#include <cstdint>

namespace plumb::kernels {

/// c_t = σ(f)·c_{t−1} + σ(i)·tanh(g), h_t = σ(o)·tanh(c_t). Vectors of `size` elements, gates of 4·size.
template <typename T>
struct LstmCell {
  int64_t size = 0;
  T* gates = nullptr;              // the sums of i, f, g and o; on return σ(i), σ(f), tanh(g), σ(o)
  const T* cell_before = nullptr;  // c_{t−1}
  T* cell = nullptr;               // c_t
  T* hidden = nullptr;             // h_t, for the next position
  T* output = nullptr;             // h_t again, in the order of the layout
};

/// The gradients of the sums and of c_{t−1}, with δc = dc_t + dh_t·σ(o)·(1 − tanh²(c_t)):
///   di = δc·tanh(g)·σ'(i), df = δc·c_{t−1}·σ'(f), dg = δc·σ(i)·(1 − tanh²(g)), do = dh_t·tanh(c_t)·σ'(o),
///   dc_{t−1} = δc·σ(f).
template <typename T>
struct LstmCellBackward {
  int64_t size = 0;
  const T* gates = nullptr;        // as written by the forward pass
  const T* cell_before = nullptr;  // c_{t−1}
  const T* cell = nullptr;         // c_t
  const T* doutput = nullptr;      // dh_t = doutput + dhidden
  const T* dhidden = nullptr;
  T* dcell = nullptr;   // dc_t; on return dc_{t−1}
  T* dgates = nullptr;  // di, df, dg, do
};

template <typename T>
struct LstmKernels {
  void (*forward)(const LstmCell<T>& pass);
  void (*backward)(const LstmCellBackward<T>& pass);
};

/// Those of the instructions in use.
template <typename T>
const LstmKernels<T>& lstm();

}  // namespace plumb::kernels
