// Globs: patterns in which * stands for any characters, none among them, and ? for any one.
#pragma once

#include <cstddef>
#include <string_view>

namespace plumb {

/// How many characters of `text` must be added, removed or replaced until the whole of it matches `pattern`; 0: it
/// does.
size_t glob_distance(std::string_view pattern, std::string_view text);

inline bool glob_matches(std::string_view pattern, std::string_view text) { return glob_distance(pattern, text) == 0; }

}  // namespace plumb
