// A database of trackio: its runs are read or refused, and it stays as it is.
#include "plumb/judge/trackio.h"

#include <cstdlib>

#include "folder.h"
#include "plumb/base/error.h"
#include "plumb/base/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plumb;
  static const fuzz::Folder folder;
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  folder.write("a.db", content);
  try {
    for (const RunRecord& run : read_trackio(folder.path() / "a.db")) {
      for (const auto& [metric, values] : run.series) {
        if (values.empty()) std::abort();
      }
    }
  } catch (const Error&) {
  }
  if (read_file(folder.path() / "a.db") != content) std::abort();
  return 0;
}
