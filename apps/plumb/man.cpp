// plumb man: the manual pages plumb(1) and plumb-COMMAND(1), in roff: what `--help` prints.
#include <fmt/format.h>

#include <filesystem>
#include <iostream>

#include "computing.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/json_fields.h"
#include "plumb/base/text.h"
#include "verb.h"

namespace plumb::app {
namespace {

/// Escapes text for roff: quotes and dashes that can be copied into a shell; no beginning that looks like a request.
std::string escaped(std::string text) {
  for (const auto& [from, to] : {std::pair{"\\", "\\(rs"}, {"-", "\\-"}, {"'", "\\(aq"}, {"`", "\\(ga"}})
    replace_all(text, from, to);
  return text.starts_with('.') ? "\\&" + text : text;
}

std::string page_name(const ManualVerb& verb) { return verb.path.empty() ? "plumb" : "plumb-" + join(verb.path, "-"); }

std::string page(const ManualVerb& verb, const ManualVerb& program) {
  const std::string own = page_name(verb);
  std::string text =
      fmt::format(".\\\" -*- coding: utf-8 -*-\n.TH {0} 1 \"\" \"Plumb {1}\" \"Plumb Manual\"\n.SH NAME\n{0} \\- {2}\n",
                  escaped(own), PLUMB_VERSION, escaped(verb.summary));
  text +=
      fmt::format(".SH SYNOPSIS\n\\fB{}\\fR\n.SH DESCRIPTION\n{}\n", escaped(verb.synopsis()), escaped(verb.summary));
  std::string heading;
  for (const ManualEntry& entry : entries_of(verb)) {
    if (entry.heading != heading) text += fmt::format(".SH {}\n", escaped(entry.heading));
    heading = entry.heading;
    text += fmt::format(".TP\n\\fB{}\\fR\n{}\n", escaped(entry.term), escaped(entry.text));
  }
  if (!verb.example.empty()) text += fmt::format(".SH EXAMPLE\n.nf\n{}\n.fi\n", escaped(verb.example));
  std::vector<std::string> others;
  std::string above = "plumb";
  for (const std::string& word : verb.path) {
    others.push_back(above);
    above += '-' + word;
  }
  for (const ManualVerb& inner : verb.verbs) others.push_back(page_name(inner));
  for (std::string& other : others) other = fmt::format("\\fB{}\\fR(1)", escaped(other));
  ManualVerb all = verb;
  if (!verb.path.empty()) all.statuses.insert(all.statuses.begin(), program.statuses.begin(), program.statuses.end());
  return text + ".SH EXIT STATUS\n" + escaped(statuses_text(all)) + ".\n.SH SEE ALSO\n" + join(others, ",\n") + '\n';
}

struct ManArguments {
  std::vector<std::string> verb;
  std::string out;
};

/// All of the manual, and the keys of configurations.
Json document(Manual manual) {
  Json json = make_document("manual", 1);
  JsonWriter writer(json);
  describe(writer, manual);
  return json;
}

void write_pages(const std::filesystem::path& folder, const ManualVerb& program) {
  std::filesystem::create_directories(folder);
  for_each_verb(program, [&](const ManualVerb& verb) {
    write_file_atomic(folder / (page_name(verb) + ".1"), page(verb, program));
  });
}

void print_page(const std::vector<std::string>& path, const ManualVerb& program) {
  bool known = false;
  for_each_verb(program, [&](const ManualVerb& verb) {
    if (verb.path != path) return;
    std::cout << page(verb, program);
    known = true;
  });
  if (!known) throw UsageError(fmt::format("unknown command '{}'", join(path, " ")), "see plumb --help");
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
                                print_page(arguments->verb, manual_of(app));
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
  verb->add_option("--json", globals.json,
                   "Write all commands, their exit statuses and configuration keys as JSON to this file")
      ->type_name("FILE");
}

const bool kManRegistered = register_verb({Heading::tools, 60, add_man});

}  // namespace
}  // namespace plumb::app
