// plumb generate: continues one or more prompts with a language model.
#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "checks.h"
#include "console.h"
#include "plumb/base/error.h"
#include "plumb/base/input.h"
#include "plumb/base/progress.h"
#include "plumb/base/text.h"
#include "plumb/base/timing.h"
#include "plumb/base/utf8.h"
#include "plumb/data/directory.h"
#include "plumb/decode/generate_text.h"
#include "plumb/interop/import.h"
#include "plumb/interop/opened_model.h"
#include "plumb/task/direction.h"
#include "verb.h"

namespace plumb::app {
namespace {

struct GenerateArguments {
  std::string model;  // a run directory, a checkpoint in one, or a Hugging Face folder
  std::string data;
  std::optional<std::string> prompt;
  std::string prompts;  // a file
  std::vector<std::string> stop;
  bool greedy = false;
  std::optional<double> repetition_penalty;
  GenerateOptions options;
};

/// The prompts from --prompts, --prompt or standard input, or an empty one.
std::vector<std::string> prompts_of(const GenerateArguments& arguments) {
  if (!arguments.prompts.empty()) {
    std::vector<std::string> lines = read_texts(arguments.prompts);
    if (lines.empty())
      throw Error((arguments.prompts == "-" ? "standard input" : arguments.prompts) + " contains no prompt",
                  "write one prompt per line");
    return lines;
  }
  if (arguments.prompt) {
    if (!is_valid_utf8(*arguments.prompt))
      throw Error("--prompt is not valid UTF-8", "convert it, for example with `iconv -f latin1 -t utf8`");
    return {*arguments.prompt};
  }
  if (::isatty(STDIN_FILENO) != 0) return {""};
  return {join(read_standard_input(), "\n")};
}

/// A prompt as printed before its continuation: without the trailing white space that Plumb's tokenizers drop.
std::string_view shown(std::string_view prompt, const GenerateOptions& options) {
  if (options.whole_texts) return prompt;
  const size_t last = prompt.find_last_not_of(" \t\r\n");
  return prompt.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

/// All samples, each below a header line that identifies it.
std::string text_of(const std::vector<std::string>& prompts, const std::vector<GeneratedText>& results,
                    const GenerateOptions& options) {
  const size_t samples = results.size() / prompts.size();
  std::string text;
  for (size_t i = 0; i < results.size(); ++i) {
    std::vector<std::string> which;
    if (prompts.size() > 1) which.push_back(fmt::format("prompt {}", i / samples + 1));
    if (samples > 1) which.push_back(fmt::format("sample {}", i % samples + 1));
    text += fmt::format("{}=== {} ===\n{}{}\n", i > 0 ? "\n" : "", join(which), shown(prompts[i / samples], options),
                        results[i].text);
  }
  return text;
}

Json document(const RunAndCheckpoint& place, const GenerateArguments& arguments,
              const std::vector<std::string>& prompts, const std::vector<GeneratedText>& results) {
  const GenerateOptions& options = arguments.options;
  Json json = make_document("generate", 1);
  json["run"] = place.run.string();
  json["checkpoint"] = place.checkpoint.string();
  json["temperature"] = options.sampling.temperature;
  json["top_k"] = options.sampling.top_k;
  json["top_p"] = options.sampling.top_p;
  json["min_p"] = options.sampling.min_p;
  json["repetition_penalty"] = options.sampling.repetition_penalty;
  json["seed"] = options.sampling.seed;
  json["max_tokens"] = options.max_tokens;
  json["lines"] = options.lines;
  json["stop"] = arguments.stop;
  json["precision"] = options.precision;
  json["samples"] = Json::array();
  for (size_t i = 0; i < results.size(); ++i) {
    const GeneratedText& result = results[i];
    json["samples"].push_back({{"prompt", prompts[i / static_cast<size_t>(options.samples)]},
                               {"text", result.text},
                               {"tokens", result.ids},
                               {"finish", name_of(result.finish)},
                               {"log_probability", result.log_probability}});
  }
  return json;
}

void generate_samples(GenerateArguments arguments, const Globals& globals) {
  GenerateOptions& options = arguments.options;
  if (arguments.greedy) options.sampling.temperature = 0;
  options.sampling.seed = static_cast<int64_t>(globals.seed);
  options.sampling.repetition_penalty = arguments.repetition_penalty.value_or(1);
  validate(options);
  const auto [place, config, model] = open_model(arguments.model);
  if (reads_backward(config.task)) {
    throw Error(fmt::format("{}: a backward language model, which predicts what precedes a text", place.run.string()),
                "`plumb generate` continues a text: give a model with task.language-modeling.direction = \"forward\"");
  }
  Generates& generator = generator_of(*model);
  const std::string data = arguments.data.empty() ? config.data : arguments.data;
  options.whole_texts = data.empty();  // an imported model with its own tokenizer
  if (options.whole_texts) options.ends = ends_of_texts(place.run);
  if (!arguments.repetition_penalty) options.sampling.repetition_penalty = stated_repetition_penalty(place.run);
  const Tokenizer tokenizer =
      data.empty() ? Tokenizer::from_file(place.run) : DataDirectory::open(data).target_tokenizer();
  const std::vector<std::string> prompts = prompts_of(arguments);

  const int64_t samples = std::ssize(prompts) * options.samples;
  const bool streams = samples == 1 && globals.json.empty();
  std::optional<Progress> progress;
  int64_t done = 0;
  GenerateTextHooks hooks;
  bool begun = false;  // the prompt is printed with the first piece of text, so that an error comes before both
  const auto begin = [&] {
    if (!std::exchange(begun, true)) print(shown(prompts.front(), options));
  };
  if (streams) {
    hooks.text = [&](size_t, size_t, std::string_view text) {
      begin();
      print(text);
    };
  } else {
    progress.emplace("generating", samples);
    hooks.end = [&](size_t, size_t) { progress->update(++done); };
  }
  const Stopwatch watch;
  const std::vector<GeneratedText> results =
      generate_text(generator, tokenizer, prompts, options, arguments.stop, hooks);
  const double seconds = watch.seconds();
  progress.reset();
  if (streams) {
    begin();
    print("\n");
  } else {
    emit(globals, document(place, arguments, prompts, results),
         globals.json.empty() ? text_of(prompts, results, options) : "");
  }
  if (verbosity() == Verbosity::verbose) {
    int64_t tokens = 0;
    for (const GeneratedText& result : results) tokens += std::ssize(result.ids);
    say(fmt::format("{} sample{}, {} tokens in {}: {:.0f} tokens/s", with_thousands(samples), samples == 1 ? "" : "s",
                    with_thousands(tokens), duration(seconds), static_cast<double>(tokens) / seconds));
  }
}

void add_generate(CLI::App& app, Globals& globals) {
  auto arguments = std::make_shared<GenerateArguments>();
  CLI::App* verb = add_verb(app, globals, "generate", "Continue a prompt with a trained language model",
                            "plumb generate runs/wikitext --prompt \"The city of\" --temperature 0.8 --top-p 0.95",
                            [arguments, &globals] { generate_samples(*arguments, globals); });
  add_json_option(*verb, globals);
  add_seed_option(*verb, globals);
  verb->add_option("MODEL", arguments->model, kModelHelp)->type_name("RUN_OR_FOLDER")->required();
  verb->add_option("--data", arguments->data,
                   "Data directory with the tokenizer (default: the run's, or the tokenizer of an imported model)")
      ->type_name("DIR");
  CLI::Option* prompt = verb->add_option("--prompt", arguments->prompt,
                                         "Beginning of the text (default: piped standard input, else nothing)")
                            ->type_name("TEXT");
  verb->add_option("--prompts", arguments->prompts,
                   "File with one prompt per line, or FILE.jsonl with one JSON string per line; -: standard input")
      ->type_name("FILE")
      ->excludes(prompt);
  GenerateOptions& options = arguments->options;
  verb->add_option("--max-tokens", options.max_tokens, "Maximum tokens per sample")->check(positive());
  verb->add_option("--lines", options.lines, "End a sample after this many lines; 0: only at --max-tokens")
      ->check(not_negative());
  repeatable(verb->add_option("--stop", arguments->stop, "End a sample before this text; may be repeated"))
      ->type_name("TEXT");
  verb->add_option("--samples", options.samples, "Samples per prompt")->check(positive());
  SamplingOptions& sampling = options.sampling;
  CLI::Option* temperature = verb->add_option("--temperature", sampling.temperature,
                                              "Divide logits by this; below 1 favors probable tokens; 0: greedy");
  verb->add_flag("--greedy", arguments->greedy, "Always take the most probable token (--temperature 0)")
      ->excludes(temperature);
  verb->add_option("--top-k", sampling.top_k, "Sample from the K most probable tokens; 0: from all");
  verb->add_option("--top-p", sampling.top_p, "Sample from the smallest set of tokens with this total probability");
  verb->add_option("--min-p", sampling.min_p,
                   "Sample from tokens with at least this fraction of the largest probability");
  verb->add_option("--repetition-penalty", arguments->repetition_penalty,
                   "Values above 1 make tokens less probable once they have occurred (default: that of an imported "
                   "model's generation_config.json, else 1)");
  verb->add_option("--precision", options.precision, "Precision of matrix products")
      ->check(CLI::IsMember({"float32", "bf16", "int8"}));
  verb->add_option("--batch-rows", options.batch_rows, "Samples to generate together")->check(positive());
}

const bool kGenerateRegistered = register_verb({Heading::models, 80, add_generate});

}  // namespace
}  // namespace plumb::app
