// What the corpus metrics share: input checks, and the signature that makes a score reproducible.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace plumb {

/// Throws Error unless there are hypotheses and references, with equally many sentences in all of them.
void require_parallel(const std::vector<std::string>& hypotheses,
                      const std::vector<std::vector<std::string>>& references);

/// sacreBLEU's format (Post 2018, arXiv 1804.08771): `nrefs:1|case:mixed|DETAILS|version:plumb.0.1.0`.
std::string metric_signature(size_t reference_count, bool lowercase, std::string_view details);

}  // namespace plumb
