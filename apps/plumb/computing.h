// What the whole program does around its commands, and a program of those that only read does not: each of the two
// modules that main.cpp may load has its own definitions (computing.cpp, reading.cpp).
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "declared_manual.h"
#include "plumb/base/json.h"
#include "verb.h"

namespace plumb::app {

/// Settings for the whole process, before anything is computed.
void begin_computing();

/// The manual with the keys of configurations and with the variants.
Manual whole_manual(const CLI::App& program);

/// Calls `run` with the threads and the device of the command line.
void compute(const Globals& globals, const std::function<void()>& run);

/// Called with the reason after this process has printed an error. Tells the processes of a launcher that wait for this
/// one, unless it has already begun to join them.
void tell_others(int argc, const char* const* argv, const Globals& globals, const std::string& reason);

/// The results of a study so far. Throws NotHere where studies are not known.
Json report_unfinished_study(const std::filesystem::path& directory);

/// Thrown where the whole program is needed, before anything is printed or written.
struct NotHere {};

}  // namespace plumb::app
