// A verb of the command line: one file each, which registers the verb's options and what it does.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "plumb/base/json.h"

namespace plumb::app {

/// Options that every verb takes.
struct Globals {
  std::string json;     // --json FILE: write the result there; "-" or empty: standard output
  int64_t threads = 0;  // 0: all cores
  uint64_t seed = 1;
  bool quiet = false;
  bool verbose = false;
};

/// Adds --json, --threads, --seed, -q and -v to a verb and an example to its help.
/// `run` is called after parsing; whatever it throws, main() reports.
CLI::App* add_verb(CLI::App& parent, Globals& globals, const std::string& name, const std::string& description,
                   const std::string& example, std::function<void()> run);

/// Writes a result to --json FILE where given, else to standard output.
void emit(const Globals& globals, const Json& result);

void add_bench(CLI::App& app, Globals& globals);
void add_data(CLI::App& app, Globals& globals);
void add_probe(CLI::App& app, Globals& globals);
void add_report(CLI::App& app, Globals& globals);
void add_score(CLI::App& app, Globals& globals);
void add_spectrum(CLI::App& app, Globals& globals);
void add_study(CLI::App& app, Globals& globals);
void add_train(CLI::App& app, Globals& globals);
void add_translate(CLI::App& app, Globals& globals);

}  // namespace plumb::app
