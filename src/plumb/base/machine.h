// This machine.
#pragma once

#include <cstdint>
#include <string>

namespace plumb {

/// Its name in the network; "localhost" if it has none.
std::string host_name();

/// 128 random bits that nobody can guess, as 32 hexadecimal digits. Throws Error if the system has none.
std::string random_token();

/// The most memory, in bytes, that this process has held so far.
int64_t peak_resident_memory();

}  // namespace plumb
