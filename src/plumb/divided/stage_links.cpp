#include "plumb/divided/stage_links.h"

#include "plumb/divided/exchange_thread.h"

namespace plumb {
namespace {

/// The group of each neighbor: ranks 0 and 1, 2 and 3, …, then 1 and 2, …, then the last and the first.
struct Neighbors {
  Group previous, next;
};

Neighbors neighbors_in(const Group& stages, bool ring) {
  const int64_t rank = stages.rank(), size = stages.size();
  Neighbors neighbors;
  for (const int64_t odd : {0, 1}) {
    const Group pair = stages.split((rank + odd) / 2);
    if (pair.size() == 1) continue;
    (pair.rank() == 0 ? neighbors.next : neighbors.previous) = pair;
  }
  if (ring && size > 1) {
    const bool end = rank == 0 || rank == size - 1;
    const Group pair = stages.split(end ? 0 : rank);
    if (rank == 0) neighbors.previous = pair;
    if (rank == size - 1) neighbors.next = pair;
  }
  return neighbors;
}

}  // namespace

StageLinks::StageLinks(const Group& stages, bool ring) {
  for (const Pass direction : {Pass::forward, Pass::backward}) {
    const Neighbors neighbors = neighbors_in(stages, ring);
    const bool forward = direction == Pass::forward;
    Direction& own = of(direction);
    own.from = forward ? neighbors.previous : neighbors.next;
    own.to = forward ? neighbors.next : neighbors.previous;
    if (own.to.size() > 1) own.line = std::make_unique<JobQueue>(begin_exchange_thread);
  }
}

void StageLinks::send(const Tensor& x, Pass direction) {
  const Direction& own = of(direction);
  own.line->add([x, &to = own.to] { to.send(x, 1 - to.rank()); });
}

void StageLinks::receive(const Tensor& x, Pass direction) {
  const Group& from = of(direction).from;
  from.receive(x, 1 - from.rank());
}

void StageLinks::wait_for_lines(size_t longest) {
  for (const Direction& each : directions_) {
    if (each.line) each.line->wait(longest);
  }
}

ExchangeCost StageLinks::cost() const {
  ExchangeCost all;
  for (const Direction& each : directions_) {
    const ExchangeCost received = each.from.cost(), sent = each.to.cost();
    all += {received.seconds, received.bytes + sent.bytes, received.calls + sent.calls};
  }
  return all;
}

}  // namespace plumb
