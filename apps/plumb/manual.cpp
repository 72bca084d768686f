#include "manual.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "plumb/base/text.h"

namespace plumb::app {
namespace {

std::map<const CLI::Option*, std::vector<std::string>>& suggestions() {
  static std::map<const CLI::Option*, std::vector<std::string>> all;
  return all;
}

/// The members of the set that CLI::IsMember describes as "TEXT:{float32,bf16}".
std::vector<std::string> members(const std::string& type_name) {
  const size_t begin = type_name.find(":{");
  if (begin == std::string::npos) return {};
  const size_t end = type_name.find('}', begin);
  return split(type_name.substr(begin + 2, end - begin - 2), ',');
}

/// CLI11's name of a type, without validators' additions, in the manual's terms.
std::string value_name(const std::string& type_name) {
  std::string name = type_name.substr(0, type_name.find(':'));
  if (name == "INT" || name == "UINT") return "N";
  if (name == "FLOAT") return "X";
  return name;
}

ValueKind value_kind(const std::string& value, const std::string& verb) {
  if (value == "KEY=VALUE") return verb == "study" ? ValueKind::study_key : ValueKind::run_key;
  if (value.starts_with("DIR") || value.starts_with("RUN")) return ValueKind::directory;
  if (value.starts_with("FILE") || value == "PREFIX" || value == "TEST" || value == "CORPUS") return ValueKind::file;
  return ValueKind::text;
}

/// The description with notes from the declaration: "Beam width (default: 5)".
std::string described(const CLI::Option& option, const std::string& description) {
  std::vector<std::string> notes;
  if (option.get_required()) notes.emplace_back("required");
  const std::string value = option.get_default_str();
  if (!value.empty() && description.find("(default") == std::string::npos) notes.push_back("default: " + value);
  const bool many =
      option.get_expected_max() == 1 && option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
  if (many && !option.get_positional() && description.find("may be repeated") == std::string::npos)
    notes.emplace_back("may be repeated");
  std::vector<std::string> excluded;
  for (const CLI::Option* other : option.get_excludes()) excluded.push_back(other->get_name());
  std::sort(excluded.begin(), excluded.end());
  if (!excluded.empty()) notes.push_back("not with " + join(excluded));
  if (notes.empty()) return description;
  if (description.ends_with(')') && description.find(" (default") != std::string::npos)
    return description.substr(0, description.size() - 1) + "; " + join(notes, "; ") + ')';
  return fmt::format("{} ({})", description, join(notes, "; "));
}

ManualOption manual_option(const CLI::Option& option, const std::string& verb) {
  ManualOption manual;
  const std::string type = option.get_type_name();
  manual.choices = members(type);
  manual.open = manual.choices.empty();
  if (const auto found = suggestions().find(&option); found != suggestions().end()) manual.choices = found->second;
  manual.argument = option.get_positional();
  const bool flag = option.get_items_expected_max() == 0;
  const std::string value = manual.open ? value_name(type) : join(manual.choices, "|");
  if (manual.argument) {
    manual.names = {option.get_name(true)};
  } else {
    for (const std::string& name : option.get_snames()) manual.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) manual.names.push_back("--" + name);
    if (!flag) manual.value = value;
  }
  manual.kind = value_kind(manual.argument ? value_name(type) : manual.value, verb);
  manual.required = option.get_required();
  manual.several = option.get_expected_max() > 1;
  manual.repeated = !manual.argument && !flag && option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
  manual.description = described(option, option.get_description());
  manual.group = option.get_group();
  return manual;
}

/// Arguments first, then the verb's own options in order of declaration, then the common options.
std::vector<ManualOption> manual_options(const CLI::App& app) {
  std::vector<ManualOption> options;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty()) options.push_back(manual_option(*option, app.get_name()));
  }
  const auto rank = [](const ManualOption& option) {
    return option.argument ? 0 : option.group == kCommonOptions ? 2 : 1;
  };
  std::stable_sort(options.begin(), options.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  return options;
}

ManualVerb manual_of(const CLI::App& app, const std::vector<std::string>& path) {
  ManualVerb verb;
  verb.path = path;
  verb.group = path.size() == 1 ? app.get_group() : "Commands";
  verb.summary = app.get_description();
  verb.example = app.get_footer();
  verb.options = manual_options(app);
  for (const CLI::App* inner : app.get_subcommands([](const CLI::App*) { return true; })) {
    std::vector<std::string> inner_path = path;
    inner_path.push_back(inner->get_name());
    verb.verbs.push_back(manual_of(*inner, inner_path));
  }
  return verb;
}

