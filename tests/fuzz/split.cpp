// A file of token sequences, with the right checksum: every sequence of an accepted file can be read.
#include "plumb/data/split.h"

#include <cstring>
#include <vector>

#include "memory_file.h"
#include "plumb/base/checksum.h"
#include "plumb/base/crc32.h"
#include "plumb/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plumb;
  constexpr size_t kBeforeChecksum = 12, kChecked = 16;
  std::vector<uint8_t> bytes(data, data + size);
  if (size > kChecked) {
    const uint32_t sum = crc32_of(std::as_bytes(std::span(bytes)).subspan(kChecked));
    std::memcpy(bytes.data() + kBeforeChecksum, &sum, sizeof sum);
  }
  const fuzz::MemoryFile file(bytes.data(), bytes.size());
  try {
    const Split split = Split::open(file.path());
    split.verify();
    int64_t sum = 0;
    for (int64_t i = 0; i < split.size(); ++i) {
      for (const int32_t id : split.source(i)) sum += id;
      for (const int32_t id : split.target(i)) sum += id;
    }
    const volatile int64_t used = sum;
    (void)used;
  } catch (const Error&) {
  }
  return 0;
}
