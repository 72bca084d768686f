// TOML: the first line is an assignment of --set, the rest a document. Values written and read again are the same.
#include "plumb/base/config.h"

#include <cstdlib>

#include "plumb/base/error.h"

namespace plumb {
namespace {

struct Inner {
  std::vector<std::string> pattern;
  double factor = 1;
};
void describe(Fields& field, Inner& inner) {
  field("pattern", inner.pattern);
  field("factor", inner.factor);
}

struct Outer {
  int64_t count = 1;
  double rate = 0.5;
  bool flag = true;
  std::string name = "name";
  std::vector<int64_t> counts{1, 2};
  std::vector<double> rates{0.5};
  std::vector<Inner> groups;
  Inner section;
};
void describe(Fields& field, Outer& outer) {
  field("count", outer.count);
  field("rate", outer.rate);
  field("flag", outer.flag);
  field("name", outer.name);
  field("counts", outer.counts);
  field("rates", outer.rates);
  field.sections("groups", outer.groups);
  field.section(
      "section", [&outer](Fields& inner) { describe(inner, outer.section); }, true);
}

std::string written(const Outer& outer) { return ConfigWriter().section("train", outer).text(); }

void fuzz(const std::string& text) {
  const size_t line = text.find('\n');
  try {
    Config config = Config::from_string(line == std::string::npos ? text : text.substr(line + 1), "fuzz");
    if (line != std::string::npos && line > 0) config.set(text.substr(0, line));
    config.allow_only({"train"});
    Outer outer;
    config.read("train", outer);
    const std::string first = written(outer);
    Outer again;
    Config::from_string(first, "again").read("train", again);
    if (written(again) != first) std::abort();
  } catch (const Error&) {
  }
}

}  // namespace
}  // namespace plumb

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  plumb::fuzz({reinterpret_cast<const char*>(data), size});
  return 0;
}
