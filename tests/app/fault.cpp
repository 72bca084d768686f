// Preloaded into a process: the call number FAULT_NUMBER of the system call FAULT_CALL on files of FAULT_FOLDER fails.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

std::string path_of(int descriptor) {
  char path[4096];
  const ssize_t size = ::readlink(("/proc/self/fd/" + std::to_string(descriptor)).c_str(), path, sizeof path);
  return size < 0 ? "" : std::string(path, static_cast<size_t>(size));
}

/// Whether this call fails; errno then says why.
bool fails(const char* call, const std::string& path) {
  static std::atomic<int> calls = 0;
  const char *wanted = std::getenv("FAULT_CALL"), *folder = std::getenv("FAULT_FOLDER");
  if (wanted == nullptr || folder == nullptr || std::strcmp(wanted, call) != 0) return false;
  if (path.find(folder) == std::string::npos || ++calls != std::atoi(std::getenv("FAULT_NUMBER"))) return false;
  const int mark = static_cast<int>(::open(std::getenv("FAULT_MARK"), O_CREAT | O_WRONLY, 0600));
  if (mark >= 0) ::close(mark);
  errno = EIO;
  return true;
}

template <typename Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

ssize_t write(int descriptor, const void* bytes, size_t count) {
  static const auto call = real<decltype(write)>("write");
  return descriptor > STDERR_FILENO && fails("write", path_of(descriptor)) ? -1 : call(descriptor, bytes, count);
}

int fsync(int descriptor) {
  static const auto call = real<decltype(fsync)>("fsync");
  return fails("fsync", path_of(descriptor)) ? -1 : call(descriptor);
}

int rename(const char* from, const char* to) noexcept {
  static const auto call = real<decltype(rename)>("rename");
  return fails("rename", from) ? -1 : call(from, to);
}

int renameat2(int at, const char* from, int other, const char* to, unsigned int flags) noexcept {
  static const auto call = real<decltype(renameat2)>("renameat2");
  return fails("rename", from) ? -1 : call(at, from, other, to, flags);
}

int mkdir(const char* path, mode_t mode) noexcept {
  static const auto call = real<decltype(mkdir)>("mkdir");
  return fails("mkdir", path) ? -1 : call(path, mode);
}

int open(const char* path, int flags, ...) {
  static const auto call = real<decltype(open)>("open");
  std::va_list rest;
  va_start(rest, flags);
  const auto mode = static_cast<mode_t>(va_arg(rest, unsigned int));
  va_end(rest);
  return (flags & (O_WRONLY | O_RDWR)) != 0 && fails("open", path) ? -1 : call(path, flags, mode);
}

}  // extern "C"
