// Counts the slow paths that operations record (ops/fallback.h), so that a lost fast path is noticed.
#pragma once

#include <ATen/record_function.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "plumb/ops/fallback.h"

namespace plumb::test {

/// The fallbacks that all threads have recorded since its construction. One at a time.
class FallbackCounter {
 public:
  FallbackCounter() {
    notes().clear();
    handle_ = at::addGlobalCallback(at::RecordFunctionCallback(&count).scopes({at::RecordScope::USER_SCOPE}));
  }
  ~FallbackCounter() { at::removeCallback(handle_); }
  FallbackCounter(const FallbackCounter&) = delete;
  FallbackCounter& operator=(const FallbackCounter&) = delete;

  [[nodiscard]] std::map<std::string, int64_t> counts() const {
    const std::scoped_lock lock(mutex());
    return notes();
  }

 private:
  static std::unique_ptr<at::ObserverContext> count(const at::RecordFunction& scope) {
    std::string_view name = scope.name();
    if (name.starts_with(ops::kFallback)) {
      name.remove_prefix(std::string_view(ops::kFallback).size());
      const std::scoped_lock lock(mutex());
      ++notes()[std::string(name)];
    }
    return nullptr;
  }
  static std::map<std::string, int64_t>& notes() {
    static std::map<std::string, int64_t> all;
    return all;
  }
  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }

  at::CallbackHandle handle_;
};

}  // namespace plumb::test
