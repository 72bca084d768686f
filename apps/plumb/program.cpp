// plumb: measures Transformers at initialization, trains them, and reports. Loaded by main.cpp. Catches the errors of
// all verbs.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <vector>

#include "checks.h"
#include "computing.h"
#include "console.h"
#include "declared_manual.h"
#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/plugins.h"
#include "plumb/base/progress.h"
#include "plumb/base/text.h"
#include "plumb/train/memory_error.h"
#include "shortened_file.h"
#include "verb.h"
#include "words.h"

namespace plumb::app {
namespace {

/// The message without the stack trace that LibTorch appends.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// The first value that an option does not take, and what it takes: "--pairs must be a whole number, not 'ten'". Empty
/// if all values fit the types of their options.
std::optional<std::string> complaint_about_values(const CLI::App& verb, std::string& hint) {
  for (const CLI::Option* option : verb.get_options()) {
    const ManualOption manual = manual_of(*option);
    for (const std::string& value : option->results()) {
      std::string wanted;
      if (!manual.open) {
        if (contains(manual.choices, value)) continue;
        wanted = "one of " + join(manual.choices);
        hint = did_you_mean(value, manual.choices, hint);
      } else if (int64_t whole = 0; manual.value == "N" && !CLI::detail::lexical_cast(value, whole)) {
        wanted = "a whole number";
      } else if (double number = 0; manual.value == "X" && !CLI::detail::lexical_cast(value, number)) {
        wanted = "a number";
      } else {
        continue;
      }
      return fmt::format("{} must be {}, not '{}'", manual.names.back(), wanted, value);
    }
  }
  return {};
}

/// Converts an error of CLI11 to the form of all errors.
UsageError usage_error(const CLI::App& program, const CLI::ParseError& error) {
  const CLI::App* verb = &program;
  while (!verb->get_subcommands().empty()) verb = verb->get_subcommands().front();  // the verb on the command line
  const bool has_commands = !verb->get_subcommands({}).empty();
  std::string message = error.what(), hint;
  if (const size_t must = message.find(": must be "); must != std::string::npos) message.erase(must, 1);
  if (has_commands && dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    message = "a command is missing";
  } else if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    message = "unexpected: " + join(program.remaining(true), " ");
  } else if (const auto complaint = complaint_about_values(*verb, hint)) {
    message = *complaint;
  }
  if (!hint.empty()) return UsageError(message, hint);
  std::string name;
  for (const CLI::App* app = verb; app->get_parent() != nullptr; app = app->get_parent())
    name.insert(0, app->get_name() + " ");
  return UsageError(message, fmt::format("plumb {}--help lists the {}", name, has_commands ? "commands" : "options"));
}

std::vector<VerbFile>& verb_files() {
  static std::vector<VerbFile> files;
  return files;
}

/// Adds the verbs, grouped as in `plumb --help`.
void add_verbs(CLI::App& app, Globals& globals) {
  for (const auto& [heading, title] : {std::pair{Heading::measure, "Measure and compare"},
                                       {Heading::models, "Train and use models"},
                                       {Heading::tools, "Reference and tools"}}) {
    add_verbs_of(heading, app, globals);
    for (CLI::App* verb : app.get_subcommands({})) {
      if (verb->get_group() == "Subcommands") verb->group(title);  // CLI11's default
    }
  }
}

/// Loads what the options --load of the command line name. Only its parser tells these from a prompt that reads alike.
void load_plugins(int argc, const char* const* argv) {
  if (argc > 1 && std::string_view(argv[1]) == "__complete") return;  // somebody is still typing
  if (std::none_of(argv, argv + argc, [](std::string_view word) { return word.starts_with("--load"); })) return;
  CLI::App trial;
  Globals globals{.only_parses = true};
  add_verbs(trial, globals);
  try {
    trial.parse(argc, argv);
  } catch (const CLI::ParseError&) {  // it may be a variant of a library that is missing so far
  }
  for (const CLI::App* verb = &trial; !verb->get_subcommands().empty();) {
    verb = verb->get_subcommands().front();
    if (const CLI::Option* load = verb->get_option_no_throw("--load"); load != nullptr) {
      for (const std::string& library : load->results()) load_plugin(library);
    }
  }
}

/// Runs what the command line says. Throws UsageError if it is wrong.
void run(CLI::App& app, int argc, const char* const* argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const bool needs_keys = !words.empty() && (words[0] == "__complete" || words[0] == "config" || words[0] == "help");
  if (const std::string text = answered(needs_keys ? whole_manual(app) : Manual{manual_of(app)}, words);
      !text.empty()) {
    std::cout << text;
  } else {
    try {
      app.parse(argc, argv);
    } catch (const CLI::Success& help_or_version) {
      app.exit(help_or_version);
    } catch (const CLI::ParseError& error) {
      throw usage_error(app, error);
    }
  }
  check_standard_output();
}

}  // namespace

