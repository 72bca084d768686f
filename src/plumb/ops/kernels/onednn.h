// Differences between the interfaces of oneDNN 2 (Debian 12, Ubuntu 24.04) and oneDNN 3 (Debian 13).
#pragma once

#include <dnnl.hpp>

namespace plumb::kernels::onednn {

using Layout = dnnl::memory::desc;

/// A product C = A · B [+ bias]; `bias` may be null.
inline dnnl::matmul::primitive_desc product(const dnnl::engine& engine, const Layout& a, const Layout& b,
                                            const Layout* bias, const Layout& c,
                                            const dnnl::primitive_attr& attributes = {}) {
#if DNNL_VERSION_MAJOR < 3
  const dnnl::matmul::desc description =
      bias != nullptr ? dnnl::matmul::desc(a, b, *bias, c) : dnnl::matmul::desc(a, b, c);
  return {description, attributes, engine};
#else
  if (bias != nullptr) return {engine, a, b, *bias, c, attributes};
  return {engine, a, b, c, attributes};
#endif
}

}  // namespace plumb::kernels::onednn
