// How the processes of a run connect to each other.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "plumb/parallel/group.h"

namespace plumb {

/// The rendezvous of a group, and this process's rank.
struct Rendezvous {
  int64_t rank = 0;
  int64_t size = 1;
  std::string host = "127.0.0.1";  // of rank 0
  int64_t port = 0;                // port at which rank 0 listens; 0 (only on rank 0): any free port
  int64_t local_size = 0;          // number of processes on this machine; 0: unknown
  std::string token;               // the same in all processes of a run
  bool guessable = false;          // whether others can guess the token: on one machine, a secret is added to it
  bool restarts = false;           // whether an earlier attempt of the run may still be ending
  double timeout = 60;             // seconds without a heartbeat after which a process counts as lost
  double join_limit = 300;         // seconds within which all must have joined
};

/// From the variables that launchers set; nullopt without a launcher. In this order:
/// torchrun and similar ones: RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, where torchrun may serve a store of its
/// own (TORCHELASTIC_USE_AGENT_STORE): rank 0 then listens at the port after it; Open MPI's mpirun:
/// OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE, and on more than one machine MASTER_ADDR; Slurm's srun: SLURM_PROCID,
/// SLURM_STEP_NUM_TASKS or SLURM_NTASKS, and the first node of SLURM_STEP_NODELIST or SLURM_JOB_NODELIST. MASTER_ADDR
/// and MASTER_PORT take precedence over what is derived from other variables, and PLUMB_RUN_TOKEN over a token that is.
/// Throws Error if they are incomplete or invalid.
std::optional<Rendezvous> rendezvous_of_environment();

/// The first node of a list in Slurm's notation, such as "node[08-11,15],login2". Throws Error if it is malformed.
std::string first_node(const std::string& list);

/// Callbacks while processes join.
struct JoinEvents {
  /// Called on rank 0 with the port once it listens.
  std::function<void(int64_t port)> listening;
  /// Called repeatedly until all have joined; may throw.
  std::function<void()> waiting;
};

/// The group of all ranks. Returns when all have joined; for a single rank, immediately and without a connection.
///
/// Gloo's connections use the interfaces in GLOO_SOCKET_IFNAME (separated by commas) or, without it, this process's
/// address on the way to rank 0. Rank 0 listens until all have joined, on all interfaces; only on the loopback
/// interface, if all ranks are on its machine or `host` is a loopback address.
///
/// Throws Error, in all processes, if not all have joined within the limit, or if one of them ends or runs another
/// version of Plumb.
Group join_group(const Rendezvous& rendezvous, const JoinEvents& events = {});

/// Tells the other ranks, which call `join_group`, that this one will not join them, and why: they end with an error
/// that names it. Waits up to `limit` seconds for ranks that are still starting. For a single rank, does nothing. Never
/// throws: if the others cannot be told, they run into their own limit.
void refuse_to_join(const Rendezvous& rendezvous, const std::string& reason, double limit = 60);

}  // namespace plumb
