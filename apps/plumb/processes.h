// Measurements that several processes share: started here, or by a launcher.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>

#include "plumb/parallel/group.h"
#include "verb.h"

namespace plumb::app {

/// Adds --processes.
void add_processes_option(CLI::App& verb, int64_t& processes);

/// What each process does.
struct SharedMeasurement {
  std::function<void()> prepare;              // finds out what is to be measured
  std::function<Facts()> facts;               // what has to be the same in all processes besides the verb's options
  std::function<void(const Group&)> measure;  // measures and, in rank 0, writes the result
};

/// Makes a measurement in the processes that a launcher has started, or in this one and `processes` − 1 others that it
/// starts with the verb's options, or in this one alone. Only rank 0 shows progress. If a process throws, the others
/// throw Error with its reason.
void measure_in_processes(const CLI::App& verb, int64_t processes, Globals& globals, const SharedMeasurement& work);

}  // namespace plumb::app
