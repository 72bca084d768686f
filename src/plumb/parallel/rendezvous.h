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
  int64_t port = 0;                // port on which rank 0 listens; 0 (only on rank 0): any free port
};

/// From RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as set by torchrun and similar launchers; empty if WORLD_SIZE is
/// not set. Throws Error if they are incomplete or invalid.
std::optional<Rendezvous> rendezvous_of_environment();

/// Callbacks of rank 0 while the other ranks join.
struct Reception {
  /// Called with the port once rank 0 listens.
  std::function<void(int64_t port)> listening;
  /// Called repeatedly until all have joined; may throw.
  std::function<void()> waiting;
};

/// The group of all ranks. Returns when all have joined; for a single rank, immediately and without a connection.
/// Throws Error if they have not joined within five minutes.
Group meet(const Rendezvous& rendezvous, const Reception& reception = {});

}  // namespace plumb
