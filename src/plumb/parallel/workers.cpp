#include "plumb/parallel/workers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "plumb/base/error.h"
#include "plumb/base/progress.h"

namespace plumb {
namespace fs = std::filesystem;
namespace {

fs::path own_program() {
  if (const char* named = std::getenv("PLUMB_PROGRAM"); named != nullptr) return named;
  std::error_code error;
  fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (program.filename() == "plumb") return program;
  throw Error("cannot find the plumb executable for worker processes", "set PLUMB_PROGRAM to its path");
}

/// The environment with some variables changed, as "NAME=value".
std::vector<std::string> environment_with(const std::vector<std::string>& changes) {
  std::vector<std::string> all = changes;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('=') + 1);
    bool changed = false;
    for (const std::string& change : changes) changed = changed || change.starts_with(name);
    if (!changed) all.push_back(text);
  }
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

std::string random_token() {
  std::array<uint64_t, 2> words{};
  if (::getentropy(words.data(), sizeof words) != 0)
    throw Error(fmt::format("the system has no random numbers: {}", std::strerror(errno)));
  return fmt::format("{:016x}{:016x}", words[0], words[1]);
}

bool Workers::all_ended() {
  std::erase_if(running_, [](pid_t process) { return ::waitpid(process, nullptr, WNOHANG) == process; });
  return running_.empty();
}

Workers::~Workers() {
  constexpr auto kGrace = std::chrono::seconds(2);
  const auto end = std::chrono::steady_clock::now() + kGrace;
  while (!all_ended() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  for (const pid_t process : running_) ::kill(process, SIGKILL);
  for (const pid_t process : running_) ::waitpid(process, nullptr, 0);
}

void Workers::start(const std::vector<std::string>& arguments, int64_t size, int64_t port, const std::string& token) {
  const std::string program = own_program().string();
  posix_spawn_file_actions_t files{};
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  int failed = 0;
  for (int64_t rank = 1; rank < size && failed == 0; ++rank) {
    std::vector<std::string> command = {program};
    command.insert(command.end(), arguments.begin(), arguments.end());
    std::vector<std::string> environment = environment_with(
        {fmt::format("RANK={}", rank), fmt::format("LOCAL_RANK={}", rank), fmt::format("WORLD_SIZE={}", size),
         "MASTER_ADDR=127.0.0.1", fmt::format("MASTER_PORT={}", port), "PLUMB_RUN_TOKEN=" + token,
         fmt::format("LOCAL_WORLD_SIZE={}", size), "TORCHELASTIC_USE_AGENT_STORE=False"});
    pid_t process = 0;
    failed = ::posix_spawn(&process, program.c_str(), &files, nullptr, pointers(command).data(),
                           pointers(environment).data());
    if (failed == 0) running_.push_back(process);
  }
  ::posix_spawn_file_actions_destroy(&files);
  if (failed != 0) throw Error(fmt::format("cannot start {}: {}", program, std::strerror(failed)));
}

void Workers::check() {
  for (auto process = running_.begin(); process != running_.end(); ++process) {
    int status = 0;
    if (::waitpid(*process, &status, WNOHANG) != *process) continue;
    running_.erase(process);
    throw Error("a worker process has exited", "see its messages above");
  }
}

void Workers::wait() {
  for (const pid_t process : running_) {
    int status = 0;
    while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
    }
    // An interrupted or diverged run has its own exit status, in every process.
    const bool failed = WIFSIGNALED(status) || WEXITSTATUS(status) == 1;
    if (failed) say("a worker process failed during shutdown; the run itself is complete");
  }
  running_.clear();
}

}  // namespace plumb
