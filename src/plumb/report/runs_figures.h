// The figures of a report on training runs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plumb/report/report_parts.h"
#include "plumb/report/run_groups.h"

namespace plumb {

using Groups = std::vector<const RunGroup*>;

/// The tasks of these groups with their groups, in order.
std::vector<std::pair<std::string, Groups>> by_task(const std::vector<RunGroup>& groups);

/// "nats per token"
const char* unit_of_loss(const std::string& task);

/// Losses and metrics by task, then learning rate, gradient norm, throughput and what the watches measured.
std::vector<Figure> runs_figures(const std::vector<RunGroup>& groups);

/// What the watches measured along these runs: a figure for each number.
std::vector<Figure> watched_figures(const std::vector<RunGroup>& groups);

}  // namespace plumb
