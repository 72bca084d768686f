// The interface between Plumb and its regular-expression module: plain C, and no memory changes ownership.
//
// Debian's libonig exports `regcomp` and `regexec` of POSIX with its own `regex_t`, which must not replace those of the
// C library. It is therefore linked into a separate module, whose symbols are hidden.
#pragma once

#include <cstddef>

namespace plumb {

extern "C" {

/// Receives an error message, and the bytes [begin, end) of a match.
using OnigurumaMessage = void (*)(void* receiver, const char* data, size_t size);
using OnigurumaMatch = void (*)(void* receiver, size_t begin, size_t end);

/// A compiled expression, opaque outside the module. Several threads may search with it.
struct OnigurumaHandle;

struct OnigurumaFunctions {
  /// Null if the expression is invalid; then a message is sent to `error`.
  OnigurumaHandle* (*compile)(const char* pattern, size_t size, OnigurumaMessage error, void* receiver);
  void (*release)(OnigurumaHandle* expression);
  /// Sends all matches in `text`, which must be valid UTF-8, from left to right. An empty match at the end of the
  /// previous one is skipped. Returns 0, or 1 after an error, such as a search that takes too many steps
  /// back.
  int (*find_all)(const OnigurumaHandle* expression, const char* text, size_t size, OnigurumaMatch match,
                  OnigurumaMessage error, void* receiver);
};

}  // extern "C"

/// The name of the module's only symbol, `const OnigurumaFunctions* (*)()`.
constexpr const char* kOnigurumaEntry = "plumb_oniguruma";

}  // namespace plumb
