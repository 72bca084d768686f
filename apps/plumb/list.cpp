// plumb list: lists the variants for configurations, with equations and papers; also prints docs/variants.md, and
// docs/configuration.md with new tables.
#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "declared_manual.h"
#include "plumb/base/error.h"
#include "plumb/base/glossary.h"
#include "plumb/base/input.h"
#include "plumb/base/text.h"
#include "plumb/data/download.h"
#include "plumb/study/config.h"
#include "sections.h"
#include "shared_files.h"
#include "variants.h"
#include "verb.h"

namespace plumb::app {
namespace {

Json document(const std::vector<VariantKind>& kinds) {
  Json json = make_document("list", 1);
  json["kinds"] = Json::array();
  for (const VariantKind& kind : kinds) {
    Json list = Json::array();
    for (const Variant& v : kind.variants) {
      list.push_back({{"name", v.name}, {"equation", v.equation}, {"source", v.source}});
      for (const KeyList::Key& option : v.options) {
        list.back()["options"].push_back(
            {{"key", option.name}, {"default", option.value}, {"meaning", option.meaning}});
      }
    }
    json["kinds"].push_back({{"kind", kind.id}, {"key", kind.about.key}, {"variants", list}});
  }
  return json;
}

/// What a study reads: "multi30k, which `plumb data get multi30k --out multi30k` downloads", files of the user's, or
/// text that Plumb makes.
std::string data_of(const Config& study) {
  StudyData data;
  study.read("data", data);
  if (data.train.empty()) return "text that Plumb makes";
  const std::string folder = std::filesystem::path(data.train.front()).parent_path().string();
  for (const PublicDataSet& set : public_data_sets()) {
    if (set.name == folder) return fmt::format("{0}, which `plumb data get {0} --out {0}` downloads", folder);
  }
  const std::string form =
      data.train.size() > 1 ? "text of yours, line by line the same in both languages" : "plain text of yours";
  return fmt::format("{}, {}: --set '{}'", join(data.train), form,
                     data.train.size() > 1 ? R"(data.train=["FILE","FILE"])" : R"(data.train=["FILE"])");
}

/// The studies that come with Plumb, with what they ask and read.
void list_studies(const Globals& globals) {
  Json json = make_document("list", 1);
  json["studies"] = Json::array();
  std::string text;
  for (const auto& [name, file] : studies_of_plumb()) {
    const Config study = Config::from_file(file);
    StudyHead head;
    study.read("study", head);
    const std::string data = data_of(study);
    text += fmt::format("{:<19} {}\n{:<19} {}\n{:<19} Reads {}\n", name, head.title, "", head.subtitle, "", data);
    json["studies"].push_back({{"name", name}, {"title", head.title}, {"subtitle", head.subtitle}, {"data", data}});
  }
  emit(globals, json, text + "\nplumb study NAME --out DIR runs one, and says first how long it will take.\n");
}

/// The kind of this name, "alarm" or "alarms", or else the variants that papers or configurations call so, by kind.
std::vector<VariantKind> kinds_called(const std::string& word) {
  std::vector<VariantKind> kinds = variant_kinds();
  std::vector<std::string> ids = {"studies"}, known = ids;
  for (VariantKind& kind : kinds) {
    if (word == kind.id || word == kind.id + "s") return {kind};
    ids.push_back(kind.id);
    known.push_back(kind.id);
    for (const Variant& variant : kind.variants) known.push_back(variant.name);
    std::erase_if(kind.variants, [&](const Variant& variant) { return !is_written(variant.name, word); });
  }
  std::erase_if(kinds, [](const VariantKind& kind) { return kind.variants.empty(); });
  if (!kinds.empty()) return kinds;
  throw UsageError(fmt::format("unknown kind or variant '{}'", word), did_you_mean(word, known, "kinds: " + join(ids)));
}

struct ListArguments {
  std::string kind;  // or a variant; empty: all
  bool markdown = false;
  std::string page;
};

void list(const ListArguments& arguments, const Globals& globals) {
  if (arguments.markdown) {
    std::cout << variants_page();
    return;
  }
  if (!arguments.page.empty()) {
    std::cout << configuration_page(read_file(arguments.page));
    return;
  }
  if (arguments.kind == "studies") return list_studies(globals);
  const std::vector<VariantKind> kinds = arguments.kind.empty() ? variant_kinds() : kinds_called(arguments.kind);
  std::vector<std::string> texts;
  for (const VariantKind& kind : kinds) texts.push_back(text_of(listed(kind)));
  emit(globals, document(kinds), join(texts, "\n"));
}

void add_list(CLI::App& app, Globals& globals) {
  auto arguments = std::make_shared<ListArguments>();
  CLI::App* verb = add_verb(app, globals, "list", "List the available variants with their equations and papers",
                            "plumb list residual", [arguments, &globals] { list(*arguments, globals); });
  add_json_option(*verb, globals);
  std::vector<std::string> ids;
  for (const VariantKind& kind : variant_kinds()) ids.push_back(kind.id);
  ids.emplace_back("studies");
  suggest(verb->add_option("KIND", arguments->kind,
                           "Kind of variant: residual, norm, position, … (default: all); or one variant, such as "
                           "RMSNorm; or studies, those that come with Plumb"),
          ids);
  CLI::Option* markdown = verb->add_flag("--markdown", arguments->markdown, "Print docs/variants.md");
  verb->add_option("--tables", arguments->page, "Print this page, docs/configuration.md, with its tables written anew")
      ->type_name("FILE")
      ->excludes(markdown);
}

const bool kListRegistered = register_verb({Heading::tools, 10, add_list});

}  // namespace
}  // namespace plumb::app
