// Test support for the kernels.
#pragma once

#include <gtest/gtest.h>

#include "plumb/ops/path.h"

/// Skips a test of guarantees that only the kernels give if operations are computed by their references.
#define PLUMB_REQUIRE_KERNELS()                                                                                 \
  if (!plumb::ops::kernels_serve(at::kCPU)) {                                                                   \
    GTEST_SKIP() << "operations are computed by their references: built without kernels, or PLUMB_KERNELS=off"; \
  }                                                                                                             \
  static_assert(true)
