// This machine.
#pragma once

#include <string>

namespace plumb {

/// Its name in the network; "localhost" if it has none.
std::string host_name();

}  // namespace plumb
