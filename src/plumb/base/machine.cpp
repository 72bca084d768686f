#include "plumb/base/machine.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>

#include "plumb/base/error.h"

namespace plumb {

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0' ? name.data() : "localhost";
}

std::string random_token() {
  std::array<uint64_t, 2> words{};
  if (::getentropy(words.data(), sizeof words) != 0) throw Error("the system has no random numbers");
  return fmt::format("{:016x}{:016x}", words[0], words[1]);
}

int64_t peak_resident_memory() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

}  // namespace plumb
