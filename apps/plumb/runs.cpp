// plumb runs: lists and compares training runs.
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "plumb/base/terminal.h"
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
};

void list_runs(const RunsArguments& arguments, const Globals& globals) {
  std::vector<RunSummary> runs = read_runs(arguments.places);
  if (!arguments.sort.empty()) sort_runs(runs, arguments.sort, arguments.descending);
  if (arguments.over_seeds) {
    emit(globals, seed_table_json(runs), seed_table_text(runs));
  } else {
    emit(globals, run_table_json(runs), run_table_text(runs, terminal_width(STDOUT_FILENO)));
  }
}

}  // namespace

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
  verb->add_flag("--over-seeds", arguments->over_seeds,
                 "Merge runs that differ only in train.seed into one row: means with 95% intervals");
  add_json_option(*verb, globals);
}

}  // namespace plumb::app
