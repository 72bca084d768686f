// Kernels that exist for float and double: each is a function template of an instruction set's namespace.
#pragma once

/// In that namespace: the template's two versions under names that Highway's macros take, KERNEL_f32 and KERNEL_f64.
#define PLUMB_KERNEL_TYPES(kernel)                     \
  static constexpr auto& kernel##_f32 = kernel<float>; \
  static constexpr auto& kernel##_f64 = kernel<double>

/// Where HWY_ONCE is set: the tables from which HWY_DYNAMIC_DISPATCH takes each.
#define PLUMB_EXPORT_TYPES(kernel) \
  HWY_EXPORT(kernel##_f32);        \
  HWY_EXPORT(kernel##_f64)
