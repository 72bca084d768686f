// Runs command lines of `plumb` in forks of a process that has loaded the program once (loaded_program.cpp). Each has a
// process, an environment and a folder of its own, as if it were started anew.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/paths.h"

namespace plumb::test {

/// Variables that libraries read while they are loaded, of this process.
inline std::vector<std::string> variables_of_libraries() {
  std::vector<std::string> found;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    for (const std::string_view prefix : {"LD_", "OMP_", "GOMP_", "OPENBLAS_", "MKL_", "ONEDNN_"}) {
      if (std::string_view(*entry).starts_with(prefix)) found.emplace_back(*entry);
    }
  }
  return found;
}

class LoadedProgram {
 public:
  static LoadedProgram& of_this_process() {
    static LoadedProgram program;
    return program;
  }

  /// The standard files of a command line.
  struct Files {
    std::filesystem::path input, output, errors;
  };

  /// What waitpid() says of the process of a command line. Empty if nothing was started: the command line needs a
  /// process that loads the program itself, or another one is running.
  std::optional<int> status_of(const std::vector<std::string>& arguments, const std::filesystem::path& directory,
                               const Files& files) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || connection_ < 0 || variables_of_libraries() != variables_) return std::nullopt;
    const std::string request = request_for(arguments, directory, files);
    int status = 0;
    if (::send(connection_, request.data(), request.size(), MSG_NOSIGNAL) < 0) return std::nullopt;
    if (::recv(connection_, &status, sizeof status, 0) == sizeof status) return status;
    ADD_FAILURE() << loaded_program() << " has ended";
    return std::nullopt;
  }

  LoadedProgram(const LoadedProgram&) = delete;
  LoadedProgram& operator=(const LoadedProgram&) = delete;

 private:
  LoadedProgram() : variables_(variables_of_libraries()) {
    std::array<int, 2> ends{};
    if (loaded_program().empty() || ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) return;
    const std::string name = loaded_program();
    child_ = ::fork();
    if (child_ == 0) {
      if (::dup2(ends[1], STDIN_FILENO) >= 0) ::execl(name.c_str(), name.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(ends[1]);
    connection_ = ends[0];
  }
  ~LoadedProgram() {
    if (connection_ < 0) return;
    ::close(connection_);  // whereupon it ends
    ::waitpid(child_, nullptr, 0);
  }

  /// Strings with a zero at the end of each: folder, input, output, errors, number of words, words, environment.
  static std::string request_for(const std::vector<std::string>& arguments, const std::filesystem::path& directory,
                                 const Files& files) {
    std::vector<std::string> strings = {std::filesystem::absolute(directory).string(),
                                        std::filesystem::absolute(files.input).string(),
                                        files.output.string(),
                                        files.errors.string(),
                                        std::to_string(arguments.size() + 1),
                                        plumb_program()};
    strings.insert(strings.end(), arguments.begin(), arguments.end());
    for (char** entry = environ; *entry != nullptr; ++entry) strings.emplace_back(*entry);
    // Its worker processes are those of the program.
    if (std::getenv("PLUMB_PROGRAM") == nullptr) strings.push_back("PLUMB_PROGRAM=" + plumb_program());
    std::string request;
    for (const std::string& string : strings) request += string + '\0';
    return request;
  }

  std::mutex mutex_;
  std::vector<std::string> variables_;
  int connection_ = -1;
  pid_t child_ = 0;
};

}  // namespace plumb::test
