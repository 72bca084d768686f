// Measurements shared by several processes, started here or by a launcher.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>

#include "plumb/parallel/group.h"
#include "subject.h"
#include "verb.h"

namespace plumb::app {

/// Adds --processes.
void add_processes_option(CLI::App& verb, int64_t& processes);

/// Measures a subject (subject.h) in the processes that a launcher started; otherwise in this process and
/// `processes` − 1 workers that it starts with the verb's options. The processes must agree on the options and the
/// subject. Only rank 0 shows progress; it writes the result. If one process throws, the others throw Error with its
/// reason. `require`, if given, throws Error if this number of processes cannot measure the subject.
void measure_in_processes(const CLI::App& verb, const SubjectArguments& arguments, int64_t processes, Globals& globals,
                          const std::function<void(const Subject&, const Group&)>& measure,
                          const std::function<void(const Subject&, int64_t processes)>& require = {});

}  // namespace plumb::app
