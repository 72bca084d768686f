#include "plumb/judge/histories.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "plumb/base/error.h"

namespace plumb {
namespace {

using Values = std::vector<RunRecord::Value>;

/// The steps of a run, and the smallest distance between the first two of a metric.
struct Span {
  double first = HUGE_VAL, last = -HUGE_VAL, stride = HUGE_VAL;
};

Span span_of(const RunRecord& record) {
  Span span;
  for (const auto& [metric, values] : record.series) {
    if (values.size() < 2) continue;  // a result, at any step
    span.first = std::min(span.first, values.front().step);
    span.last = std::max(span.last, values.back().step);
    span.stride = std::min(span.stride, values[1].step - values[0].step);
  }
  return span;
}

/// Whether a run that is recorded beside another one begins where that ends, or before, and goes further.
bool continues(const RunRecord& run, const Span& later, const RunRecord& other, const Span& earlier) {
  return later.first - later.stride > earlier.first && later.first - later.stride <= earlier.last &&
         later.last > earlier.last && run.place != other.place && run.place.parent_path() == other.place.parent_path();
}

bool is_nan(const RunRecord::Value& one) { return std::isnan(one.value); }

bool remove_gaps(Values& values) {
  const auto last = std::find_if_not(values.rbegin(), values.rend(), is_nan);
  const auto before = std::find_if(last, values.rend(), is_nan);
  if (before == values.rend()) return false;
  const bool dense = last + 1 != before;  // the last two numbers follow each other
  const auto gap = dense ? 0 : std::find_if_not(before, values.rend(), is_nan) - before;
  const auto end = last - values.rbegin() <= gap ? values.end() : last.base();
  values.erase(std::remove_if(values.begin(), end, is_nan), end);
  return true;
}

/// Whether the log went back to a step that it had.
bool remove_repeated(const RunRecord& record, const std::string& metric, Values& recorded) {
  Values values;
  size_t restarts = 0;
  for (const RunRecord::Value& one : recorded) {
    auto at = values.end();  // the first point that is not before this one
    while (at != values.begin() && std::prev(at)->step >= one.step) --at;
    const bool known = at != values.end() && at->step == one.step;
    if (known && at + 1 == values.end() && (is_nan(one) || is_nan(*at) || at->value == one.value)) {
      if (is_nan(*at)) *at = one;  // in two lines of one step
      continue;
    }
    // A run goes on from a checkpoint. Another run begins at the first step, or has a line beside each of this one.
    if (at != values.end() && (!known || at == values.begin() || 3 * ++restarts > recorded.size()))
      throw Error(
          fmt::format("{}: has two values of {} at step {:g}, or goes back to it", record.name, metric, one.step),
          "name the column that tells runs apart, --by, --seed-key or --rate-key; or sort its lines");
    values.erase(at, values.end());
    values.push_back(one);
  }
  recorded = std::move(values);
  return restarts > 0;
}

}  // namespace

void join_resumed(std::vector<RunRecord>& records, std::vector<std::string>& arms, std::vector<std::string>& notes) {
  std::vector<Span> spans;
  std::vector<size_t> order;  // by the first step
  for (const RunRecord& record : records) {
    if (!record.place.empty()) order.push_back(spans.size());
    spans.push_back(span_of(record));
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return spans[a].first < spans[b].first; });
  std::set<size_t> runs, later;
  for (const size_t i : order) {
    std::vector<size_t> before;
    std::copy_if(runs.begin(), runs.end(), std::back_inserter(before),
                 [&](size_t j) { return arms[i] == arms[j] && continues(records[i], spans[i], records[j], spans[j]); });
    if (before.size() > 1)
      throw UsageError(
          fmt::format("{} begins at step {:g}: which run beside it does it continue?", records[i].name, spans[i].first),
          "name the directories of each arm without it: NAME=DIR NAME=DIR");
    (before.empty() ? runs : later).insert(i);
    if (before.empty()) continue;
    RunRecord& run = records[before[0]];
    notes.push_back(fmt::format("{} goes on at step {:g} in {}: one run", run.name, spans[i].first, records[i].name));
    spans[before[0]].last = spans[i].last;
    run.append(records[i]);
  }
  for (auto i = later.rbegin(); i != later.rend(); ++i) {
    records.erase(records.begin() + static_cast<std::ptrdiff_t>(*i));
    arms.erase(arms.begin() + static_cast<std::ptrdiff_t>(*i));
  }
}

void settle_histories(std::vector<RunRecord>& records, const std::string& metric, bool best,
                      std::vector<std::string>& notes) {
  size_t with_gaps = 0, resumed = 0;
  std::set<size_t> counts;
  for (RunRecord& record : records) {
    const auto found = record.series.find(metric);
    if (found == record.series.end()) continue;
    if (record.nan_is_gap && remove_gaps(found->second)) ++with_gaps;
    if (remove_repeated(record, metric, found->second)) ++resumed;
    if (!record.failed && std::isfinite(found->second.back().value)) counts.insert(found->second.size());
  }
  if (with_gaps > 0)
    notes.push_back(fmt::format("nan between values of {} is read as not measured, in {} runs", metric, with_gaps));
  if (resumed > 0) notes.push_back(fmt::format("{} runs repeat steps, as if resumed: the later values count", resumed));
  if (!best || counts.empty() || 10 * *counts.rbegin() <= 11 * *counts.begin()) return;
  const size_t count = *counts.begin();
  notes.push_back(
      fmt::format("runs have {} to {} values of {}, and the best of more is better by chance: that of {} at "
                  "even distances is compared",
                  count, *counts.rbegin(), metric, count));
  for (RunRecord& record : records) {
    const auto found = record.series.find(metric);
    if (found == record.series.end() || found->second.size() <= count) continue;
    Values chosen;
    for (size_t i = 1; i <= count; ++i) chosen.push_back(found->second[i * found->second.size() / count - 1]);
    found->second = std::move(chosen);
  }
}

}  // namespace plumb
