// The series of a gate in a file of JSON Lines, to which several processes may append.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "plumb/judge/gate.h"

namespace plumb {

struct GateRun {
  std::string arm;
  std::string seed;  // may be empty; otherwise, runs of an arm with one seed are one run
  double value = 0;  // in the metric's unit; not finite: it failed
};
void describe(Fields& field, GateRun& run);

/// Runs that ended, and the candidate that is asked about. What is not given is as in the ledger.
struct GateRequest {
  std::string base;  // the arm that the series begins with
  std::string best;  // the best so far, as the caller believes; empty: whichever it is
  std::string candidate;
  std::vector<GateRun> runs;  // those that the ledger has are not added again
  std::string metric;
  std::optional<bool> larger_is_better;  // nothing in a new ledger: by the metric's name
  std::optional<double> error, margin;
  std::optional<int64_t> seeds;
};

/// Adds the runs to the ledger, a new file if it does not exist, and answers. `notes`: what could not be read of it,
/// such as a line that a killed process did not finish. Throws Error, and adds nothing, if the file is no ledger or a
/// run has another value in it, and UsageError on another best, metric, direction or rule than its own, or if no word
/// of the metric's name tells its direction.
GateAnswer ask_gate(const std::filesystem::path& ledger, const GateRequest& request, std::vector<std::string>& notes);

}  // namespace plumb
