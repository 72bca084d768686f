// Measurements shared by several processes, started here or by a launcher.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>

#include "plumb/divided/mesh.h"
#include "subject.h"
#include "verb.h"

namespace plumb::app {

/// How many processes measure, and how many of them compute each layer together.
struct MeasuringProcesses {
  int64_t processes = 0;  // 0: not given
  int64_t tensor_parallel = 1;
};

/// Adds --processes and --tensor-parallel, and returns the latter. `divided`: what each of the processes that compute a
/// layer together has a part of.
CLI::Option* add_processes_options(CLI::App& verb, MeasuringProcesses& processes, const std::string& divided);

/// Measures a subject (subject.h) in the processes that a launcher started; otherwise in this process and workers that
/// it starts with the verb's options. The processes must agree on the options and the subject. Only rank 0 shows
/// progress; it writes the result. If one process throws, the others throw Error with its reason.
void measure_in_processes(const CLI::App& verb, const SubjectArguments& arguments, const MeasuringProcesses& processes,
                          Globals& globals, const std::function<void(const Subject&, const Mesh&)>& measure);

}  // namespace plumb::app
