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

/// Sees to a library that a document needs. It is left alone if it, or one of the same file name, is loaded already;
/// otherwise it is loaded only if the user trusts it: if `plumb/trusted-libraries` in $XDG_CONFIG_HOME, or else in
/// ~/.config, has its SHA-256, in a line such as `sha256sum` prints. Throws Error, which says how to allow it, if not.
void require_plugin(const std::filesystem::path& library);

/// The absolute paths of the libraries, in the order in which they were loaded.
const std::vector<std::string>& loaded_plugins();

}  // namespace plumb
