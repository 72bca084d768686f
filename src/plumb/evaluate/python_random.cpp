#include "plumb/evaluate/python_random.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <set>

#include "plumb/base/error.h"

namespace plumb {
namespace {

/// The generator's state after the authors' `init_by_array` with the words of a seed.
class StateOfSeed {
 public:
  using result_type = uint_least32_t;

  explicit StateOfSeed(uint64_t seed) : key_{static_cast<uint32_t>(seed)} {
    if (seed >> 32 != 0) key_.push_back(static_cast<uint32_t>(seed >> 32));
  }

  template <typename Iterator>
  void generate(Iterator begin, Iterator end) const {
    std::vector<uint32_t> state(static_cast<size_t>(end - begin));
    state[0] = 19650218;
    for (size_t i = 1; i < state.size(); ++i) state[i] = 1812433253 * mixed(state[i - 1]) + static_cast<uint32_t>(i);
    size_t i = 1;
    const auto advance = [&] {
      if (++i < state.size()) return;
      state[0] = state.back();
      i = 1;
    };
    for (size_t step = 0; step < std::max(state.size(), key_.size()); ++step) {
      const size_t word = step % key_.size();
      state[i] = (state[i] ^ mixed(state[i - 1]) * 1664525) + key_[word] + static_cast<uint32_t>(word);
      advance();
    }
    for (size_t step = 1; step < state.size(); ++step) {
      state[i] = (state[i] ^ mixed(state[i - 1]) * 1566083941) - static_cast<uint32_t>(i);
      advance();
    }
    state[0] = 0x80000000;
    std::copy(state.begin(), state.end(), begin);
  }

 private:
  static uint32_t mixed(uint32_t word) { return word ^ word >> 30; }

  std::vector<uint32_t> key_;
};

std::mt19937 seeded(uint64_t seed) {
  StateOfSeed state(seed);
  return std::mt19937(state);
}

}  // namespace

PythonRandom::PythonRandom(uint64_t seed) : words_(seeded(seed)) {}

double PythonRandom::uniform() {
  const uint64_t high = words_() >> 5;
  const uint64_t low = words_() >> 6;
  return static_cast<double>(high << 26 | low) * 0x1p-53;
}

size_t PythonRandom::below(size_t n) {
  if (n > UINT32_MAX) throw Error(fmt::format("a random number below {}", n), "draw from fewer items");
  const auto bits = static_cast<int>(std::bit_width(n));
  while (true) {
    const size_t drawn = words_() >> (32 - bits);
    if (drawn < n) return drawn;
  }
}

std::vector<size_t> PythonRandom::sample(size_t population, size_t count) {
  if (count > population) throw Error(fmt::format("{} different numbers below {}", count, population));
  std::vector<size_t> drawn;
  // Python copies the population unless a set of the numbers drawn is smaller.
  size_t size_of_set = 21;
  if (count > 5)
    size_of_set += static_cast<size_t>(std::pow(4, std::ceil(std::log(3 * static_cast<double>(count)) / std::log(4))));
  if (population <= size_of_set) {
    std::vector<size_t> pool(population);
    std::iota(pool.begin(), pool.end(), size_t{0});
    for (size_t left = population; drawn.size() < count; --left) {
      const size_t place = below(left);
      drawn.push_back(pool[place]);
      pool[place] = pool[left - 1];
    }
    return drawn;
  }
  std::set<size_t> seen;
  while (drawn.size() < count) {
    const size_t number = below(population);
    if (seen.insert(number).second) drawn.push_back(number);
  }
  return drawn;
}

std::vector<size_t> PythonRandom::choices(size_t population) {
  std::vector<size_t> drawn(population);
  for (size_t& number : drawn) number = static_cast<size_t>(uniform() * static_cast<double>(population));
  return drawn;
}

}  // namespace plumb
