// plumb study: makes the measurements and training runs described by a TOML file, and writes the report.
#include <fmt/format.h>

#include <algorithm>

#include "events.h"
#include "plumb/base/error.h"
#include "plumb/base/progress.h"
#include "plumb/report/html.h"
#include "plumb/study/study.h"
#include "verb.h"

namespace plumb::app {
namespace {

namespace fs = std::filesystem;

/// Where the studies that come with Plumb may lie: installed beside the program, or in the source tree it was built
/// from.
std::vector<fs::path> study_folders() {
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  return {program.parent_path().parent_path() / "share" / "plumb" / "studies", fs::path(PLUMB_SOURCE_DIR) / "studies"};
}

fs::path find_study(const std::string& name) {
  if (name.ends_with(".toml")) return name;
  std::vector<std::string> known;
  for (const fs::path& folder : study_folders()) {
    if (fs::exists(folder / (name + ".toml"))) return folder / (name + ".toml");
    if (!fs::is_directory(folder)) continue;
    for (const auto& entry : fs::directory_iterator(folder)) known.push_back(entry.path().stem().string());
  }
  std::sort(known.begin(), known.end());
  throw Error(fmt::format("no study is called '{}'", name),
              known.empty() ? "give a TOML file" : "known: " + join(known) + "; or give a TOML file");
}

}  // namespace

void add_study(CLI::App& app, Globals& globals) {
  struct Options {
    std::string study;
    std::string out;
    std::vector<std::string> set;
  };
  auto options = std::make_shared<Options>();
  CLI::App* verb = add_verb(
      app, globals, "study", "Run or resume a study: measure, train, and write its report",
      "plumb study layernorm --out out/layernorm", [options, &globals, &app] {
        Config file = Config::from_file(find_study(options->study));
        for (const std::string& assignment : options->set) file.set(assignment);
        if (app.get_subcommand("study")->count("--seed") > 0) file.set(fmt::format("study.seed={}", globals.seed));
        const StudyConfig study = read_study(file);
        EventFiles events;
        const Json results = run_study(study, options->out,
                                       [&](const fs::path& run, const TrainPoint& point) { events.write(run, point); });
        write_report(options->out);
        for (const Json& verdict : results["verdicts"]) {
          say(fmt::format("{:<13} {}", verdict["verdict"].get<std::string>(), verdict["claim"].get<std::string>()));
        }
        say(fmt::format("report: {}", (fs::path(options->out) / "report.html").string()));
        emit(globals, results, "");
      });
  add_json_option(*verb, globals);
  add_seed_option(*verb, globals);
  verb->add_option("STUDY", options->study, "Name of a study that comes with Plumb, such as layernorm, or a TOML file")
      ->required();
  verb->add_option("--out", options->out, "Directory of the study")->type_name("DIR")->required();
  verb->add_option("--set", options->set, "Override a key, such as training.learning_rates=[1e-3]; may be repeated")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

}  // namespace plumb::app
