// An archive: an accepted one is within the limit, and refused by a smaller one.
#include <cstdint>
#include <cstdlib>

#include "plumb/base/error.h"
#include "plumb/data/download.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plumb;
  constexpr uint64_t kMost = uint64_t{1} << 20;
  const std::string_view archive(reinterpret_cast<const char*>(data), size);
  size_t bytes = 0;
  try {
    bytes = gunzip(archive, "fuzz", kMost).size();
  } catch (const Error&) {
    return 0;
  }
  if (bytes > kMost || gunzip(archive, "fuzz", bytes).size() != bytes) std::abort();
  if (bytes == 0) return 0;
  try {
    (void)gunzip(archive, "fuzz", bytes - 1);
    std::abort();
  } catch (const Error&) {
  }
  return 0;
}
