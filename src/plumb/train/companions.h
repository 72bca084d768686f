// The further processes of a run on this machine: `plumb train` started again, to train along.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <vector>

namespace plumb {

class Companions {
 public:
  Companions() = default;
  /// Ends those that still run.
  ~Companions();
  Companions(const Companions&) = delete;
  Companions& operator=(const Companions&) = delete;

  /// Starts processes 1 … size − 1 of so many threads each for the run in `out`; they have their configuration from
  /// there and meet on `port`.
  /// The program is $PLUMB_PROGRAM, or the one that runs if it is `plumb`. Throws Error if it is not to be found.
  void start(const std::filesystem::path& out, int64_t size, int64_t port, int64_t threads);

  /// Throws Error if one has ended.
  void check();

  /// Waits for their ends, and says so if one of them failed.
  void wait();

 private:
  std::vector<pid_t> running_;
};

}  // namespace plumb
