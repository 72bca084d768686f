// Runs a program as a user would, and captures its output.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <system_error>
#include <vector>

#include "plumb/base/input.h"
#include "support/contains.h"
#include "support/loaded_program.h"
#include "support/paths.h"

namespace plumb::test {

/// The result of a finished process.
struct Finished {
  int status = 0;  // exit status; 128 + N if signal N ended it
  std::string output;
  std::string errors;
};

/// Of what waitpid() said, and the files with output and errors.
inline Finished finished_process(int status, const std::filesystem::path& output, const std::filesystem::path& errors) {
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read_file(output), read_file(errors)};
}

/// Expects a process to have succeeded, and returns its result.
inline Finished succeeded(Finished finished) {
  EXPECT_EQ(finished.status, 0) << finished.errors;
  return finished;
}

/// A running child process, with standard output and error going to files. No shell: arguments are passed unchanged.
class Process {
 public:
  /// `before` is called in the child before the program starts, for example to close standard error. It may only make
  /// async-signal-safe calls.
  Process(const std::string& program, const std::vector<std::string>& arguments,
          const std::filesystem::path& directory = ".", const std::function<void()>& before = {}) {
    std::vector<char*> argv = {const_cast<char*>(program.c_str())};
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    const std::string output = (captured_ / "output").string();
    const std::string errors = (captured_ / "errors").string();
#ifdef __SANITIZE_ADDRESS__
    // GCC 12's leak detector can crash at the end of a program whose threads came from a library that it loaded; leaks
    // are detected in the test programs, which run the same code.
    ::setenv("LSAN_OPTIONS", "detect_leaks=0", 1);
#endif
    child_ = ::fork();
    if (child_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (child_ > 0) return;
    // Between fork and exec, only async-signal-safe calls.
    redirect("/dev/null", O_RDONLY, STDIN_FILENO);
    redirect(output.c_str(), O_WRONLY | O_CREAT, STDOUT_FILENO);
    redirect(errors.c_str(), O_WRONLY | O_CREAT, STDERR_FILENO);
    if (before) before();
    if (::chdir(directory.c_str()) == 0) ::execvp(program.c_str(), argv.data());
    ::_exit(127);
  }
  ~Process() {
    if (child_ <= 0) return;
    signal(SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void signal(int number) const { ::kill(child_, number); }
  [[nodiscard]] pid_t id() const { return child_; }

  /// What it has written so far.
  [[nodiscard]] std::string output() const { return read_file(captured_ / "output"); }
  [[nodiscard]] std::string errors() const { return read_file(captured_ / "errors"); }

  /// Waits for the process to end.
  Finished wait() {
    int status = 0;
    while (::waitpid(child_, &status, 0) < 0 && errno == EINTR) {
    }
    child_ = 0;
    return finished_process(status, captured_ / "output", captured_ / "errors");
  }

 private:
  static void redirect(const char* path, int flags, int descriptor) {
    const int file = ::open(path, flags, 0600);
    if (file < 0 || ::dup2(file, descriptor) < 0) ::_exit(126);
  }

  TemporaryDirectory captured_;
  pid_t child_ = 0;
};

struct ProcessStatus {
  bool ended = false;
  int64_t peak = 0;  // most resident memory so far, in bytes
};

/// From the system; a process that it does not know has ended.
inline ProcessStatus status_of(pid_t id) {
  ProcessStatus status{.ended = true};
  std::ifstream file("/proc/" + std::to_string(id) + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("State:")) status.ended = line.find('Z') != std::string::npos;
    if (line.starts_with("VmHWM:")) status.peak = int64_t{1024} * std::stoll(line.substr(6));
  }
  return status;
}

/// The contents of a run's TensorBoard files, concatenated.
inline std::string events_of(const std::filesystem::path& run) {
  std::string events;
  for (const auto& entry : std::filesystem::directory_iterator(run)) {
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) events += read_file(entry.path());
  }
  return events;
}

/// The words of a command line, and `more` of them.
inline std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Runs the `plumb` program of this build to its end, with this file as standard input.
inline Finished run_plumb(const std::vector<std::string>& arguments, const std::filesystem::path& directory = ".",
                          const std::string& input = "/dev/null") {
  const TemporaryDirectory captured;
  const LoadedProgram::Files files = {input, captured / "output", captured / "errors"};
  if (const auto status = LoadedProgram::of_this_process().status_of(arguments, directory, files))
    return finished_process(*status, files.output, files.errors);
  return Process(test::plumb_program(), arguments, directory,
                 [&] { ::dup2(::open(input.c_str(), O_RDONLY), STDIN_FILENO); })
      .wait();
}

}  // namespace plumb::test
