#include "shortened_file.h"

#include <unistd.h>

#include <csignal>
#include <string_view>

namespace plumb::app {
namespace {

constexpr std::string_view kMessage =
    "plumb: error: a data file was shortened while it was in use\n"
    "hint: prepare the data again with `plumb data`; an interrupted run resumes from its last checkpoint\n";

/// Calls only async-signal-safe functions.
void on_bus_error(int, siginfo_t* info, void*) {
  if (info->si_code == BUS_ADRERR) {  // access beyond the end of a mapped file
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kMessage.data(), kMessage.size());
    ::_exit(1);
  }
  ::signal(SIGBUS, SIG_DFL);  // any other error is raised again on return
}

}  // namespace

void report_shortened_files() {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace plumb::app
