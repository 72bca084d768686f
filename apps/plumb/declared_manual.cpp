#include "declared_manual.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "plumb/base/text.h"
#include "verb.h"

namespace plumb::app {
namespace {

std::map<const CLI::Option*, std::vector<std::string>>& suggestions() {
  static std::map<const CLI::Option*, std::vector<std::string>> all;
  return all;
}

std::map<const CLI::App*, std::vector<ManualStatus>>& exit_statuses() {
  static std::map<const CLI::App*, std::vector<ManualStatus>> all;
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

/// What completes a value with this name: "FILE" or "DIR", say.
std::string value_kind(const std::string& value) {
  if (value == "KEY=VALUE") return "key";
  if (value.starts_with("DIR") || value.starts_with("RUN")) return "directory";
  if (value.starts_with("FILE") || value == "PREFIX" || value == "TEST" || value == "CORPUS") return "file";
  return "word";
}

/// The description with notes from the declaration: "Beam width (default: 5)".
std::string described(const CLI::Option& option, const std::string& description) {
  std::vector<std::string> notes;
  if (option.get_required()) notes.emplace_back("required");
  std::string value = option.get_default_str();
  if (value.starts_with('[')) value = value.substr(1, value.size() - 2);  // as CLI11 writes a list
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

}  // namespace

ManualOption manual_of(const CLI::Option& option) {
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
  manual.kind = value_kind(manual.argument ? value_name(type) : manual.value);
  manual.required = option.get_required();
  manual.several = option.get_expected_max() > 1;
  manual.description = described(option, option.get_description());
  manual.group = option.get_group();
  return manual;
}

namespace {

/// Arguments first, then the verb's own options in order of declaration, then the common options.
std::vector<ManualOption> manual_options(const CLI::App& app) {
  std::vector<ManualOption> options;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty()) options.push_back(manual_of(*option));
  }
  const auto rank = [](const ManualOption& option) {
    return option.argument ? 0 : option.group == kCommonOptions ? 2 : 1;
  };
  std::stable_sort(options.begin(), options.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  return options;
}

ManualVerb manual_below(const CLI::App& app, const std::vector<std::string>& path) {
  ManualVerb verb;
  verb.path = path;
  verb.group = path.size() == 1 ? app.get_group() : "Commands";
  verb.summary = app.get_description();
  verb.example = app.get_footer();
  verb.options = manual_options(app);
  if (path.empty())
    verb.statuses = {{0, "success"},
                     {1, "an error"},
                     {2, "the command line is wrong"},
                     {129, "SIGHUP interrupted it"},
                     {130, "SIGINT interrupted it"},
                     {143, "SIGTERM interrupted it; after each of these, training has saved its state"}};
  if (const auto own = exit_statuses().find(&app); own != exit_statuses().end()) verb.statuses = own->second;
  for (const CLI::App* inner : app.get_subcommands([](const CLI::App*) { return true; })) {
    std::vector<std::string> inner_path = path;
    inner_path.push_back(inner->get_name());
    verb.verbs.push_back(manual_below(*inner, inner_path));
  }
  return verb;
}

class Help final : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const override {
    std::vector<std::string> path;
    for (const CLI::App* at = app; at->get_parent() != nullptr; at = at->get_parent()) path.push_back(at->get_name());
    std::reverse(path.begin(), path.end());
    return help_text(manual_below(*app, path));
  }
};

}  // namespace

ManualVerb manual_of(const CLI::App& app) { return manual_below(app, {}); }

CLI::Option* suggest(CLI::Option* option, std::vector<std::string> values) {
  suggestions()[option] = std::move(values);
  return option;
}

void add_exit_status(const CLI::App& verb, int status, const std::string& meaning) {
  exit_statuses()[&verb].push_back({status, meaning});
}

void set_help(CLI::App& app) { app.formatter(std::make_shared<Help>()); }

}  // namespace plumb::app
