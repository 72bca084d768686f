#include "plumb/study/measurements.h"

#include "plumb/base/timing.h"

namespace plumb {

Json Measurements::get(const std::string& name, const Json& settings, const std::function<Json()>& measure) {
  const std::filesystem::path path = directory_ / (name + ".json");
  if (std::filesystem::exists(path)) {
    const Json document = read_json(path);
    if (document.contains("result") && document.value("settings", Json()) == settings) {
      ++found_;
      return document["result"];
    }
  }
  const Stopwatch watch;
  Json document = make_document("measurement", 1);
  document["name"] = name;
  document["settings"] = settings;
  document["result"] = measure();
  document["seconds"] = watch.seconds();
  write_json(path, document);
  ++measured_;
  return read_json(path)["result"];  // so that the result is the same whether it was measured or read
}

}  // namespace plumb
