// Measurements shared by several processes, started here or by a launcher.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>

#include "plumb/parallel/group.h"
#include "verb.h"

namespace plumb::app {

/// Adds --processes.
void add_processes_option(CLI::App& verb, int64_t& processes);

/// The steps that each process performs.
struct SharedMeasurement {
  std::function<void()> prepare;              // determines what to measure
  std::function<Facts()> facts;               // what must agree in all processes besides the verb's options
  std::function<void(const Group&)> measure;  // measures; rank 0 writes the result
};

/// Runs a measurement in the processes that a launcher started; otherwise in this process and `processes` − 1 workers
/// that it starts with the verb's options. Only rank 0 shows progress. If one process throws, the others throw Error
/// with its reason.
void measure_in_processes(const CLI::App& verb, int64_t processes, Globals& globals, const SharedMeasurement& work);

}  // namespace plumb::app
