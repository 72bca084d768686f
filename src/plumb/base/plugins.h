// Shared libraries of users, whose static objects register variants as Plumb's own files do.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace plumb {

/// Loads a shared library, for as long as the program runs; one that is loaded already is left alone. Throws Error if
/// it cannot be loaded, such as one that was built against another Plumb.
void load_plugin(const std::filesystem::path& library);

/// The absolute paths of the libraries, in the order in which they were loaded.
const std::vector<std::string>& loaded_plugins();

}  // namespace plumb
