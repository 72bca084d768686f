// plumb man: the manual pages plumb(1) and plumb-COMMAND(1), in roff, generated from the command-line definitions.
#include <fmt/format.h>

#include <cctype>
#include <filesystem>
#include <iostream>

#include "declared_manual.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/json_fields.h"
#include "plumb/base/text.h"
#include "plumb/metrics/unicode.h"
#include "verb.h"

namespace plumb::app {
namespace {

/// Escapes text for roff: non-ASCII characters as code points, since not every roff reads UTF-8; dashes that can be
/// copied into a shell; no line that looks like a request.
std::string escaped(const std::string& text) {
  std::string out;
  char32_t before = U'\n';
  for (const char32_t point : to_utf32(text)) {
    const auto c = static_cast<char>(point);
    if (point >= 0x80) {
      out += fmt::format("\\[u{:04X}]", static_cast<uint32_t>(point));
    } else if ((c == '.' || c == '\'') && before == U'\n') {
      out += std::string("\\&") + c;
    } else {
      out += c == '\\' ? "\\(rs" : c == '-' ? "\\-" : c == '\'' ? "\\(aq" : c == '`' ? "\\(ga" : std::string(1, c);
    }
    before = point;
  }
  return out;
}

std::string to_upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string bold(const std::string& text) { return "\\fB" + escaped(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + escaped(text) + "\\fR"; }

std::string page_name(const ManualVerb& verb) { return verb.path.empty() ? "plumb" : "plumb-" + join(verb.path, "-"); }

std::string reference(const std::string& page) { return bold(page) + "(1)"; }

/// "A description, in plain words" as a sentence.
std::string sentence(const std::string& text) { return text.ends_with('.') ? text : text + '.'; }

/// The summary in the style of man's index: no initial capital, no period.
std::string brief(std::string text) {
  if (text.ends_with('.')) text.pop_back();
  if (text.size() > 1 && (std::islower(static_cast<unsigned char>(text[1])) != 0 || text[1] == ' '))
    text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

std::string tagged(const std::string& tag, const std::string& text) {
  return fmt::format(".TP\n{}\n{}\n", tag, escaped(sentence(text)));
}

std::string option_tag(const ManualOption& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.names) names.push_back(option.argument ? italic(name) : bold(name));
  return option.takes_value() ? join(names) + ' ' + italic(option.value) : join(names);
}

std::string options_text(const ManualVerb& verb) {
  std::string text;
  std::string heading;
  for (const ManualOption& option : verb.options) {
    const std::string own = option.argument ? "Arguments" : option.group;
    if (own != heading) text += ".SH " + to_upper(own) + '\n';
    heading = own;
    std::string description = option.description;
    if (option.open && !option.choices.empty()) description += ". Values include: " + join(option.choices);
    text += tagged(option_tag(option), description);
  }
  return text;
}

/// The sections of the program's page that apply to every verb.
constexpr const char* kProgram = R"(.SH CONFIGURATION
Models and runs are configured in TOML, in the sections [model], [train], [task], [watch] and [data]; a study has
further sections.
Every key has a default.
.B \-\-set
.I section.key=value
overrides a key and may be repeated.
An unknown key is an error that names the nearest known one.
.B plumb list
prints the variants to choose from.
.SH OUTPUT
Progress goes to standard error, results go to standard output, or as JSON to the file that
.B \-\-json
names.
)";

/// The environment variables, also listed in docs/command-line.md.
std::string environment_text() {
  struct Variable {
    std::vector<std::string> names;
    std::string effect;
  };
  const std::vector<Variable> variables = {
      {{"PLUMB_KERNELS"}, "With the value off, LibTorch's operations are used instead of Plumb's CPU kernels"},
      {{"PLUMB_PROGRAM"},
       "The plumb executable that is started for worker processes, if the running program is not plumb itself"},
      {{"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"},
       "As set by torchrun: plumb train, finetune, probe and spectrum join the other processes at that address. So do "
       "the variables of Slurm and Open MPI"},
      {{"GLOO_SOCKET_IFNAME"},
       "The network interface by which processes exchange tensors, or several, separated by commas"},
      {{"LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK"}, "Which GPU --device cuda takes"},
      {{"OMP_NUM_THREADS"}, "The number of threads, unless --threads gives one"},
  };
  std::string text = ".SH ENVIRONMENT\n";
  for (const auto& [names, effect] : variables) {
    std::vector<std::string> tags;
    for (const std::string& name : names) tags.push_back(bold(name));
    text += tagged(join(tags), effect);
  }
  return text;
}

constexpr const char* kExitStatus = R"(.SH EXIT STATUS
.TP
.B 0
Success.
.TP
.B 1
An error, with a message and a hint on standard error.
.TP
.B 2
The command line is wrong.
.TP
.B 3
A training run diverged, plumb check says that one would fail, or plumb judge that an arm is not better.
.TP
.B 4
plumb check cannot tell, or plumb judge is undecided.
.TP
.BR 129 ", " 130 ", " 143
SIGHUP, SIGINT or SIGTERM interrupted a training run, which saved its state; the same command resumes it.
)";

std::string page(const ManualVerb& verb, const ManualVerb& program) {
  std::string text = fmt::format(".\\\" Written by `plumb man`.\n.TH {} 1 \"\" \"Plumb {}\" \"Plumb Manual\"\n",
                                 to_upper(page_name(verb)), PLUMB_VERSION);
  text += fmt::format(".SH NAME\n{} \\- {}\n", escaped(page_name(verb)), escaped(brief(verb.summary)));
  text += fmt::format(".SH SYNOPSIS\n{}\n", bold(verb.synopsis()));
  text += fmt::format(".SH DESCRIPTION\n{}\n", escaped(sentence(verb.summary)));
  std::string heading;
  for (const ManualVerb& inner : verb.verbs) {
    if (inner.group != heading) text += fmt::format(".SS {}\n", escaped(inner.group));
    heading = inner.group;
    text += tagged(reference(page_name(inner)), inner.summary);
  }
  text += options_text(verb);
  if (!verb.example.empty()) text += fmt::format(".SH EXAMPLE\n.nf\n{}\n.fi\n", escaped(verb.example));
  if (verb.path.empty()) text += kProgram + environment_text();
  text += kExitStatus;
  text += ".SH SEE ALSO\n";
  std::vector<std::string> others;
  if (verb.path.empty()) {
    for (const ManualVerb& inner : verb.verbs) others.push_back(reference(page_name(inner)));
  } else {
    others.push_back(reference("plumb"));
    if (verb.path.size() > 1) others.push_back(reference("plumb-" + verb.path.front()));
    for (const ManualVerb& inner : verb.verbs) others.push_back(reference(page_name(inner)));
  }
  return text + join(others, ",\n") + '\n';
}

struct ManArguments {
  std::vector<std::string> verb;
  std::string out;
};

/// All of the manual, and the keys of configurations.
Json document(const Manual& manual) {
  Json json = make_document("manual", 1);
  JsonWriter writer(json);
  Manual described = manual;
  describe(writer, described);
  return json;
}

void write_pages(const std::filesystem::path& folder, const ManualVerb& program) {
  std::filesystem::create_directories(folder);
  for_each_verb(program, [&](const ManualVerb& verb) {
    write_file_atomic(folder / (page_name(verb) + ".1"), page(verb, program));
  });
}

void print_page(const std::string& name, const ManualVerb& program) {
  bool found = false;
  for_each_verb(program, [&](const ManualVerb& verb) {
    if (verb.name() != name) return;
    std::cout << page(verb, program);
    found = true;
  });
  if (!found) throw UsageError(fmt::format("unknown command '{}'", name), "see plumb --help");
}

void add_man(CLI::App& app, Globals& globals) {
  auto arguments = std::make_shared<ManArguments>();
  CLI::App* verb = add_verb(app, globals, "man", "Print a manual page, or write all of them",
                            "plumb man train | man -l -", [arguments, &app, &globals] {
                              if (!globals.json.empty()) {
                                emit(globals, document(whole_manual(app)), "");
                              } else if (!arguments->out.empty()) {
                                write_pages(arguments->out, manual_of(app));
                              } else {
                                print_page(join(arguments->verb, " "), manual_of(app));
                              }
                            });
  CLI::Option* name = verb->add_option("COMMAND", arguments->verb,
                                       "The command, as in `plumb man data prepare` (default: plumb itself)")
                          ->expected(0, 2);
  std::vector<std::string> words;
  for_each_verb(manual_of(app), [&](const ManualVerb& known) {
    if (!known.path.empty()) words.push_back(known.path.back());
  });
  suggest(name, words);
  verb->add_option("--out", arguments->out, "Write all pages, as plumb-COMMAND.1, to this directory")->type_name("DIR");
  verb->add_option("--json", globals.json, "Write all commands and configuration keys as JSON to this file")
      ->type_name("FILE");
}

const bool kManRegistered = register_verb({Heading::tools, 60, add_man});

}  // namespace
}  // namespace plumb::app
