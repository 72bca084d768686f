// How TER splits a sentence into words: tercom's normalizations, as implemented in sacreBLEU.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plumb/metrics/ter.h"

namespace plumb {

/// UTF-8 line → its words.
std::vector<std::string> tokenize_for_ter(std::string_view line, const TerOptions& options);

}  // namespace plumb