/// "--set KEY=VALUE" or "-q, --quiet"; for an argument, its name.
std::string heading(const ManualOption& option) {
  const std::string names = join(option.names);
  return option.takes_value() ? names + ' ' + option.value : names;
}

/// The number of characters, not bytes.
size_t width(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

/// Ends the help of the program. The lines have at most 100 characters.
constexpr const char* kExitStatuses =
    "\nExit status: 0 on success; 1 after an error; 2 if the command line is wrong; 3 if training\n"
    "diverged; 130 or 143 if SIGINT or SIGTERM interrupted training, which saved its state.\n";

constexpr size_t kWidth = 100;
constexpr size_t kColumn = 28;

/// "  heading   text", with the text in a separate column.
std::string entry(const std::string& heading, const std::string& text) {
  std::string out = "  " + heading;
  size_t column = 2 + width(heading);
  if (column + 2 > kColumn) {
    out += '\n';
    column = 0;
  }
  out.append(kColumn - column, ' ');
  column = kColumn;
  for (const std::string& word : split(text, ' ')) {
    if (column > kColumn && column + 1 + width(word) > kWidth) {
      out += '\n' + std::string(kColumn, ' ');
      column = kColumn;
    }
    if (column > kColumn) {
      out += ' ';
      ++column;
    }
    out += word;
    column += width(word);
  }
  return out + '\n';
}

/// Sections with their headings, in order of first occurrence.
class Sections {
 public:
  void add(const std::string& heading, const std::string& text) {
    const auto found = std::find_if(all_.begin(), all_.end(), [&](const auto& s) { return s.first == heading; });
    if (found == all_.end()) {
      all_.emplace_back(heading, text);
    } else {
      found->second += text;
    }
  }
  [[nodiscard]] std::string text() const {
    std::string out;
    for (const auto& [heading, text] : all_) out += fmt::format("\n{}:\n{}", heading, text);
    return out;
  }

 private:
  std::vector<std::pair<std::string, std::string>> all_;
};

class Help final : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const override {
    std::vector<std::string> path;
    for (const CLI::App* at = app; at->get_parent() != nullptr; at = at->get_parent()) path.push_back(at->get_name());
    std::reverse(path.begin(), path.end());
    return help_text(manual_of(*app, path));
  }
};

}  // namespace

std::string ManualVerb::name() const { return join(path, " "); }

std::string ManualVerb::synopsis() const {
  std::string text = "plumb";
  for (const std::string& word : path) text += ' ' + word;
  if (!verbs.empty()) return text + " COMMAND [OPTION...]";
  for (const ManualOption& option : options) {
    if (!option.argument) continue;
    const std::string name = option.names.front() + (option.several ? "..." : "");
    text += option.required ? ' ' + name : " [" + name + ']';
  }
  for (const ManualOption& option : options) {
    if (!option.argument && option.required) text += ' ' + option.names.back() + ' ' + option.value;
  }
  return text + " [OPTION...]";
}

ManualVerb manual_of(const CLI::App& app) { return manual_of(app, {}); }

std::string help_text(const ManualVerb& verb) {
  Sections sections;
  for (const ManualVerb& inner : verb.verbs) sections.add(inner.group, entry(inner.path.back(), inner.summary));
  for (const ManualOption& option : verb.options) {
    sections.add(option.argument ? "Arguments" : option.group, entry(heading(option), option.description));
  }
  std::string text = fmt::format("{}\n\nUsage: {}\n{}", verb.summary, verb.synopsis(), sections.text());
  if (!verb.example.empty()) text += fmt::format("\nExample:\n  {}\n", verb.example);
  if (!verb.verbs.empty())
    text += fmt::format("\n`plumb{}{} COMMAND --help` shows the options of a command and an example.\n",
                        verb.path.empty() ? "" : " ", verb.name());
  if (verb.path.empty()) text += kExitStatuses;
  return text;
}

CLI::Option* suggest(CLI::Option* option, std::vector<std::string> values) {
  suggestions()[option] = std::move(values);
  return option;
}

void set_help(CLI::App& app) { app.formatter(std::make_shared<Help>()); }

}  // namespace plumb::app
