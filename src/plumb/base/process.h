// Other programs, run without a shell.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace plumb {

struct ProcessOptions {
  std::vector<std::string> environment{};   // variables that differ from this process's, as "NAME=value"
  std::string input{}, output{}, errors{};  // files for the standard streams; empty: those of this process
};

/// Starts a program with its arguments; one without a slash is looked for in PATH. Throws Error if it cannot be
/// started.
pid_t start_process(std::vector<std::string> command, const ProcessOptions& options);

/// Starts a program and waits for its end. Returns its exit status, or −1 if a signal ended it. Throws Error if it
/// cannot be run.
int run_process(const std::vector<std::string>& command, const ProcessOptions& options);

}  // namespace plumb
