// Several ranks of one group, each in a thread of this process, with the same connections as between processes.
#pragma once

#include <exception>
#include <functional>
#include <future>
#include <mutex>
#include <utility>
#include <vector>

#include "plumb/base/error.h"
#include "plumb/parallel/rendezvous.h"

namespace plumb::test {

/// Runs `work` as each rank of a group of `size`. A rank leaves the group when its work returns or throws. Rethrows the
/// exception of the first rank to fail, even if it failed before the others joined.
inline void as_ranks(int64_t size, const std::function<void(Group)>& work,
                     const std::function<Group(const Rendezvous&, const JoinEvents&)>& join = join_group) {
  std::promise<int64_t> port;  // broken by an exception if rank 0 fails before it listens
  const std::shared_future<int64_t> known = port.get_future().share();
  std::mutex mutex;
  std::exception_ptr first;
  int64_t joined = 0;  // ranks that have joined, or failed to
  const auto run = [&](int64_t rank) {
    bool told = rank != 0, joining = true;
    const auto tell = [&](int64_t number) {
      told = true;
      port.set_value(number);
    };
    // Rank 0 leaves last: a rank that cannot connect to it would retry for minutes.
    const auto check = [&] {
      const std::lock_guard lock(mutex);
      if (first && (rank > 0 || joined == size - 1)) throw Error("another rank has failed");
    };
    const auto leave = [&](const std::exception_ptr& error) {
      const std::lock_guard lock(mutex);
      if (error && !first) first = error;
      joined += joining ? 1 : 0;
      joining = false;
    };
    try {
      Rendezvous rendezvous{rank, size};
      if (rank > 0) rendezvous.port = known.get();
      Group group = join(rendezvous, {tell, check});
      leave(nullptr);
      work(std::move(group));
    } catch (...) {
      leave(std::current_exception());
      if (!told) port.set_exception(std::current_exception());
    }
  };
  std::vector<std::future<void>> ranks;
  for (int64_t rank = 0; rank < size; ++rank) ranks.push_back(std::async(std::launch::async, run, rank));
  for (auto& rank : ranks) rank.get();
  if (first) std::rethrow_exception(first);
}

}  // namespace plumb::test
