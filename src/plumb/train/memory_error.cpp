#include "plumb/train/memory_error.h"

#include <new>
#include <string_view>

#include "plumb/base/error.h"

namespace plumb {

bool is_out_of_memory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  if (dynamic_cast<const Error*>(&error) != nullptr) return false;
  // LibTorch's CPU allocator and oneDNN have no exception type for it.
  const std::string_view what = error.what();
  for (const char* words : {"out of memory", "can't allocate memory", "not enough memory"}) {
    if (what.find(words) != std::string_view::npos) return true;
  }
  return false;
}

void with_enough_memory(const std::function<void()>& work, const std::function<std::string()>& where,
                        const std::string& hint) {
  try {
    work();
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
    throw Error("memory has run out at " + where(), hint);
  }
}

}  // namespace plumb
