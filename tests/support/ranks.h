// Several ranks of one group, each in a thread of this process, with the same connections as between processes.
#pragma once

#include <functional>
#include <future>
#include <vector>

#include "plumb/parallel/rendezvous.h"

namespace plumb::test {

/// Runs `work` as each rank of a group of `size`. A rank whose work returns or throws leaves the group.
inline void as_ranks(int64_t size, const std::function<void(Group)>& work) {
  std::promise<int64_t> port;
  const std::shared_future<int64_t> known = port.get_future().share();
  std::vector<std::future<void>> ranks;
  for (int64_t rank = 0; rank < size; ++rank) {
    ranks.push_back(std::async(std::launch::async, [&, rank] {
      Rendezvous rendezvous{rank, size};
      if (rank > 0) rendezvous.port = known.get();
      work(meet(rendezvous, {[&](int64_t number) { port.set_value(number); }, {}}));
    }));
  }
  for (auto& rank : ranks) rank.get();
}

}  // namespace plumb::test
