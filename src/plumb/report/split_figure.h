// Figures of many schemes, divided so that each stays readable.
#pragma once

#include <string>
#include <vector>

#include "plumb/report/report_parts.h"

namespace plumb {

/// The figure itself if its series belong to at most eight schemes. Otherwise its parts, each with Post-LN and Pre-LN
/// for comparison and at most five others, in the order of `schemes`; series and notes of no scheme are in all of them.
/// Their ids are ID, ID_part2, ID_part3 and so on.
std::vector<Figure> split_by_scheme(const Figure& figure, const std::vector<std::string>& schemes);

/// The id of the first part with series of this scheme; the id of parts[0] if there is none.
std::string part_with_scheme(const std::vector<Figure>& parts, const std::string& scheme);

}  // namespace plumb
