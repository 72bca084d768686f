// plumb report: writes the HTML report of a study, or of any set of training runs.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "computing.h"
#include "console.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/judge/records_report.h"
#include "plumb/report/data_files.h"
#include "plumb/report/html.h"
#include "plumb/report/runs_report.h"
#include "verb.h"

namespace plumb::app {
namespace {

namespace fs = std::filesystem;

struct ReportArguments {
  std::vector<std::string> places;
  std::string out, csv, svg, pdf;
  FigureChoice choice;
};

/// Of Plumb's runs, or of other programs' if there are none of Plumb's.
Json report_on_runs(const std::vector<std::string>& places) {
  const auto is_ours = [](const auto& place) { return !fs::exists(place) || contains_runs(place); };
  const bool ours = std::any_of(places.begin(), places.end(), is_ours);
  return ours ? runs_report(read_runs(places)) : records_report(read_all_records(places));
}

void report(const ReportArguments& arguments) {
  const fs::path first = arguments.places.front();
  if (!arguments.choice.id.empty() && arguments.csv.empty() && arguments.svg.empty())
    throw UsageError("--figure chooses what --csv and --svg write", "give --svg DIR, too");
  if (!arguments.choice.series.empty() && arguments.choice.id.empty())
    throw UsageError("--series chooses among the series of a figure", "give --figure ID, too");
  if (arguments.out.empty() && arguments.places.size() > 1)
    throw UsageError("a report of several directories needs an output file", "give --out FILE.html");
  const bool alone = arguments.places.size() == 1;
  const Json results = alone && fs::exists(first / "results.json") ? read_results(first)
                       : alone && fs::exists(first / "study.toml") ? report_unfinished_study(first)
                                                                   : report_on_runs(arguments.places);
  const fs::path page = arguments.out.empty() ? first / "report.html" : fs::path(arguments.out);
  const std::string html = render_report(results);
  if (arguments.out.empty()) {
    write_file_atomic(page, html);  // in a directory that may be somebody else's
  } else {
    write_output_file(page, html);
  }
  if (!arguments.pdf.empty()) write_output_file(arguments.pdf, printed_report(html));
  for (const fs::path& file : {page, fs::path(arguments.pdf)}) {
    if (fs::is_regular_file(file)) print(file.string() + '\n');  // not below what is in standard output
  }
  if (!arguments.csv.empty())
    print(fmt::format("{}: {} files\n", arguments.csv, write_csv(results, arguments.csv, arguments.choice)));
  if (!arguments.svg.empty())
    print(fmt::format("{}: {} files\n", arguments.svg, write_svg(results, arguments.svg, arguments.choice)));
}

void add_report(CLI::App& app, Globals& globals) {
  const auto arguments = std::make_shared<ReportArguments>();
  CLI::App* verb =
      add_verb(app, globals, "report", "Write the HTML report of a study, or of any set of training runs",
               "plumb report runs/pre-ln runs/post-ln --out comparison.html", [arguments] { report(*arguments); });
  verb->add_option(
          "DIR", arguments->places,
          "Directory of a study, finished or not, or training runs, also of other programs, and directories that are "
          "searched for them")
      ->type_name("DIR")
      ->required();
  verb->add_option("--out", arguments->out, "File to write (default: report.html in the directory)")->type_name("FILE");
  verb->add_option("--pdf", arguments->pdf,
                   "Also print the page to this file with an installed Chromium (chromium, chromium-browser or "
                   "google-chrome in PATH)")
      ->type_name("FILE");
  verb->add_option("--csv", arguments->csv,
                   "Directory for every table and every figure's data as CSV, besides the page")
      ->type_name("DIR");
  verb->add_option("--svg", arguments->svg, "Directory for every figure as SVG, for papers, besides the page")
      ->type_name("DIR");
  verb->add_option("--figure", arguments->choice.id, "Only this figure in the files of --csv and --svg (default: all)")
      ->type_name("ID");
  verb->add_option("--series", arguments->choice.series, "Only these of its series, by name (default: all)")
      ->type_name("A,B");
}

const bool kReportRegistered = register_verb({Heading::measure, 100, add_report});

}  // namespace
}  // namespace plumb::app
