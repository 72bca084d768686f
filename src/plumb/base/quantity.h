// Numbers as people write them: "80GiB", "312T", "300B".
#pragma once

#include <string>
#include <string_view>

namespace plumb {

/// A nonnegative number with an optional unit: k, M, G or B (10⁹), T, P (10¹⁵); kB, MB, GB, TB, PB; KiB, MiB, GiB, TiB,
/// PiB. A "K" means "k". Throws Error, naming `what`, on anything else.
double parse_quantity(std::string_view text, const std::string& what);

/// The reverse, for people, with up to three digits: "1.37 B", "312 T".
std::string with_unit(double value);

/// Rounded to `digits` significant digits, with an exponent only for tiny numbers: "0.034", "220", "31,000,000".
std::string rounded(double value, int digits);

/// Bytes: "2.55 TiB", "640 MiB".
std::string with_bytes(double bytes);

}  // namespace plumb
