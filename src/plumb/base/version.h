// The version of the sources.
#pragma once

#include <string_view>

namespace plumb {

/// The Git commit of the sources, in hexadecimal; empty if unknown. Uncommitted changes are not reflected.
std::string_view commit();

}  // namespace plumb
