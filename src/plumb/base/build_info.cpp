#include "plumb/base/build_info.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <thread>

#include "plumb_commit.h"

namespace plumb {
namespace {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (const size_t colon = line.find(": "); line.starts_with("model name") && colon != std::string::npos)
      return line.substr(colon + 2);
  }
  return "";
}

}  // namespace

std::string build_commit() { return PLUMB_COMMIT; }

Json build_info() {
#if defined(__clang__)
  const std::string compiler = "Clang " __clang_version__;
#else
  const std::string compiler = "GCC " __VERSION__;
#endif
  return {{"version", PLUMB_VERSION}, {"commit", build_commit()}, {"compiler", compiler}};
}

Json machine_info() {
  struct utsname system {};
  ::uname(&system);
  const double memory = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  return {{"host", system.nodename},
          {"processor", processor_name()},
          {"cores", std::thread::hardware_concurrency()},
          {"memory_gib", std::round(memory / 1073741824.0 * 10) / 10},
          {"system", fmt::format("{} {} {}", system.sysname, system.release, system.machine)}};
}

}  // namespace plumb
