// Graphs that are kept between products with a curvature matrix, as many as fit into memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "plumb/ops/memory.h"

namespace plumb {

/// Fills `kept` with make(0), make(1), … up to make(count - 1), while they hold at most `budget` bytes of the device's
/// memory. On the CPU they also leave `reserved` bytes, room for the derivatives of one and, unless all are kept, for
/// one that is computed again for each product. `on_any`: whether a condition holds on any of the processes that make
/// the graphs together and keep the same ones; empty: this one makes them alone.
template <typename Kept, typename Make>
void keep_graphs(std::vector<Kept>& kept, size_t count, int64_t budget, const at::Device& device, const Make& make,
                 const std::function<bool(bool)>& on_any = {}, int64_t reserved = 0) {
  const ops::HeldMemory held(device);
  const auto exceeds = [&](bool own) { return on_any ? on_any(own) : own; };
  int64_t largest = 0;  // memory growth caused by one, an estimate for the next
  const auto fit = [&](int64_t graphs) {
    return !device.is_cpu() || largest == 0 || graphs * largest <= ops::available_memory() - reserved;
  };
  while (kept.size() < count) {
    const bool last = kept.size() + 1 == count;
    const int64_t before = held.bytes();
    if (exceeds(budget <= 0 || before + largest > budget || !fit(last ? 2 : 3))) return;
    kept.push_back(make(kept.size()));
    const int64_t after = held.bytes();
    largest = std::max(largest, after - before);
    if (exceeds(after > budget || !(last || fit(2)))) {
      kept.pop_back();
      return;
    }
  }
}

}  // namespace plumb
