// A command of the program ("verb"): each has a file with its options and its action, which registers itself.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "plumb/base/error.h"
#include "plumb/base/json.h"

namespace plumb::app {

/// The help text of an argument that names a model, for open_model().
inline constexpr const char* kModelHelp =
    "A run directory (its latest checkpoint), a checkpoint in one, or a folder of a Hugging Face model";

/// The help text of an option that names texts, for read_texts().
inline constexpr const char* kTextHelp =
    "File with one text per line, or FILE.jsonl with one JSON string per line; -: standard input";

/// Options shared by all verbs.
struct Globals {
  std::string json;     // --json FILE: write the result there; "-": to standard output; empty: print text
  int64_t threads = 0;  // 0: all cores
  std::string device = "cpu";
  uint64_t seed = 1;
  std::vector<std::string> plugins;  // --load, which plumb_main has loaded
  bool only_parses = false;          // verbs do nothing
  bool quiet = false;
  bool verbose = false;
  std::vector<std::string> joint_verbs;  // all processes of a launcher, such as torchrun, run these together
  bool joins = false;                    // has begun to join the other processes of a launcher
};

/// Where `plumb --help` lists a command, or that it is one of `plumb bench`.
enum class Heading { measure, models, tools, benchmarks };

/// What declares a command, and its order below the heading: those with smaller numbers come first.
struct VerbFile {
  Heading heading;
  int order;
  void (*add)(CLI::App& parent, Globals& globals);
  bool joint = false;  // see Globals::joint_verbs
};
/// Called by the file of each command, before the program starts. Returns true.
bool register_verb(const VerbFile& file);

/// Adds the commands below a heading, and the names of joint ones to `globals`.
void add_verbs_of(Heading heading, CLI::App& parent, Globals& globals);

/// Adds the options that every verb has, and an example to its help.
/// `run` is called after parsing; plumb_main() reports the errors that it throws.
CLI::App* add_verb(CLI::App& parent, Globals& globals, const std::string& name, const std::string& description,
                   const std::string& example, std::function<void()> run);

/// Lets an option of several values be given several times, each time with one value: the words after it are arguments.
CLI::Option* repeatable(CLI::Option* option);

/// Adds --json, for a verb with a result.
void add_json_option(CLI::App& verb, Globals& globals);

/// Adds --seed, for a verb that draws random numbers.
void add_seed_option(CLI::App& verb, Globals& globals);

/// Declares, for the manual, a status with which a verb may end besides those of all verbs.
void add_exit_status(const CLI::App& verb, int status, const std::string& meaning);

/// Writes a result as JSON if --json was given, and otherwise `text` to standard output.
void emit(const Globals& globals, const Json& result, const std::string& text);

/// Thrown by a verb that stopped on a signal after saving its work. The exit status is 128 + signal, as in a shell.
struct Interrupted {
  int signal = 0;
};

/// The exit status of a training run that diverged.
constexpr int kDivergedStatus = 3;

/// Thrown with a message and a hint by a verb whose training run diverged.
class Diverged : public Error {
 public:
  using Error::Error;
};

/// Thrown by a process that has nothing to report but its exit status.
struct Ended {
  int status = 0;
};

}  // namespace plumb::app
