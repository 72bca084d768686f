// The page that web/report/ builds, compiled into the library.
#pragma once

#include <string_view>

namespace plumb {

/// HTML in which @PLUMB_TITLE@ stands for the title and @PLUMB_RESULTS@ for the results as JSON.
std::string_view report_template();

}  // namespace plumb
