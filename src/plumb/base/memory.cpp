#include "plumb/base/memory.h"

#include <malloc.h>
#include <unistd.h>

#include <fstream>

namespace plumb {

int64_t bytes_in_use() {
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
  // Not the resident memory, which does not grow where freed memory is used again.
  const struct mallinfo2 heap = ::mallinfo2();
  return static_cast<int64_t>(heap.uordblks + heap.hblkhd);
#else
  std::ifstream statm("/proc/self/statm");
  int64_t total = 0;
  int64_t resident = 0;
  return statm >> total >> resident ? resident * ::sysconf(_SC_PAGESIZE) : 0;
#endif
}

}  // namespace plumb
