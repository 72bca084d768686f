// Globs: patterns in which * matches any characters, including none, and ? any single one.
#pragma once

#include <cstddef>
#include <string_view>

namespace plumb {

/// The number of characters of `text` that must be added, removed or replaced for all of it to match `pattern`; 0 if it
/// matches.
size_t glob_distance(std::string_view pattern, std::string_view text);

inline bool glob_matches(std::string_view pattern, std::string_view text) { return glob_distance(pattern, text) == 0; }

}  // namespace plumb
