// The numbers behind a check's answer in words, the same for the program and for Python.
#pragma once

#include <string>
#include <vector>

#include "plumb/check/result.h"

namespace plumb::check {

/// "recommended" and what there is to say of it.
struct Line {
  std::string name;
  std::string text;
};

/// In order: the configured and the recommended settings, above which rate training fails and how, whether a warm-up is
/// needed, what was tried to change, the run, and the cost of the check.
std::vector<Line> lines_of(const CheckResult& result);

/// "collapse" if the trial failed with all tokens alike on the plateau of the labels' frequencies, otherwise
/// "divergence".
std::string manner_of_failure(const Trial& trial);

}  // namespace plumb::check
