// Runs from tables: a line for each run, or for each point of a run.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plumb/base/json.h"
#include "plumb/judge/log_lines.h"
#include "plumb/judge/run_record.h"

namespace plumb {

/// Calls take(row) for each line of a table, from the first at every call, so that no table has to be in memory.
using TakeRow = std::function<void(const Row& row)>;
using Rows = std::function<void(const TakeRow& take)>;

/// The same rows, kept from the first call for the next ones; more than a million cells are read again.
Rows read_once(Rows rows);

/// The leaves of an object, "optimizer.lr" for those of objects within; null and lists are left out.
Row row_of(const Json& object);

/// The number that a text stands for, "nan" and "-Infinity" among them; nothing if it is none.
std::optional<double> number_in(const std::string& text);

/// Whether a cell has no value, as programs write it: nothing, "None", "N/A", "-".
bool is_missing(const std::string& text);

/// JSON in which numbers may be NaN or infinite, as Python and C write them, or too large: such a number becomes a
/// text. Discarded if the text is no JSON.
Json parse_log(std::string_view text);

/// Runs from the lines of a table, which is read twice, by the rules of `read_run_records`. `name`: of the table.
/// Throws Error if it has more than 100,000 runs or columns.
std::vector<RunRecord> records_of(const Rows& rows, const std::string& name, const std::vector<std::string>& keys);

/// Whether a column, or its part after the last dot, is called as programs call a run's seed, or learning rate.
bool is_seed_key(const std::string& key);
bool is_rate_key(const std::string& key);

/// Whether a column names runs ("Run ID"), or says how they ended ("State", "status").
bool is_run_key(const std::string& key);
bool is_state_key(const std::string& key);

}  // namespace plumb
