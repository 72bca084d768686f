// plumb: measures Transformers at initialization, trains them, and reports. Loaded by main.cpp. Errors are caught here
// and nowhere else.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/progress.h"
#include "plumb/base/text.h"
#include "plumb/ops/memory.h"
#include "plumb/ops/threads.h"
#include "verb.h"

namespace plumb::app {
namespace {

/// The message without the stack trace that LibTorch appends.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// 2 and a message that names the nearest verb if the first word is none, else 0.
int check_verb(const CLI::App& app, int argc, const char* const* argv) {
  if (argc < 2 || argv[1][0] == '-') return 0;
  std::vector<std::string> verbs;
  for (const CLI::App* verb : app.get_subcommands({})) verbs.push_back(verb->get_name());
  if (std::find(verbs.begin(), verbs.end(), argv[1]) != verbs.end()) return 0;
  const std::string guess = nearest(argv[1], verbs);
  fmt::print(stderr, "plumb: error: there is no verb '{}'\nhint: {}\n", argv[1],
             guess.empty() ? "verbs: " + join(verbs) : fmt::format("did you mean '{}'?", guess));
  return 2;
}

/// Throws Error if anything printed did not arrive.
void check_standard_output() {
  std::cout.flush();
  const bool printed = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (!std::cout || !printed) throw Error("standard output could not be written");
}

/// Parses the command line and runs its verb; returns the exit status.
int run(CLI::App& app, int argc, const char* const* argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (app.exit(error) != 0) return 2;  // 0: --help or --version
  }
  check_standard_output();
  return 0;
}

}  // namespace

CLI::App* add_verb(CLI::App& parent, Globals& globals, const std::string& name, const std::string& description,
                   const std::string& example, std::function<void()> run) {
  CLI::App* verb = parent.add_subcommand(name, description);
  verb->footer("Example:\n  " + example);
  verb->add_option("--threads", globals.threads, "Threads (default: all cores)")->check(CLI::PositiveNumber);
  verb->add_flag("-q,--quiet", globals.quiet, "Print no progress");
  verb->add_flag("-v,--verbose", globals.verbose, "Say more");
  verb->callback([&globals, run = std::move(run)] {
    if (!globals.json.empty() && globals.json != "-") check_output_file(globals.json);
    ops::set_threads(globals.threads);
    set_verbosity(globals.quiet ? Verbosity::quiet : globals.verbose ? Verbosity::verbose : Verbosity::normal);
    run();
  });
  return verb;
}

void add_json_option(CLI::App& verb, Globals& globals) {
  verb.add_option("--json", globals.json, "Write the result as JSON to this file; -: to standard output")
      ->type_name("FILE");
}

void add_seed_option(CLI::App& verb, Globals& globals) {
  verb.add_option("--seed", globals.seed, "Seed of every random choice")->capture_default_str();
}

void emit(const Globals& globals, const Json& result, const std::string& text) {
  if (globals.json.empty()) {
    std::cout << text;
  } else if (globals.json == "-") {
    std::cout << result.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
  } else {
    write_json(globals.json, result);
  }
}

}  // namespace plumb::app

extern "C" int plumb_main(int argc, char** argv) {
  using namespace plumb;
  ops::keep_tensor_memory();
  set_command_line(argc, argv);
  CLI::App app("Plumb tells whether a Transformer will train, and why; then it trains it.", "plumb");
  app.set_version_flag("--version", "plumb " PLUMB_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Exit status: 0 if all went well; 1 after an error, or if a training run diverged; 2 if the command was wrong; "
      "130 or 143 if a training run was interrupted (SIGINT, SIGTERM) and has saved its state.");
  app::Globals globals;
  app::add_bench(app, globals);
  app::add_classify(app, globals);
  app::add_data(app, globals);
  app::add_generate(app, globals);
  app::add_list(app, globals);
  app::add_probe(app, globals);
  app::add_report(app, globals);
  app::add_score(app, globals);
  app::add_spectrum(app, globals);
  app::add_study(app, globals);
  app::add_train(app, globals);
  app::add_translate(app, globals);
  if (const int status = app::check_verb(app, argc, argv); status != 0) return status;
  try {
    return app::run(app, argc, argv);
  } catch (const app::Interrupted& interrupted) {
    return 128 + interrupted.signal;
  } catch (const Error& error) {
    fmt::print(stderr, "plumb: error: {}\n", error.what());
    if (!error.hint().empty()) fmt::print(stderr, "hint: {}\n", error.hint());
    return dynamic_cast<const UsageError*>(&error) != nullptr ? 2 : 1;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "plumb: error: out of memory\nhint: use smaller batches or a smaller model\n");
  } catch (const std::exception& error) {
    fmt::print(stderr, "plumb: error: {}\n", app::first_line(error.what()));
  }
  return 1;
}
