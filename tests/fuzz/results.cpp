// results.json: the page holds the same results, and nothing that would end its script.
#include <cstdlib>
#include <string>
#include <string_view>

#include "memory_file.h"
#include "plumb/base/error.h"
#include "plumb/base/json.h"
#include "plumb/report/html.h"
#include "plumb/report/template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plumb;
  constexpr std::string_view kTitle = "@PLUMB_TITLE@", kResults = "@PLUMB_RESULTS@";
  const fuzz::MemoryFile file(data, size);
  try {
    const Json results = read_json(file.path());
    const std::string page = render_report(results);
    const std::string_view empty = report_template();
    const size_t title = empty.find(kTitle) + kTitle.size(), place = empty.find(kResults);
    const std::string_view between = empty.substr(title, place - title), after = empty.substr(place + kResults.size());
    // Every "<" of the title is escaped, so the text that follows it can be found.
    const size_t begin = page.find(between, title - kTitle.size()) + between.size();
    const std::string script = page.substr(begin, page.size() - after.size() - begin);
    if (!page.ends_with(after) || script.find('<') != std::string::npos || Json::parse(script) != results) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
