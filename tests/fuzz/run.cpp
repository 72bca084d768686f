// The directory of a run: config.toml, result.json and metrics.jsonl. Whatever they contain, the tables and the report
// can be built, and a history that was read has the same length when written and read again.
#include <cstdlib>

#include "folder.h"
#include "plumb/base/error.h"
#include "plumb/report/runs_report.h"
#include "plumb/run/metrics_file.h"
#include "plumb/run/run_table.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plumb;
  static const fuzz::Folder folder;
  const auto parts = fuzz::parts_of({reinterpret_cast<const char*>(data), size}, 3);
  folder.write("plumb.json", R"({"kind": "run"})");
  folder.write("config.toml", parts[0]);
  folder.write("result.json", parts[1]);
  folder.write("metrics.jsonl", parts[2]);
  std::vector<RunSummary> runs = read_runs({folder.path().string()});
  (void)run_table_text(runs, run_columns(runs));
  (void)run_table_json(runs).dump(-1, ' ', false, Json::error_handler_t::replace);
  (void)runs_report(runs).dump(-1, ' ', false, Json::error_handler_t::replace);
  runs.push_back(runs.front());
  runs.back().settings.emplace_back("train.seed", "2");
  sort_runs(runs, "step", true);
  (void)run_table_text(runs, run_columns(runs));
  (void)runs_report(runs);
  try {
    const auto metrics = folder.path() / "metrics.jsonl", copy = folder.path() / "copy.jsonl";
    const auto history = read_metrics(metrics);
    const auto watched = read_records(metrics).watched;
    const auto troubles = read_records(metrics).troubles;
    { const MetricsFile written(copy, history, watched, troubles); }
    const bool same = read_metrics(copy).size() == history.size() &&
                      read_records(copy).watched.size() == watched.size() &&
                      read_records(copy).troubles.size() == troubles.size();
    if (!same) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
