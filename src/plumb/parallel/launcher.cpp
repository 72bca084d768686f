// The rendezvous from the environment variables that launchers set.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "plumb/base/error.h"
#include "plumb/base/parse_number.h"
#include "plumb/base/random.h"
#include "plumb/parallel/rendezvous.h"

namespace plumb {
namespace {

constexpr int64_t kMostRanks = 1 << 16;

/// The value of a variable; empty if it is not set.
std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// The value of a variable that must be set because another one is.
std::string required(const char* name, const char* other, const char* hint) {
  std::string value = variable(name);
  if (value.empty()) throw Error(fmt::format("{} is set, but {} is not", other, name), hint);
  return value;
}

int64_t integer(const char* name, const std::string& text, int64_t smallest, int64_t largest) {
  const auto value = parse_number<int64_t>(text);
  if (!value || *value < smallest || *value > largest)
    throw Error(fmt::format("{}={} must be an integer from {} to {}", name, text, smallest, largest));
  return *value;
}

int64_t port_in(const std::string& text, int64_t largest = 65535) { return integer("MASTER_PORT", text, 1, largest); }

/// A port derived from a job's name, the same in all its processes, below the range of ephemeral ports.
int64_t port_for(const std::string& job) {
  constexpr uint64_t kFirst = 20000, kCount = 12000;
  return static_cast<int64_t>(kFirst + stream_of(job) % kCount);
}

/// The run's token: PLUMB_RUN_TOKEN, or else what the launcher calls the job, which others can guess.
void identify(Rendezvous& rendezvous, const std::string& job) {
  rendezvous.token = variable("PLUMB_RUN_TOKEN");
  rendezvous.guessable = rendezvous.token.empty();
  if (rendezvous.guessable) rendezvous.token = job;
}

int64_t optional_count(const char* name) {
  const std::string text = variable(name);
  return text.empty() ? 0 : integer(name, text, 1, kMostRanks);
}

Rendezvous of_torchrun() {
  const char* hint = "a rendezvous through the environment needs RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT";
  Rendezvous rendezvous;
  rendezvous.size = integer("WORLD_SIZE", variable("WORLD_SIZE"), 1, kMostRanks);
  rendezvous.rank = integer("RANK", required("RANK", "WORLD_SIZE", hint), 0, rendezvous.size - 1);
  rendezvous.host = required("MASTER_ADDR", "WORLD_SIZE", hint);
  // torchrun may serve a store of its own at MASTER_PORT.
  const int64_t after = variable("TORCHELASTIC_USE_AGENT_STORE") == "True" ? 1 : 0;
  rendezvous.port = port_in(required("MASTER_PORT", "WORLD_SIZE", hint), 65535 - after) + after;
  rendezvous.local_size = optional_count("LOCAL_WORLD_SIZE");
  const std::string run = variable("TORCHELASTIC_RUN_ID"), attempt = variable("TORCHELASTIC_RESTART_COUNT");
  identify(rendezvous, run + " " + attempt);
  rendezvous.restarts = !attempt.empty() && attempt != "0";
  return rendezvous;
}

Rendezvous of_open_mpi() {
  Rendezvous rendezvous;
  rendezvous.size = integer("OMPI_COMM_WORLD_SIZE", variable("OMPI_COMM_WORLD_SIZE"), 1, kMostRanks);
  rendezvous.rank = integer("OMPI_COMM_WORLD_RANK",
                            required("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "start all processes with mpirun"),
                            0, rendezvous.size - 1);
  rendezvous.local_size = optional_count("OMPI_COMM_WORLD_LOCAL_SIZE");
  const std::string host = variable("MASTER_ADDR"), port = variable("MASTER_PORT");
  if (!host.empty()) {
    rendezvous.host = host;
  } else if (rendezvous.local_size != rendezvous.size) {
    throw Error("mpirun has started processes on several machines, but MASTER_ADDR is not set",
                "give the machine of rank 0: mpirun -x MASTER_ADDR=HOST …");
  }
  const std::string job = variable("PMIX_NAMESPACE");
  identify(rendezvous, job);
  rendezvous.port = port.empty() ? port_for(job) : port_in(port);
  return rendezvous;
}

Rendezvous of_slurm() {
  Rendezvous rendezvous;
  const char* count = variable("SLURM_STEP_NUM_TASKS").empty() ? "SLURM_NTASKS" : "SLURM_STEP_NUM_TASKS";
  const char* hint = "start all processes with srun";
  rendezvous.size = integer(count, required(count, "SLURM_STEP_ID", hint), 1, kMostRanks);
  rendezvous.rank = integer("SLURM_PROCID", required("SLURM_PROCID", "SLURM_STEP_ID", hint), 0, rendezvous.size - 1);
  const std::string host = variable("MASTER_ADDR"), port = variable("MASTER_PORT");
  const std::string nodes =
      variable("SLURM_STEP_NODELIST").empty() ? variable("SLURM_JOB_NODELIST") : variable("SLURM_STEP_NODELIST");
  if (host.empty() && nodes.empty() && rendezvous.size > 1)
    throw Error("SLURM_STEP_ID is set, but neither SLURM_STEP_NODELIST nor SLURM_JOB_NODELIST is", hint);
  rendezvous.host = host.empty() && !nodes.empty() ? first_node(nodes) : host;
  if (variable("SLURM_STEP_NUM_NODES") == "1") rendezvous.local_size = rendezvous.size;
  const std::string job = fmt::format("{}.{}", variable("SLURM_JOB_ID"), variable("SLURM_STEP_ID"));
  identify(rendezvous, job);
  rendezvous.port = port.empty() ? port_for(job) : port_in(port);
  return rendezvous;
}

}  // namespace

std::string first_node(const std::string& list) {
  std::string one = list.substr(0, list.find_first_of(",["));
  const auto malformed = [&] { return Error(fmt::format("'{}' is not a list of nodes in Slurm's notation", list)); };
  if (one.size() == list.size() || list[one.size()] == ',') {
    if (one.empty()) throw malformed();
    return one;
  }
  // The first number of the first range, as written: "node[08-11]" begins with node08. A suffix may follow.
  const size_t close = list.find(']', one.size());
  if (close == std::string::npos) throw malformed();
  const std::string ranges = list.substr(one.size() + 1, close - one.size() - 1);
  const std::string number = ranges.substr(0, ranges.find_first_of("-,"));
  if (number.empty() || number.find_first_not_of("0123456789") != std::string::npos) throw malformed();
  const std::string rest = list.substr(
      close + 1, list.find(',', close) == std::string::npos ? std::string::npos : list.find(',', close) - close - 1);
  return rest.empty() ? one + number : first_node(one + number + rest);
}

std::optional<Rendezvous> rendezvous_of_environment() {
  if (!variable("WORLD_SIZE").empty()) return of_torchrun();
  if (!variable("OMPI_COMM_WORLD_SIZE").empty()) return of_open_mpi();
  // A batch script also has a task's variables, but no step: it runs once, regardless of the number of tasks.
  if (!variable("SLURM_STEP_ID").empty() && !variable("SLURM_PROCID").empty()) return of_slurm();
  return std::nullopt;
}

}  // namespace plumb
