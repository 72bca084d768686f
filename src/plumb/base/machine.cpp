#include "plumb/base/machine.h"

#include <sys/resource.h>
#include <unistd.h>

#include <array>

namespace plumb {

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0' ? name.data() : "localhost";
}

int64_t peak_resident_memory() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

}  // namespace plumb
