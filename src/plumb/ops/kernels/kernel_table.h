// The kernels of a file that exist for float and double, as a table of functions. The header declares it,
//   template <typename T>
//   struct NormKernels {
//     void (*forward)(const NormForward<T>& pass, int64_t begin, int64_t end);
//   };
//   template <typename T>
//   const NormKernels<T>& norm();
// and the source fills one for each type and instruction set. norm<T>() is that of the instructions in use: ask for it
// before a loop over small pieces of work.
#pragma once

/// In the namespace of an instruction set: its tables. The arguments that follow initialize the members, in terms of T.
#define PLUMB_FILL_TABLE(Table, ...)               \
  template <typename T>                            \
  const Table<T>& table() {                        \
    static constexpr Table<T> filled{__VA_ARGS__}; \
    return filled;                                 \
  }                                                \
  static constexpr auto& table_f32 = table<float>; \
  static constexpr auto& table_f64 = table<double>

/// Where HWY_ONCE is set: the function that returns the table of the instructions in use.
#define PLUMB_EXPORT_TABLE(Table, function)   \
  HWY_EXPORT(table_f32);                      \
  HWY_EXPORT(table_f64);                      \
  template <>                                 \
  const Table<float>& function<float>() {     \
    return HWY_DYNAMIC_DISPATCH(table_f32)(); \
  }                                           \
  template <>                                 \
  const Table<double>& function<double>() {   \
    return HWY_DYNAMIC_DISPATCH(table_f64)(); \
  }                                           \
  static_assert(true)
