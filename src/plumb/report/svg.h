// Figures as SVG for papers.
#pragma once

#include <string>
#include <vector>

#include "plumb/base/json.h"

namespace plumb {

/// A figure of results.json (docs/formats/results.md) as SVG, with axes and legend, in the page's colors on a
/// transparent background. Its title is not drawn, since papers have captions, but is the file's <title>. `groups`: of
/// all figures of the results, which decide the colors.
std::string figure_svg(const Json& figure, const std::vector<std::string>& groups);

}  // namespace plumb
