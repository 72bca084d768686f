// plumb report: writes the HTML report of a study, or of any set of training runs.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/report/html.h"
#include "plumb/report/runs_report.h"
#include "verb.h"

namespace plumb::app {
namespace {

namespace fs = std::filesystem;

struct ReportArguments {
  std::vector<std::string> places;
  std::string out;
};

void write_runs_report(const ReportArguments& arguments) {
  fs::path page = arguments.out;
  if (page.empty()) {
    if (arguments.places.size() > 1)
      throw UsageError("a report of several directories needs an output file", "give --out FILE.html");
    page = fs::path(arguments.places.front()) / "report.html";
  }
  write_file_atomic(page, render_report(runs_report(read_runs(arguments.places))));
  fmt::print("{}\n", page.string());
}

void report(const ReportArguments& arguments) {
  const fs::path first = arguments.places.front();
  const bool study = arguments.places.size() == 1 && fs::exists(first / "results.json");
  if (!study) return write_runs_report(arguments);
  const fs::path page = arguments.out.empty() ? first / "report.html" : fs::path(arguments.out);
  write_report(first, page);
  fmt::print("{}\n", page.string());
}

}  // namespace

void add_report(CLI::App& app, Globals& globals) {
  const auto arguments = std::make_shared<ReportArguments>();
  CLI::App* verb =
      add_verb(app, globals, "report", "Write the HTML report of a study, or of any set of training runs",
               "plumb report runs/pre-ln runs/post-ln --out comparison.html", [arguments] { report(*arguments); });
  verb->add_option("DIR", arguments->places,
                   "Directory of a study (with results.json), or training runs and directories that are searched for "
                   "them")
      ->type_name("DIR")
      ->required();
  verb->add_option("--out", arguments->out, "File to write (default: report.html in the directory)")->type_name("FILE");
}

}  // namespace plumb::app
