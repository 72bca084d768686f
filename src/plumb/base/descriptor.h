// A file descriptor with an owner.
#pragma once

#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "plumb/base/error.h"

namespace plumb {

/// Writes all of a text. Returns false if it cannot, with the reason in errno. May be called in a signal handler.
inline bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(descriptor, text.data(), text.size());
    if (count < 0 && errno != EINTR) return false;
    text.remove_prefix(count < 0 ? 0 : static_cast<size_t>(count));
  }
  return true;
}

/// An open file, closed at the end of the scope; a negative one stands for none.
class Descriptor {
 public:
  explicit Descriptor(int descriptor = -1) : descriptor_(descriptor) {}
  ~Descriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Descriptor(Descriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  [[nodiscard]] bool is_open() const { return descriptor_ >= 0; }
  [[nodiscard]] int get() const { return descriptor_; }

  /// Makes the data survive a power failure. Returns true on file systems that do not support this.
  [[nodiscard]] bool sync() const { return ::fsync(descriptor_) == 0 || errno == EINVAL || errno == ENOTSUP; }
  /// Takes the lock of the file, which ends with the descriptor, unless somebody else holds it.
  [[nodiscard]] bool lock() const { return ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0; }
  /// Reads at most `most` bytes. Returns their number, 0 at the end of the file, or −1 with the reason in errno.
  [[nodiscard]] ssize_t read(char* to, size_t most) const {
    ssize_t count = 0;
    do count = ::read(descriptor_, to, most);
    while (count < 0 && errno == EINTR);
    return count;
  }
  [[nodiscard]] bool write(std::string_view text) const { return write_all(descriptor_, text); }
  /// Some file systems report lost data only here.
  [[nodiscard]] bool close() { return ::close(std::exchange(descriptor_, -1)) == 0; }

 private:
  int descriptor_;
};

/// The error of a write to this file that has just failed, with the reason in errno.
inline Error write_failure(const std::string& file) {
  return Error(file + ": writing failed: " + std::strerror(errno),
               errno == EFBIG ? "the limit of a file's size is reached (ulimit -f)" : "is the disk full?");
}

}  // namespace plumb
