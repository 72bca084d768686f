// Several ranks of one group, each in a thread of this process: the connections are those of processes.
#pragma once

#include <exception>
#include <functional>
#include <future>
#include <mutex>
#include <vector>

#include "plumb/base/error.h"
#include "plumb/parallel/rendezvous.h"

namespace plumb::test {

/// Runs `work` as each rank of a group of `size`. A rank whose work returns or throws leaves the group. What the first
/// rank to fail has thrown is thrown here, also where it failed before the others had joined it.
inline void as_ranks(int64_t size, const std::function<void(Group)>& work,
                     const std::function<Group(const Rendezvous&, const Reception&)>& join = meet) {
  std::promise<int64_t> port;  // broken by an exception if rank 0 fails before it listens
  const std::shared_future<int64_t> known = port.get_future().share();
  std::mutex mutex;
  std::exception_ptr first;
  const auto fail = [&] {
    const std::lock_guard lock(mutex);
    if (!first) first = std::current_exception();
  };
  const auto check = [&] {
    const std::lock_guard lock(mutex);
    if (first) throw Error("another rank has failed");
  };
  const auto run = [&](int64_t rank) {
    bool told = rank != 0;
    try {
      Rendezvous rendezvous{rank, size};
      if (rank > 0) rendezvous.port = known.get();
      const auto tell = [&](int64_t number) {
        told = true;
        port.set_value(number);
      };
      work(join(rendezvous, {tell, check}));
    } catch (...) {
      fail();
      if (!told) port.set_exception(std::current_exception());
    }
  };
  std::vector<std::future<void>> ranks;
  for (int64_t rank = 0; rank < size; ++rank) ranks.push_back(std::async(std::launch::async, run, rank));
  for (auto& rank : ranks) rank.get();
  if (first) std::rethrow_exception(first);
}

}  // namespace plumb::test
