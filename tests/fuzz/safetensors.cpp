// Safetensors: every byte of an accepted file can be read.
#include "plumb/io/safetensors.h"

#include "memory_file.h"
#include "plumb/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plumb;
  const fuzz::MemoryFile file(data, size);
  try {
    double sum = 0;
    for (const auto& [name, tensor] : load_safetensors(file.path())) sum += tensor.to(at::kDouble).sum().item<double>();
    const volatile double used = sum;
    (void)used;
  } catch (const Error&) {
  }
  return 0;
}
