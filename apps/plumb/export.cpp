// plumb export: writes a run as a Hugging Face model.
#include "plumb/interop/export.h"

#include <fmt/format.h>

#include <memory>
#include <string>

#include "plumb/base/json.h"
#include "plumb/base/terminal.h"
#include "plumb/base/text.h"
#include "verb.h"

namespace plumb::app {
namespace {

struct ExportArguments {
  std::string run, folder;
  std::string format = "huggingface";
};

void export_run(const ExportArguments& arguments, const Globals& globals) {
  const ExportedModel exported = export_model(arguments.run, arguments.folder);
  Json json = make_document("export", 1);
  json["run"] = arguments.run;
  json["folder"] = arguments.folder;
  json["format"] = arguments.format;
  json["model_type"] = exported.family;
  json["architecture"] = exported.model;
  json["parameters"] = exported.parameters;
  json["tokenizer"] = exported.tokenizer;
  json["left_out"] = exported.left_out;
  std::string text =
      fmt::format("{}: {}, {} parameters, {}\n", arguments.folder, exported.model, with_thousands(exported.parameters),
                  exported.tokenizer ? "with its tokenizer" : "without a tokenizer");
  if (!exported.left_out.empty())
    text += fmt::format("  left out when it was imported: {}\n", printable(join(exported.left_out)));
  emit(globals, json, text);
}

void add_export(CLI::App& app, Globals& globals) {
  const auto arguments = std::make_shared<ExportArguments>();
  CLI::App* verb = add_verb(app, globals, "export", "Write a run as a Hugging Face model",
                            "plumb export runs/wikitext --format huggingface models/wikitext",
                            [arguments, &globals] { export_run(*arguments, globals); });
  add_json_option(*verb, globals);
  verb->add_option("RUN", arguments->run, "A run directory (its latest checkpoint), or a checkpoint in one")
      ->type_name("RUN_OR_CHECKPOINT")
      ->required();
  verb->add_option("FOLDER", arguments->folder, "Folder to write: config.json, safetensors and the tokenizer's files")
      ->type_name("DIR")
      ->required();
  verb->add_option("--format", arguments->format, "Format of the folder")->check(CLI::IsMember({"huggingface"}));
}

const bool kExportRegistered = register_verb({Heading::models, 60, add_export});

}  // namespace
}  // namespace plumb::app
