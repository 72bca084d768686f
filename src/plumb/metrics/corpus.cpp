#include "plumb/metrics/corpus.h"

#include <fmt/format.h>

#include "plumb/base/error.h"

namespace plumb {

void require_parallel(const std::vector<std::string>& hypotheses,
                      const std::vector<std::vector<std::string>>& references) {
  if (references.empty()) throw Error("no reference to score against");
  for (size_t i = 0; i < references.size(); ++i) {
    if (references[i].size() == hypotheses.size()) continue;
    throw Error(
        fmt::format("{} hypotheses, but reference {} has {} sentences", hypotheses.size(), i + 1, references[i].size()),
        "sentence i of every reference must correspond to hypothesis i");
  }
  if (hypotheses.empty()) throw Error("no sentences to score");
}

std::string metric_signature(size_t reference_count, bool lowercase, std::string_view details) {
  return fmt::format("nrefs:{}|case:{}|{}|version:plumb.{}", reference_count, lowercase ? "lc" : "mixed", details,
                     PLUMB_VERSION);
}

}  // namespace plumb
