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
  std::string host = "127.0.0.1";  // of rank 0, or of torchrun's store
  int64_t port = 0;                // port at which rank 0 listens; 0 (only on rank 0): any free port
  int64_t local_size = 0;          // number of processes on this machine; 0: unknown
  std::string token;               // the same in all processes of a run
  bool agent_store = false;        // whether host and port are those of a store that torchrun serves
  std::string agent_key = {};      // the key in it under which rank 0 stores its address
  double timeout = 60;             // seconds without a heartbeat after which a process counts as lost
  double join_limit = 300;         // seconds within which all must have joined
  /// Seconds after which an idle process, or an exchange that does not end, is an error: by default ten times the
  /// time-out, since an exchange or a file may be large.
  std::optional<double> standstill{};
};

/// From the variables that launchers set; nullopt without a launcher. In this order:
/// torchrun and similar ones: RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, and torchrun's own store, if it serves one
/// to the processes (TORCHELASTIC_USE_AGENT_STORE);
/// Open MPI's mpirun: OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE, and on more than one machine MASTER_ADDR;
/// Slurm's srun: SLURM_PROCID, SLURM_STEP_NUM_TASKS or SLURM_NTASKS, and the first node of SLURM_STEP_NODELIST or
/// SLURM_JOB_NODELIST. MASTER_ADDR and MASTER_PORT take precedence over what is derived from other variables.
/// Throws Error if they are incomplete or invalid.
std::optional<Rendezvous> rendezvous_of_environment();

/// The first node of a list in Slurm's notation, such as "node[08-11,15],login2". Throws Error if it is malformed.
std::string first_node(const std::string& list);

/// Callbacks while processes join.
struct Reception {
  /// Called on rank 0 with the port once it listens.
  std::function<void(int64_t port)> listening;
  /// Called repeatedly until all have joined; may throw.
  std::function<void()> waiting;
};

/// The group of all ranks. Returns when all have joined; for a single rank, immediately and without a connection.
///
/// Gloo's connections use the interfaces in GLOO_SOCKET_IFNAME (separated by commas) or, without it, this process's
/// address on its connection to rank 0. Rank 0 listens only at the address of `host`, which may be a loopback address;
/// at all addresses, if that is not one of its own, or if it is a loopback address but other machines must reach it.
///
/// Throws Error, in all processes, if not all have joined within the limit, or if one of them ends or runs another
/// version of Plumb.
Group meet(const Rendezvous& rendezvous, const Reception& reception = {});

/// Tells the other ranks, which call `meet`, that this one will not join them, and why: they end with an error that
/// names it. Waits up to `limit` seconds for ranks that are still starting. For a single rank, does nothing. Never
/// throws: if the others cannot be told, they run into their own limit.
void decline(const Rendezvous& rendezvous, const std::string& reason, double limit = 60);

}  // namespace plumb
