#include "plumb/base/process_memory.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
/// Declared here because Debian's GCC lacks the sanitizer's header.
extern "C" size_t __sanitizer_get_current_allocated_bytes();
#endif

namespace plumb {
namespace {

/// Bytes of physical memory that only this process uses: without those of mapped files. 0 if unknown.
int64_t private_resident() {
  std::ifstream statm("/proc/self/statm");
  int64_t total = 0, resident = 0, shared = 0;
  return statm >> total >> resident >> shared ? (resident - shared) * ::sysconf(_SC_PAGESIZE) : 0;
}

}  // namespace

int64_t allocated_memory(int64_t elsewhere) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  // The sanitizer's heap, not the C library's.
  return static_cast<int64_t>(__sanitizer_get_current_allocated_bytes()) + elsewhere;
#elif defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
  // Not the resident memory, which does not grow when freed memory is reused.
  const struct mallinfo2 heap = ::mallinfo2();
  return static_cast<int64_t>(heap.uordblks + heap.hblkhd) + elsewhere;
#else
  return private_resident();
#endif
}

int64_t available_memory(int64_t allocated) {
  std::optional<int64_t> available;
  std::ifstream lines("/proc/meminfo");
  for (std::string name; !available && lines >> name;) {
    if (int64_t kibibytes = 0; name == "MemAvailable:" && lines >> kibibytes) available = kibibytes * 1024;
  }
  if (!available) return std::numeric_limits<int64_t>::max();
  const int64_t resident = private_resident();
  for (const char* file : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    int64_t limit = 0;  // the file has no number if memory is unlimited
    if (std::ifstream(file) >> limit) available = std::min(*available, limit - resident);
  }
  // Freed memory is still resident, and is reused.
  return std::max<int64_t>(0, *available + std::max<int64_t>(0, resident - allocated));
}

}  // namespace plumb
