// plumb import: converts a Hugging Face model into a directory that is used like a run.
#include "plumb/interop/import.h"

#include <fmt/format.h>

#include <memory>
#include <string>

#include "plumb/base/json.h"
#include "plumb/base/terminal.h"
#include "plumb/base/text.h"
#include "verb.h"

namespace plumb::app {
namespace {

struct ImportArguments {
  std::string folder, out;
};

std::string text_of(const ImportedModel& imported, const std::string& out) {
  std::string text =
      fmt::format("{}: {}, {} parameters, {}\n", out, imported.model, with_thousands(imported.parameters),
                  imported.tokenizer ? "with its tokenizer" : "without a tokenizer");
  if (!imported.left_out.empty()) text += fmt::format("  left out: {}\n", printable(join(imported.left_out)));
  if (const auto& encoding = imported.sentence_encoding) {
    text += fmt::format("  sentence vectors: {} pooling{}{}\n", encoding->pooling,
                        encoding->normalize ? ", normalized" : "",
                        encoding->max_tokens > 0 ? fmt::format(", of at most {} tokens", encoding->max_tokens) : "");
  }
  return text;
}

void import_folder(const ImportArguments& arguments, const Globals& globals) {
  const ImportedModel imported = import_model(arguments.folder, arguments.out);
  Json json = make_document("import", 1);
  json["folder"] = arguments.folder;
  json["out"] = arguments.out;
  json["model_type"] = imported.family;
  json["architecture"] = imported.model;
  json["parameters"] = imported.parameters;
  json["tokenizer"] = imported.tokenizer;
  json["left_out"] = imported.left_out;
  if (imported.sentence_encoding) json["sentence_vectors"] = to_json(*imported.sentence_encoding);
  emit(globals, json, text_of(imported, arguments.out));
}

void add_import(CLI::App& app, Globals& globals) {
  const auto arguments = std::make_shared<ImportArguments>();
  CLI::App* verb =
      add_verb(app, globals, "import", "Read a Hugging Face model into a directory that is used like a run",
               "plumb import models/pythia-70m --out runs/pythia-70m",
               [arguments, &globals] { import_folder(*arguments, globals); });
  add_json_option(*verb, globals);
  verb->add_option("FOLDER", arguments->folder, "Folder with config.json, safetensors and the tokenizer's files")
      ->type_name("DIR")
      ->required();
  verb->add_option("--out", arguments->out, "Directory to write, which can be used like a run")
      ->type_name("DIR")
      ->required();
}

const bool kImportRegistered = register_verb({Heading::models, 50, add_import});

}  // namespace
}  // namespace plumb::app
