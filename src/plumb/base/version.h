// What this build was made from.
#pragma once

#include <string_view>

namespace plumb {

/// The Git commit of the sources, in hexadecimal; empty if they came without one. Changes to them since are not seen.
std::string_view commit();

}  // namespace plumb
