#include "plumb/base/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "plumb/base/error.h"

namespace plumb {
namespace {

/// The environment with some variables changed, as "NAME=value".
std::vector<std::string> environment_with(std::vector<std::string> changes) {
  const size_t changed = changes.size();
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string variable = *entry;
    const std::string name = variable.substr(0, variable.find('=') + 1);
    const auto end = changes.begin() + static_cast<std::ptrdiff_t>(changed);
    if (std::none_of(changes.begin(), end, [&](const std::string& change) { return change.starts_with(name); }))
      changes.push_back(variable);
  }
  return changes;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

pid_t start_process(std::vector<std::string> command, const ProcessOptions& options) {
  posix_spawn_file_actions_t files{};
  ::posix_spawn_file_actions_init(&files);
  const auto open = [&](int descriptor, const std::string& file, int flags) {
    if (!file.empty()) ::posix_spawn_file_actions_addopen(&files, descriptor, file.c_str(), flags, 0600);
  };
  open(STDIN_FILENO, options.input, O_RDONLY);
  open(STDOUT_FILENO, options.output, O_WRONLY | O_CREAT | O_TRUNC);
  open(STDERR_FILENO, options.errors, O_WRONLY | O_CREAT | O_TRUNC);
  std::vector<std::string> environment = environment_with(options.environment);
  pid_t process = 0;
  const int failure = ::posix_spawnp(&process, command[0].c_str(), &files, nullptr, pointers(command).data(),
                                     pointers(environment).data());
  ::posix_spawn_file_actions_destroy(&files);
  if (failure != 0) throw Error(fmt::format("cannot run the program `{}`: {}", command[0], std::strerror(failure)));
  return process;
}

int run_process(const std::vector<std::string>& command, const ProcessOptions& options) {
  const pid_t process = start_process(command, options);
  int status = 0;
  while (::waitpid(process, &status, 0) < 0) {
    if (errno != EINTR) throw Error(fmt::format("`{}`: {}", command[0], std::strerror(errno)));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace plumb
