// plumb study: performs the measurements and training runs described by a TOML file, and writes the report.
#include <fmt/format.h>

#include <map>

#include "checks.h"
#include "declared_manual.h"
#include "events.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/progress.h"
#include "plumb/base/text.h"
#include "plumb/report/html.h"
#include "plumb/study/study.h"
#include "shared_files.h"
#include "training.h"
#include "verb.h"

namespace plumb::app {
namespace {

namespace fs = std::filesystem;

/// The names of the studies that come with Plumb, sorted.
std::vector<std::string> known_studies() {
  std::vector<std::string> known;
  for (const auto& [name, unused] : studies_of_plumb()) known.push_back(name);
  return known;
}

fs::path find_study(const std::string& name) {
  if (name.ends_with(".toml")) return name;
  const std::map<std::string, fs::path> studies = studies_of_plumb();
  if (const auto found = studies.find(name); found != studies.end()) return found->second;
  const std::vector<std::string> known = known_studies();
  const std::string guess = nearest(name, known);
  throw UsageError(fmt::format("no study is called '{}'", name),
                   !guess.empty()  ? fmt::format("did you mean '{}'? `plumb list studies` lists them", guess)
                   : known.empty() ? "give a TOML file"
                                   : "known: " + join(known) + "; or give a TOML file");
}

/// "norm of the last layer / of the first: 2.83 (2.71 to 2.96, 10 seeds)".
std::string effect_text(const Json& verdict) {
  const Json& effect = verdict["effect"];
  if (effect["mean"].is_null()) return verdict["reason"].get<std::string>();
  std::string text = fmt::format("{}: {:.3g}", verdict["quantity"].get<std::string>(), effect["mean"].get<double>());
  if (effect["low"].is_number() && effect["high"].is_number()) {
    text += fmt::format(" ({:.3g} to {:.3g}, {} seeds)", effect["low"].get<double>(), effect["high"].get<double>(),
                        effect["seeds"].get<int64_t>());
  }
  return text;
}

/// The verdicts with the effects that they are based on, and the path of the full report.
std::string text_of(const Json& results, const fs::path& out) {
  std::string text;
  for (const Json& verdict : results["verdicts"]) {
    text += fmt::format("{:<22} {}\n{:<22} {}\n", verdict["verdict"].get<std::string>(),
                        verdict["claim"].get<std::string>(), "", effect_text(verdict));
    const std::string reason = verdict["effect"]["mean"].is_null() ? "" : verdict.value("reason", "");
    if (!reason.empty()) text += fmt::format("{:<22} {}\n", "", reason);
    if (const std::string source = verdict.value("source", ""); source.starts_with("registered"))
      text += fmt::format("{:<22} {}\n", "", source);
  }
  return text + fmt::format("report: {}\n", (out / "report.html").string());
}

struct StudyArguments {
  std::string study;
  std::string out;
  std::vector<std::string> set;
  int64_t jobs = 0;
  bool registers = false;
};

std::string text_of_registration(const RegisteredClaims& registered, const StudyConfig& study, const fs::path& out) {
  std::string text =
      fmt::format("{}: registered on {}, SHA-256 of the study {}\n", (out / "registration.json").string(),
                  registered.document["date"].get<std::string>(), registered.document["sha256"].get<std::string>());
  for (size_t i = 0; i < registered.judged_in.size(); ++i) {
    text += study.study.claims[i].text + ", judged in:\n";
    for (const std::string& arms : registered.judged_in[i]) text += "  " + arms + '\n';
  }
  return text;
}

void add_study(CLI::App& app, Globals& globals) {
  auto arguments = std::make_shared<StudyArguments>();
  CLI::App* verb =
      add_verb(app, globals, "study", "Run or resume a study: measure, train, and write its report",
               "plumb study layernorm --out out/layernorm", [arguments, &globals, &app] {
                 Config file = Config::from_file(find_study(arguments->study));
                 for (const std::string& assignment : arguments->set) file.set(assignment);
                 if (app.get_subcommand("study")->count("--seed") > 0)
                   file.set(fmt::format("study.seed={}", globals.seed));
                 const StudyConfig study = read_study(file);
                 if (arguments->registers) {
                   const RegisteredClaims registered = register_claims(study, arguments->out);
                   return emit(globals, registered.document, text_of_registration(registered, study, arguments->out));
                 }
                 EventFiles events;
                 const Json results = run_study(
                     study, arguments->out,
                     [&](const fs::path& run, const TrainPoint& point) { events.write(run, point); }, arguments->jobs,
                     [page = fs::path(arguments->out) / "report.html"](const Json& so_far) {
                       write_file_atomic(page, render_report(so_far));
                       say(page.string() + " shows what is measured so far");
                     });
                 write_report(arguments->out);
                 emit(globals, results, text_of(results, arguments->out));
               });
  add_json_option(*verb, globals);
  add_seed_option(*verb, globals);
  const std::vector<std::string> known = known_studies();
  suggest(verb->add_option("STUDY", arguments->study,
                           fmt::format("A study that comes with Plumb ({}), or a TOML file", join(known)))
              ->type_name("FILE")
              ->required(),
          known);
  verb->add_option("--out", arguments->out, "Directory of the study")->type_name("DIR")->required();
  verb->add_option("--jobs", arguments->jobs,
                   "Measurements to run in parallel, sharing the threads; 0: one thread each for small models")
      ->type_name("N")
      ->check(between(0, 1024));
  verb->add_flag("--register", arguments->registers,
                 "Register the study's claims, with date and hash, before anything is measured");
  add_set_option(*verb, arguments->set);
  verb->get_option("--set")->description("Override a key, such as training.learning_rates=[1e-3]; may be repeated");
}

const bool kStudyRegistered = register_verb({Heading::measure, 60, add_study});

}  // namespace
}  // namespace plumb::app
