// plumb study: measures and trains what a TOML file says, and writes the report.
#include <fmt/format.h>

#include <set>

#include "events.h"
#include "plumb/base/error.h"
#include "plumb/base/text.h"
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

/// The names of the studies that come with Plumb, sorted; each once, though two folders may have it.
std::vector<std::string> study_names() {
  std::set<std::string> names;
  for (const fs::path& folder : study_folders()) {
    if (!fs::is_directory(folder)) continue;
    for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().stem().string());
  }
  return {names.begin(), names.end()};
}

fs::path find_study(const std::string& name) {
  if (name.ends_with(".toml")) return name;
  for (const fs::path& folder : study_folders()) {
    if (fs::exists(folder / (name + ".toml"))) return folder / (name + ".toml");
  }
  const std::vector<std::string> known = study_names();
  throw UsageError(fmt::format("no study is called '{}'", name),
                   known.empty() ? "give a TOML file" : "known: " + join(known) + "; or give a TOML file");
}

/// What a person wants to know at once; the rest is in the report.
std::string summary(const Json& results, const fs::path& out) {
  std::string text;
  for (const Json& verdict : results["verdicts"]) {
    text += fmt::format("{:<13} {}\n", verdict["verdict"].get<std::string>(), verdict["claim"].get<std::string>());
  }
  return text + fmt::format("report: {}\n", (out / "report.html").string());
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
      app, globals, "study",
      "Measure and train what a study says, and write its report; goes on where it was interrupted",
      "plumb study layernorm --out out/layernorm", [options, &globals, &app] {
        Config file = Config::from_file(find_study(options->study));
        for (const std::string& assignment : options->set) file.set(assignment);
        if (app.get_subcommand("study")->count("--seed") > 0) file.set(fmt::format("study.seed={}", globals.seed));
        const StudyConfig study = read_study(file);
        EventFiles events;
        const Json results = run_study(study, options->out,
                                       [&](const fs::path& run, const TrainPoint& point) { events.write(run, point); });
        write_report(options->out);
        emit(globals, results, summary(results, options->out));
      });
  add_json_option(*verb, globals);
  add_seed_option(*verb, globals);
  verb->add_option("STUDY", options->study,
                   fmt::format("The name of a study that comes with Plumb ({}), or a TOML file", join(study_names())))
      ->required();
  verb->add_option("--out", options->out, "The study's directory")->type_name("DIR")->required();
  verb->add_option("--set", options->set, "Override a key: training.learning_rates=[1e-3]")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

}  // namespace plumb::app
