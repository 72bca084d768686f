// result.json: a result written and read again is the same.
#include <cstdlib>

#include "memory_file.h"
#include "plumb/base/error.h"
#include "plumb/run/point.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plumb;
  const fuzz::MemoryFile file(data, size);
  try {
    const Json json = take_json(file.path(), &TrainResult::from_json).to_json();
    if (TrainResult::from_json(Json::parse(json.dump())).to_json() != json) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
