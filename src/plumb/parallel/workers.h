// Worker processes on this machine: further instances of `plumb`, one for each rank of a group except rank 0.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace plumb {

class Workers {
 public:
  Workers() = default;
  /// Gives running workers 2 seconds to end by themselves, then kills them.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Starts `plumb ARGUMENTS` as each of the ranks 1 … size − 1. Their environment specifies the rendezvous with rank
  /// 0, this process, at `port` of this machine, and the run's token (see Rendezvous). Their standard output is
  /// discarded. The program is $PLUMB_PROGRAM, or the running one if it is `plumb`. Throws Error if it cannot be found
  /// or started.
  void start(const std::vector<std::string>& arguments, int64_t size, int64_t port, const std::string& token = {});

  /// Throws Error if one has exited.
  void check();

  /// Waits until all have exited, and reports if one of them failed.
  void wait();

 private:
  /// Reaps the workers that have ended; returns whether all have.
  bool all_ended();

  std::vector<pid_t> running_;
};

}  // namespace plumb
