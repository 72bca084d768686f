#include "shortened_file.h"

#include <unistd.h>

#include <csignal>
#include <string_view>

namespace plumb::app {
namespace {

constexpr std::string_view kMessage =
    "plumb: error: a file in use can no longer be read: it was shortened, or its disk has a read error\n"
    "hint: see the system's log (dmesg); if the data were shortened, prepare them again with `plumb data`; an "
    "interrupted run resumes from its last checkpoint\n";

/// Calls only async-signal-safe functions.
void on_bus_error(int, siginfo_t* info, void*) {
  if (info->si_code == BUS_ADRERR) {  // a page of a mapped file is beyond its end, or cannot be read
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
