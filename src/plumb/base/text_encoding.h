// Text that is not UTF-8: what to tell the user.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace plumb {

/// Throws Error if a file begins as those of another format do: one compressed by gzip, bzip2, xz, Zstandard or zip, or
/// text in UTF-16. `name`: of the file.
void require_no_other_format(const std::string& name, std::string_view beginning);

/// Throws Error, with this hint, unless line `number` of a file, counted from 1, is UTF-8; for a first line, also as
/// above.
void require_utf8_line(const std::string& name, size_t number, std::string_view line,
                       const std::string& hint = "convert it, for example with `iconv -f latin1 -t utf8`");

}  // namespace plumb