bool register_verb(const VerbFile& file) {
  verb_files().push_back(file);
  return true;
}

void add_verbs_of(Heading heading, CLI::App& parent, Globals& globals) {
  std::multimap<int, VerbFile> by_order;
  for (const VerbFile& file : verb_files()) {
    if (file.heading == heading) by_order.emplace(file.order, file);
  }
  for (const auto& [order, file] : by_order) {
    file.add(parent, globals);
    if (file.joint) globals.joint_verbs.push_back(parent.get_subcommands({}).back()->get_name());
  }
}

CLI::App* add_verb(CLI::App& parent, Globals& globals, const std::string& name, const std::string& description,
                   const std::string& example, std::function<void()> run) {
  CLI::App* verb = parent.add_subcommand(name, description);
  verb->footer(example);
  verb->add_option("--threads", globals.threads, "Threads (default: all cores)")->check(positive());
  verb->add_option("--device", globals.device,
                   "Device to compute on: cpu, cuda, or cuda:N for GPU number N, counted from 0")
      ->type_name("DEVICE");
  repeatable(verb->add_option("--load", globals.plugins,
                              "A shared library with variants of your own; may be repeated (`plumb new` begins one)"))
      ->type_name("FILE");
  verb->add_flag("-q,--quiet", globals.quiet, "Print no progress");
  verb->add_flag("-v,--verbose", globals.verbose, "Print more details");
  for (CLI::Option* option : verb->get_options()) option->group(kCommonOptions);
  verb->callback([&globals, run = std::move(run)] {
    if (globals.only_parses) return;
    if (!globals.json.empty() && globals.json != "-") check_output_file(globals.json);
    set_verbosity(globals.quiet ? Verbosity::quiet : globals.verbose ? Verbosity::verbose : Verbosity::normal);
    compute(globals, run);
  });
  return verb;
}

CLI::Option* repeatable(CLI::Option* option) {
  return option->expected(1)->allow_extra_args(false)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void add_json_option(CLI::App& verb, Globals& globals) {
  verb.add_option("--json", globals.json, "Write the result as JSON to this file; -: to standard output")
      ->type_name("FILE")
      ->group(kCommonOptions);
}

void add_seed_option(CLI::App& verb, Globals& globals) {
  verb.add_option("--seed", globals.seed, "Seed of every random choice")->check(fits_int64())->group(kCommonOptions);
}

void emit(const Globals& globals, const Json& result, const std::string& text) {
  if (globals.json.empty()) {
    print(text);
  } else if (globals.json == "-") {
    print(json_text(result));
  } else {
    write_output_file(globals.json, json_text(result));
  }
}

}  // namespace plumb::app

extern "C" int plumb_main(int argc, char** argv) {
  using namespace plumb;
  app::begin_computing();
  app::report_shortened_files();
  std::signal(SIGXFSZ, SIG_IGN);  // a file that grows beyond a limit is an error like any other
  set_command_line(argc, argv);
  CLI::App app("Plumb tells you whether a Transformer will train, and why, and then trains it.", "plumb");
  app::set_help(app);
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.set_version_flag("--version", "plumb " PLUMB_VERSION, "Print the version and exit");
  app.require_subcommand(1);
  app.option_defaults()->always_capture_default();  // for the manual
  app::Globals globals;
  try {
    app::load_plugins(argc, argv);  // before the verbs list what is registered
    app::add_verbs(app, globals);
    app::run(app, argc, argv);
    return 0;
  } catch (const app::Interrupted& interrupted) {
    return 128 + interrupted.signal;
  } catch (const app::Ended& ended) {
    return ended.status;
  } catch (const app::NotHere&) {
    return app::kNeedsWholeProgram;
  } catch (const Error& error) {
    app::print_error(error.what(), error.hint());
    app::tell_others(argc, argv, globals, error.what());
    if (dynamic_cast<const app::Diverged*>(&error) != nullptr) return app::kDivergedStatus;
    return dynamic_cast<const UsageError*>(&error) != nullptr ? 2 : 1;
  } catch (const std::filesystem::filesystem_error& error) {
    const std::string reason = fmt::format("{}: {}", error.path1().string(), error.code().message());
    app::print_error(reason, "check that the directory exists and may be written");
    app::tell_others(argc, argv, globals, reason);
  } catch (const std::exception& error) {
    const bool memory = is_out_of_memory(error);
    const std::string reason = memory ? "out of memory" : app::first_line(error.what());
    app::print_error(reason, memory ? "use a smaller model or smaller batches" : "");
    app::tell_others(argc, argv, globals, reason);
  }
  return 1;
}
