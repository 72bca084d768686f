// A pipe that nobody reads.
#pragma once

#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace plumb::test {

class DeadPipe {
 public:
  DeadPipe() {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
    ::close(ends[0]);
    writing_ = ends[1];
  }
  ~DeadPipe() { ::close(writing_); }
  DeadPipe(const DeadPipe&) = delete;
  DeadPipe& operator=(const DeadPipe&) = delete;

  /// The descriptor to write to.
  [[nodiscard]] int writing() const { return writing_; }

 private:
  int writing_;
};

}  // namespace plumb::test
