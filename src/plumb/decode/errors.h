// What errors of translating, generating, classifying and embedding have in common.
#pragma once

#include <fmt/format.h>

#include "plumb/base/domain.h"
#include "plumb/base/error.h"
#include "plumb/base/text.h"

namespace plumb {

/// The hint of an error about a model whose scores are not finite.
inline constexpr const char* kBrokenModel = "its training has diverged, or its weights are damaged";

/// Throws Error, such as "cannot translate with beam = 0", unless a number lies between `smallest` and `largest`.
inline void require_count(const char* purpose, const char* name, int64_t value, int64_t smallest,
                          int64_t largest = kLargestCount) {
  if (value >= smallest && value <= largest) return;
  throw Error(fmt::format("cannot {} with {} = {}", purpose, name, value),
              fmt::format("it must be from {} to {}", smallest, with_thousands(largest)));
}

}  // namespace plumb
