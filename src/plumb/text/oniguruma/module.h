// The interface between Plumb and its module of regular expressions: plain C, and no memory changes ownership.
//
// Debian's libonig exports POSIX's `regcomp` and `regexec` with a `regex_t` of its own, which must not take the place
// of the C library's. It is therefore linked into a separate module, whose symbols nobody else sees.
#pragma once

#include <cstddef>

namespace plumb {

extern "C" {

/// Receives an error message, and the bytes [begin, end) of a match.
using OnigurumaMessage = void (*)(void* receiver, const char* data, size_t size);
using OnigurumaMatch = void (*)(void* receiver, size_t begin, size_t end);

/// A compiled expression, as seen by the module. It may be searched with by several threads.
struct OnigurumaHandle;

struct OnigurumaFunctions {
  /// Null if the expression is invalid; a message was sent then.
  OnigurumaHandle* (*compile)(const char* pattern, size_t size, OnigurumaMessage error, void* receiver);
  void (*release)(OnigurumaHandle* expression);
  /// Sends all matches in `text`, which is valid UTF-8, from left to right. An empty match that begins where the last
  /// one ended does not count. Returns 0, or 1 after an error, such as a search that takes too many steps.
  int (*find_all)(const OnigurumaHandle* expression, const char* text, size_t size, OnigurumaMatch match,
                  OnigurumaMessage error, void* receiver);
};

}  // extern "C"

/// The name of the module's only symbol, `const OnigurumaFunctions* (*)()`.
constexpr const char* kOnigurumaEntry = "plumb_oniguruma";

}  // namespace plumb
