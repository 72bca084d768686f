// Whether a planned run will train, found out with a small share of its computation: docs/check.md.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "plumb/check/budget.h"
#include "plumb/check/result.h"
#include "plumb/check/subject.h"

namespace plumb::check {

struct CheckOptions {
  Budget budget;
  uint64_t seed = 1;           // of the first trial; the others count up
  std::function<bool()> stop;  // asked after each step; true ends the check with what is known
  std::function<void(const std::string& what, double share)>
      progress;  // what is done next, and the share of the budget
};

/// Throws Error if the run could not begin.
CheckResult run_check(const Subject& subject, const CheckOptions& options);

}  // namespace plumb::check
