// Shared libraries of users, whose static objects register variants as Plumb's own files do.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace plumb {

/// Loads a shared library, for as long as the program runs. One that is loaded already is left alone, and so is one
/// that is missing while another of the same name is loaded: it has been moved there. Throws Error if it cannot be
/// loaded, such as one that was built against another Plumb, or if it has a variant whose name is taken by
/// other than a library of the same file name.
void load_plugin(const std::filesystem::path& library);

/// The absolute paths of the libraries, in the order in which they were loaded.
const std::vector<std::string>& loaded_plugins();

}  // namespace plumb
