// A library that says when it is loaded: it appends a line to the file that PLUMB_PAYLOAD names.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

namespace {

[[gnu::constructor]] void say() {
  const char* path = std::getenv("PLUMB_PAYLOAD");
  const int file = path == nullptr ? -1 : ::open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (file < 0) return;
  (void)!::write(file, "loaded\n", 7);
  ::close(file);
}

}  // namespace
