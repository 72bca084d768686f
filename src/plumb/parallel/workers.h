// Worker processes on this machine: `plumb` started again, once for each further rank of a group.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace plumb {

class Workers {
 public:
  Workers() = default;
  /// Kills those that still run.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Starts `plumb ARGUMENTS` as each of the ranks 1 … size − 1. Their environment names the rendezvous: rank 0, this
  /// process, at `port` of this machine. What they print to standard output is dropped.
  /// The program is $PLUMB_PROGRAM, or the one that runs if it is `plumb`. Throws Error if it cannot be found or
  /// started.
  void start(const std::vector<std::string>& arguments, int64_t size, int64_t port);

  /// Throws Error if one has exited.
  void check();

  /// Waits until all have exited, and reports it if one of them failed.
  void wait();

 private:
  std::vector<pid_t> running_;
};

}  // namespace plumb
