// plumb runs: lists and compares training runs.
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "plumb/base/terminal.h"
#include "plumb/report/data_files.h"
#include "plumb/report/runs_report.h"
#include "plumb/report/seed_table.h"
#include "plumb/run/run_table.h"
#include "verb.h"

namespace plumb::app {
namespace {

struct RunsArguments {
  std::vector<std::string> places;
  std::string sort;
  bool descending = false;
  bool over_seeds = false;
  bool csv = false;
  std::vector<std::string> columns;
};

void list_runs(const RunsArguments& arguments, const Globals& globals) {
  std::vector<RunSummary> runs = read_runs(arguments.places);
  if (!arguments.sort.empty()) sort_runs(runs, arguments.sort, arguments.descending);
  if (arguments.over_seeds) {
    emit(globals, seed_table_json(runs), seed_table_text(runs));
    return;
  }
  const bool all = arguments.columns.empty();
  const std::vector<RunColumn> columns = all ? run_columns(runs) : run_columns(runs, arguments.columns);
  const auto csv = [&] {
    const Table table = runs_table(runs, columns);
    return csv_text(table.columns, table.rows);
  };
  emit(globals, run_table_json(runs),
       arguments.csv ? csv() : run_table_text(runs, columns, all ? terminal_width(STDOUT_FILENO) : 0));
}

void add_runs(CLI::App& app, Globals& globals) {
  const auto arguments = std::make_shared<RunsArguments>();
  CLI::App* verb = add_verb(app, globals, "runs", "List and compare training runs: their differences and results",
                            "plumb runs runs --sort loss", [arguments, &globals] { list_runs(*arguments, globals); });
  verb->add_option("DIR", arguments->places, "Run directories, or directories that are searched for them")
      ->type_name("DIR")
      ->required();
  verb->add_option("--sort", arguments->sort,
                   "Column to sort by: a heading, a metric, or a configuration key that differs; smallest first")
      ->type_name("KEY");
  verb->add_flag("--descending", arguments->descending, "Sort the largest first");
  CLI::Option* over_seeds =
      verb->add_flag("--over-seeds", arguments->over_seeds,
                     "Merge runs that differ only in train.seed into one row: means with 95% intervals");
  verb->add_option("--columns", arguments->columns,
                   "Columns to show, separated by commas: headings, metrics, or configuration keys")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->excludes(over_seeds)
      ->type_name("KEY,KEY");
  verb->add_flag("--csv", arguments->csv, "Print the table as CSV, with times in seconds")->excludes(over_seeds);
  add_json_option(*verb, globals);
}

const bool kRunsRegistered = register_verb({Heading::measure, 70, add_runs});

}  // namespace
}  // namespace plumb::app
