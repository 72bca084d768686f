// The part of state.json on numerical trouble: an accepted state can be judged with, and written and read again is the
// same.
#include <cstdlib>

#include "memory_file.h"
#include "plumb/base/error.h"
#include "plumb/base/json_fields.h"
#include "plumb/trouble/trouble_judge.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plumb;
  TroubleConfig config;
  config.window = 8;
  config.on_spike = "skip";
  const std::vector<UpdateSeries> series = {{"a"}, {"b"}};
  const fuzz::MemoryFile file(data, size);
  try {
    TroubleJudge judge(config, series, 10, 2), again(config, series, 10, 2);
    const Json given = read_json(file.path());
    JsonReader reader(given);
    describe(reader, judge);
    const Json state = described_json(judge);
    const Json parsed = Json::parse(state.dump());
    JsonReader second(parsed);
    describe(second, again);
    if (described_json(again).dump() != state.dump()) std::abort();  // NaN is unequal to itself
    judge.see_updates(40, 0.1, {1, 2});
    const StepNumbers numbers{41, 2, 3, 0.1};
    judge.record(judge.judge(numbers), numbers);
  } catch (const Error&) {
  }
  return 0;
}
