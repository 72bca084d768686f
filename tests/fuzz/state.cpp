// state.json, with the right checksum: an accepted state written and read again is the same.
#include <cstdlib>

#include "memory_file.h"
#include "plumb/base/error.h"
#include "plumb/base/json_fields.h"
#include "plumb/run/seal.h"
#include "plumb/run/train_state.h"
#include "plumb/trouble/trouble_judge.h"

namespace {

using namespace plumb;

/// Reads it as the trainer does.
Json read_and_written(const Json& json) {
  TroubleJudge trouble({}, {{.name = "a"}}, 10, 2);
  const auto state = from_described_json<TrainState>(json);
  JsonReader(json).section(
      "trouble", [&](Fields& field) { describe(field, trouble); }, true);
  if (json.contains("metrics")) {
    const auto mark = from_described_json<FileMark>(json["metrics"]);
    if (from_described_json<FileMark>(described_json(mark)) != mark) std::abort();
  }
  Json written = described_json(state);
  written["trouble"] = Json::object();
  JsonWriter writer(written["trouble"]);
  describe(writer, trouble);
  return written;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const fuzz::MemoryFile given(data, size);
  try {
    Json document = read_json(given.path());
    if (!document.is_object()) return 0;
    seal(document);
    const std::string text = document.dump();
    const fuzz::MemoryFile sealed(reinterpret_cast<const uint8_t*>(text.data()), text.size());
    const Json json = read_sealed(sealed.path());
    const Json once = read_and_written(json);
    if (read_and_written(Json::parse(once.dump())).dump() != once.dump()) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
