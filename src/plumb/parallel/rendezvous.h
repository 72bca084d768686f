// How the processes of a run find each other.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "plumb/parallel/group.h"

namespace plumb {

/// Where the ranks of a group meet, and which of them this process is.
struct Rendezvous {
  int64_t rank = 0;
  int64_t size = 1;
  std::string host = "127.0.0.1";  // of rank 0
  int64_t port = 0;                // on which rank 0 listens; 0, in rank 0 alone: one that is free
};

/// From RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as torchrun and similar launchers set them; none if WORLD_SIZE
/// is not set. Throws Error if they are incomplete or invalid.
std::optional<Rendezvous> rendezvous_of_environment();

/// What rank 0 does while the other ranks join.
struct Reception {
  /// Told the port once rank 0 listens.
  std::function<void(int64_t port)> listening;
  /// Called again and again until all have joined; may throw.
  std::function<void()> waiting;
};

/// The group of all ranks. Returns when all have joined; where there is only one, at once and without a connection.
/// Throws Error if they have not within five minutes.
Group meet(const Rendezvous& rendezvous, const Reception& reception = {});

}  // namespace plumb
