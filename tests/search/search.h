// Random searches for what breaks. In the suite each tries a few cases from a fixed seed; `make search SECONDS=600`
// tries as many as the time allows, from another seed each time. A failure prints the variables that repeat its case.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "plumb/base/random.h"

namespace plumb::test {

/// A number from the environment, or `fallback` where the variable is not set.
inline uint64_t number_from_environment(const char* name, uint64_t fallback) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != '\0' ? std::stoull(text) : fallback;
}

/// The seed of all searches: PLUMB_SEARCH_SEED.
inline uint64_t search_seed() { return number_from_environment("PLUMB_SEARCH_SEED", 1); }

/// Calls `try_case(random, number)` for case after case until one fails or the search is over: after `cases`, or after
/// PLUMB_SEARCH_SECONDS if that is set. What a case draws from `random` depends on seed, name and number alone, so
/// PLUMB_SEARCH_CASE repeats one case.
template <typename Case>
void search(const std::string& name, uint64_t cases, Case&& try_case) {
  using Clock = std::chrono::steady_clock;
  const uint64_t seed = search_seed();
  const auto attempt = [&](uint64_t number) {
    SCOPED_TRACE("repeat with PLUMB_SEARCH_SEED=" + std::to_string(seed) +
                 " PLUMB_SEARCH_CASE=" + std::to_string(number) + " build/tests/test_search --gtest_filter='*" +
                 ::testing::UnitTest::GetInstance()->current_test_info()->name() + "'");
    Random random(seed, name + ' ' + std::to_string(number));
    try_case(random, number);
  };
  if (const char* only = std::getenv("PLUMB_SEARCH_CASE"); only != nullptr && *only != '\0') {
    attempt(std::stoull(only));
    return;
  }
  const uint64_t seconds = number_from_environment("PLUMB_SEARCH_SECONDS", 0);
  const auto end = Clock::now() + std::chrono::seconds(seconds);
  uint64_t tried = 0;
  while (!::testing::Test::HasFailure() && (seconds > 0 ? Clock::now() < end : tried < cases)) attempt(tried++);
  ::testing::Test::RecordProperty("cases", std::to_string(tried));
  std::printf("%s: seed %llu, %llu cases\n", name.c_str(), static_cast<unsigned long long>(seed),
              static_cast<unsigned long long>(tried));
}

}  // namespace plumb::test
