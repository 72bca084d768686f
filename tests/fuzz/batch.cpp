// The JSON of a batch: an accepted batch is well-formed.
#include <cstdlib>

#include "memory_file.h"
#include "plumb/base/error.h"
#include "plumb/data/sequences.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plumb;
  const fuzz::MemoryFile file(data, size);
  try {
    const Batch batch = take_json(
        file.path(), [](const Json& json) { return batch_from_json(json.contains("batch") ? json["batch"] : json); });
    const bool fits = batch.source_layout.tokens() == static_cast<int64_t>(batch.source.size()) &&
                      batch.target_layout.tokens() == static_cast<int64_t>(batch.target_input.size()) &&
                      (batch.segments.empty() || batch.segments.size() == batch.source.size()) && batch.weight() >= 0;
    if (!fits) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
