// plumb translate: translates standard input to standard output, line by line and in order.
#include "plumb/decode/translate.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "checks.h"
#include "console.h"
#include "plumb/base/input.h"
#include "plumb/base/progress.h"
#include "plumb/base/text.h"
#include "plumb/base/timing.h"
#include "plumb/interop/import.h"
#include "plumb/interop/opened_model.h"
#include "verb.h"

namespace plumb::app {
namespace fs = std::filesystem;
namespace {

struct TranslateArguments {
  std::string model;  // a run directory, a checkpoint in one, or a Hugging Face folder
  std::string data;
  std::string text = "-";
  DecodeOptions decode;
};

/// The tokenizers of the data, or those of an imported model's run.
TranslationTokenizers tokenizers_of(const fs::path& run, const std::string& data) {
  if (data.empty()) return translation_tokenizers(run);
  const DataDirectory directory = DataDirectory::open(data);
  return {directory.source_tokenizer(), directory.target_tokenizer()};
}

void translate_input(TranslateArguments arguments, const Globals& globals) {
  validate(arguments.decode);
  const auto [place, config, model] = open_model(arguments.model);
  Translates& translator = translator_of(*model);
  const std::string data = arguments.data.empty() ? config.data : arguments.data;
  const TranslationTokenizers tokenizers = tokenizers_of(place.run, data);
  arguments.decode.imported = data.empty();
  const std::vector<std::string> lines = read_texts(arguments.text);

  const Stopwatch watch;
  int64_t tokens = 0;
  std::vector<std::string> translations;
  {
    Progress progress("translating", static_cast<int64_t>(lines.size()));
    translations = translate(translator, tokenizers.source, tokenizers.target, lines, arguments.decode,
                             [&](int64_t sentences, int64_t so_far) {
                               tokens = so_far;
                               progress.update(sentences);
                             });
  }
  const double seconds = watch.seconds();
  Json json = make_document("translate", 1);
  json["run"] = place.run.string();
  json["checkpoint"] = place.checkpoint.string();
  json["translations"] = translations;
  emit(globals, json, translations.empty() ? "" : join(translations, "\n") + '\n');
  if (verbosity() == Verbosity::verbose && !lines.empty()) {
    say(fmt::format("{} sentences, {} tokens in {}: {:.1f} sentences/s, {:.0f} tokens/s",
                    with_thousands(static_cast<int64_t>(lines.size())), with_thousands(tokens), duration(seconds),
                    static_cast<double>(lines.size()) / seconds, static_cast<double>(tokens) / seconds));
  }
}

void add_translate(CLI::App& app, Globals& globals) {
  auto arguments = std::make_shared<TranslateArguments>();
  CLI::App* verb =
      add_verb(app, globals, "translate", "Translate standard input, one sentence per line, with a trained model",
               "plumb translate runs/multi30k --beam 5 < test.de > test.en",
               [arguments, &globals] { translate_input(*arguments, globals); });
  add_json_option(*verb, globals);
  verb->add_option("MODEL", arguments->model, kModelHelp)->type_name("RUN_OR_FOLDER")->required();
  verb->add_option("--text", arguments->text, kTextHelp)->type_name("FILE");
  verb->add_option("--data", arguments->data,
                   "Data directory with the tokenizers (default: the run's, or the tokenizers of an imported model)")
      ->type_name("DIR");
  verb->add_option("--beam", arguments->decode.beam, "Beam width; 1: greedy")->check(between(1, kLargestBeam));
  verb->add_option("--length-penalty", arguments->decode.length_penalty,
                   "Divide scores by length to this power; larger values favor longer output")
      ->check(not_negative());
  verb->add_option("--precision", arguments->decode.precision, "Precision of matrix products")
      ->check(CLI::IsMember({"float32", "bf16", "int8"}));
  verb->add_option("--batch-tokens", arguments->decode.batch_tokens, "Source tokens per batch, times beam width")
      ->check(between(1, 1e9));
}

const bool kTranslateRegistered = register_verb({Heading::models, 70, add_translate});

}  // namespace
}  // namespace plumb::app
