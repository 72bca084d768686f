// The page built from web/report/, compiled into the library.
#pragma once

#include <string_view>

namespace plumb {

/// HTML with placeholders: @PLUMB_TITLE@ for the title and @PLUMB_RESULTS@ for the results as JSON.
std::string_view report_template();

}  // namespace plumb
