// A temporary directory, in memory if the system supports that, where syncing costs nothing.
#pragma once

#include "support/paths.h"

namespace plumb::test {

class FastDirectory : public TemporaryDirectory {
 public:
  FastDirectory()
      : TemporaryDirectory(std::filesystem::is_directory("/dev/shm") ? "/dev/shm"
                                                                     : std::filesystem::temp_directory_path()) {}
};

}  // namespace plumb::test
