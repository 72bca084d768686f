// Files that come with Plumb: installed with the program, or in its source tree.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace plumb::app {

/// The places of a file or folder, in the order of preference: `installed` in share/plumb, and `source` in the tree.
std::vector<std::filesystem::path> places_of_shared(const std::string& installed, const std::string& source);

/// The files of the studies that come with Plumb, by name.
std::map<std::string, std::filesystem::path> studies_of_plumb();

}  // namespace plumb::app
