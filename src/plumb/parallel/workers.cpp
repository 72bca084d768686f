#include "plumb/parallel/workers.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <utility>

#include "plumb/base/error.h"
#include "plumb/base/process.h"
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

}  // namespace

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
  for (int64_t rank = 1; rank < size; ++rank) {
    std::vector<std::string> command = {program};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const std::vector<std::string> environment = {fmt::format("RANK={}", rank),
                                                  fmt::format("LOCAL_RANK={}", rank),
                                                  fmt::format("WORLD_SIZE={}", size),
                                                  "MASTER_ADDR=127.0.0.1",
                                                  fmt::format("MASTER_PORT={}", port),
                                                  "PLUMB_RUN_TOKEN=" + token,
                                                  fmt::format("LOCAL_WORLD_SIZE={}", size),
                                                  "TORCHELASTIC_USE_AGENT_STORE=False"};
    running_.push_back(
        start_process(std::move(command), {.environment = environment, .input = "/dev/null", .output = "/dev/null"}));
  }
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
