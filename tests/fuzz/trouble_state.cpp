// The part of state.json on numerical trouble: an accepted state can be judged with, and written and read again is the
// same.
#include <cstdlib>

#include "memory_file.h"
#include "plumb/base/error.h"
#include "plumb/trouble/trouble_judge.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plumb;
  TroubleConfig config;
  config.window = 8;
  config.on_spike = "skip";
  const std::vector<std::string> series = {"a", "b"};
  const fuzz::MemoryFile file(data, size);
  try {
    TroubleJudge judge(config, series, 10, 2);
    take_json(file.path(), [&judge](const Json& json) {
      judge.load_state(json);
      return 0;
    });
    const Json state = judge.state();
    TroubleJudge again(config, series, 10, 2);
    again.load_state(Json::parse(state.dump()));
    if (again.state().dump() != state.dump()) std::abort();  // NaN is unequal to itself
    judge.see_updates(40, 0.1, {1, 2});
    const StepNumbers numbers{41, 2, 3, 0.1};
    judge.record(judge.judge(numbers), numbers, Json::object());
  } catch (const Error&) {
  }
  return 0;
}
