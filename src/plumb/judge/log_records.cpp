#include "plumb/judge/log_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "plumb/base/contains.h"
#include "plumb/base/error.h"

namespace plumb {
namespace {

/// How programs say that a run failed, or that it has not ended, by the first word of its state.
constexpr std::array<std::string_view, 10> kFailed = {"crashed", "crash", "failed", "failure",  "fail",
                                                      "killed",  "error", "oom",    "diverged", "timeout"};
constexpr std::array<std::string_view, 7> kOpen = {"running",   "pending",     "scheduled", "queued",
                                                   "preempted", "interrupted", "stopped"};

/// What a column is for.
struct ColumnUse {
  size_t lines = 0;            // that have a value
  bool is_text = true;         // no value is a number or a truth value, and none was too much to keep
  std::set<uint32_t> texts{};  // its values, if they are so
  bool tells_runs = false, is_state = false;
};

/// Columns of text may tell runs apart: values that repeat and are no numbers, truth values or times, in more than half
/// of the lines. A column that only a few lines have is a remark, such as "status" at the end of a run.
std::vector<ColumnUse> uses_of(const LogTable& table) {
  std::vector<ColumnUse> uses(table.columns());
  for (size_t i = 0; i < table.lines(); ++i) {
    for (const LogTable::Cell& cell : table.line(i)) {
      ColumnUse& use = uses[cell.column];
      ++use.lines;
      if (!use.is_text) continue;
      const std::string& text = table.text_at(cell.text);
      use.is_text = cell.is_number == 0 && cell.text > 0 && text != "true" && text != "false";
      if (use.is_text) use.texts.insert(cell.text);
    }
  }
  for (uint32_t column = 0; column < uses.size(); ++column) {
    ColumnUse& use = uses[column];
    const std::string& name = table.name_of(column);
    const bool describes = use.is_text && lower(name).find("time") == std::string::npos &&
                           (2 * use.texts.size() <= use.lines || use.texts.size() == 1) &&
                           2 * use.lines > table.lines();
    use.is_state = is_state_key(name);
    use.is_text = describes && !use.is_state;
    use.tells_runs = use.is_text || is_run_key(name) || is_seed_key(name) || contains(table.keys(), name);
  }
  return uses;
}

/// The column that counts steps.
std::optional<uint32_t> step_column(const LogTable& table, const std::vector<ColumnUse>& uses) {
  std::optional<uint32_t> step;
  for (uint32_t column = 0; column < uses.size(); ++column) {
    const auto rank = rank_of_step(table.name_of(column));
    if (rank && uses[column].lines > 0 && (!step || *rank < *rank_of_step(table.name_of(*step)))) step = column;
  }
  return step;
}

/// Throws UsageError if a column that no key names has lines of training and of validation: they are no runs of their
/// own.
void require_one_part(const LogTable& table, const std::vector<ColumnUse>& uses) {
  static constexpr std::array<std::string_view, 5> kParts = {"split", "phase", "mode", "stage", "subset"};
  for (uint32_t column = 0; column < uses.size(); ++column) {
    const std::string& name = table.name_of(column);
    if (!uses[column].is_text || uses[column].texts.size() < 2) continue;
    if (!contains(kParts, last_part(name)) || contains(table.keys(), name)) continue;
    std::string last;
    for (const uint32_t text : uses[column].texts) last = std::max(last, table.text_at(text));
    throw UsageError(fmt::format("{}: its lines are of several kinds, by \"{}\"", table.name(), name),
                     fmt::format("choose one: --where {}={}", name, last));
  }
}

/// Takes over what a line says of the run's state.
void add_state(RunRecord& record, const std::string& text) {
  const std::string state = lower(text);
  const std::string word = state.substr(0, state.find_first_not_of("abcdefghijklmnopqrstuvwxyz"));
  record.state = text;
  record.failed = contains(kFailed, word);
  record.ended = !contains(kOpen, word);
}

}  // namespace

const std::string* RunRecord::setting(const std::string& key) const { return find_value(settings, key); }

std::vector<RunRecord> records_of(const LogTable& table) {
  using Settings = std::vector<std::pair<uint32_t, uint32_t>>;  // column and text
  const std::vector<ColumnUse> uses = uses_of(table);
  const std::optional<uint32_t> step = step_column(table, uses);
  if (step) require_one_part(table, uses);
  std::vector<RunRecord> records;
  std::vector<std::unordered_map<uint32_t, std::vector<RunRecord::Value>>> series;  // of each record, by column
  std::map<Settings, size_t> places;                                                // of records with steps
  size_t run = 0;
  Settings settings, latest;
  for (size_t i = 0; i < table.lines(); ++i) {
    double at = step ? std::numeric_limits<double>::quiet_NaN() : 0;
    settings.clear();
    for (const LogTable::Cell& cell : table.line(i)) {
      if (cell.column == step) {
        if (cell.is_number != 0) at = cell.number;
      } else if (!step || uses[cell.column].tells_runs) {
        settings.emplace_back(cell.column, cell.text);
      }
    }
    // A rate that changes along the run, as schedules have it, does not tell runs apart: it is a metric.
    if (!step || i == 0 || settings != latest)
      run = step ? places.try_emplace(settings, records.size()).first->second : records.size();
    if (run == records.size()) {
      if (run == LogTable::kMost) table.refuse();
      RunRecord& record = records.emplace_back();
      record.nan_is_gap = true;
      record.name = step ? table.name() : fmt::format("{}, run {}", table.name(), run + 1);
      series.emplace_back();
      for (const auto& [column, text] : settings) {
        record.settings.emplace_back(table.name_of(column), table.text_at(text));
        if (step) record.name += fmt::format(", {} {}", table.name_of(column), table.text_at(text));
      }
      const auto own = std::find_if(record.settings.begin(), record.settings.end(),
                                    [](const auto& setting) { return is_run_key(setting.first); });
      if (!step && own != record.settings.end()) record.name = own->second;
    }
    std::swap(settings, latest);
    for (const LogTable::Cell& cell : table.line(i)) {
      const ColumnUse& use = uses[cell.column];
      if (cell.is_number != 0 && (!step || (cell.column != *step && !use.tells_runs)))
        series[run][cell.column].push_back({at, cell.number});
      if (use.is_state) add_state(records[run], table.text_at(cell.text));
    }
  }
  for (size_t i = 0; i < records.size(); ++i) {
    for (auto& [column, values] : series[i]) records[i].series[table.name_of(column)] = std::move(values);
  }
  return records;
}

}  // namespace plumb
