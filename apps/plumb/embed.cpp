// plumb embed: computes a vector for every line of text.
#include "plumb/base/input.h"
#include "plumb/interop/embedder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "checks.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/progress.h"
#include "plumb/base/text.h"
#include "plumb/io/npy.h"
#include "verb.h"

namespace plumb::app {
namespace {

struct EmbedArguments {
  std::string model;  // a run directory, a checkpoint in one, or a Hugging Face folder
  std::string data;
  std::string text = "-";
  std::string out;
  AskedEmbedding asked;
  EmbedOptions options;
};

enum class VectorFormat { npy, json_lines };

VectorFormat format_of(const std::string& out) {
  const std::string extension = std::filesystem::path(out).extension().string();
  if (extension == ".npy") return VectorFormat::npy;
  if (out.empty() || extension == ".jsonl") return VectorFormat::json_lines;
  throw UsageError(fmt::format("--out {}: the format is unknown", out),
                   "name it FILE.npy for NumPy, or FILE.jsonl for JSON Lines");
}

/// One line per text: {"text": …, "vector": […]}, with the fewest digits that round-trip in float32.
std::string json_lines(const std::vector<std::string>& texts, const Tensor& vectors) {
  const Tensor values = vectors.to(at::kFloat).contiguous();
  std::string lines;
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::span<const float> row(values[static_cast<int64_t>(i)].data_ptr<float>(),
                                     static_cast<size_t>(values.size(1)));
    lines += fmt::format("{{\"text\":{},\"vector\":[{}]}}\n", Json(texts[i]).dump(), fmt::join(row, ","));
  }
  return lines;
}

Json document(const RunAndCheckpoint& place, const EmbedArguments& arguments, const EmbedOptions& options,
              const TextVectors& embedded) {
  Json json = make_document("embed", 1);
  json["run"] = place.run.string();
  json["checkpoint"] = place.checkpoint.string();
  json["pooling"] = options.pooling;
  json["normalize"] = options.normalize;
  json["max_tokens"] = options.max_tokens;
  json["precision"] = options.precision;
  json["texts"] = embedded.vectors.size(0);
  json["features"] = embedded.vectors.size(1);
  json["truncated"] = embedded.truncated;
  if (!arguments.out.empty()) {
    json["out"] = arguments.out;
    return json;
  }
  json["vectors"] = Json::array();
  const Tensor values = embedded.vectors.to(at::kDouble).contiguous();
  for (int64_t i = 0; i < values.size(0); ++i) {
    const double* row = values[i].data_ptr<double>();
    json["vectors"].push_back(std::vector<double>(row, row + values.size(1)));
  }
  return json;
}

/// Writes the requested file. Returns the text to print: a summary of the file, or the vectors themselves.
std::string write_vectors(const std::string& out, const std::vector<std::string>& texts, const EmbedOptions& options,
                          const Tensor& vectors) {
  if (out.empty()) return json_lines(texts, vectors);
  if (format_of(out) == VectorFormat::npy) {
    save_npy(out, vectors);
  } else {
    write_output_file(out, json_lines(texts, vectors));
  }
  return fmt::format("{}: {} vectors of {} features: {} pooling{}\n", out, with_thousands(std::ssize(texts)),
                     vectors.size(1), options.pooling, options.normalize ? ", normalized" : "");
}

void embed_input(const EmbedArguments& arguments, const Globals& globals) {
  (void)format_of(arguments.out);
  if (!arguments.out.empty()) check_output_file(arguments.out);
  const Embedder embedder = make_embedder(std::make_shared<OpenedModel>(open_model(arguments.model)), arguments.data,
                                          arguments.asked, arguments.options);
  const EmbedOptions& options = embedder.options;
  const std::vector<std::string> texts = read_texts(arguments.text);
  if (texts.empty())
    throw Error((arguments.text == "-" ? "standard input" : arguments.text) + " contains no text",
                "write one text per line");
  TextVectors embedded;
  {
    Progress progress("embedding", std::ssize(texts));
    embedded = embed_texts(embedder, texts, [&progress](int64_t done) { progress.update(done); });
  }
  if (embedded.truncated > 0) {
    say(fmt::format("{} of {} texts were truncated to {} tokens", with_thousands(embedded.truncated),
                    with_thousands(std::ssize(texts)), options.max_tokens));
  }
  const bool printed = arguments.out.empty() && !globals.json.empty();  // the document contains them
  const std::string text = printed ? "" : write_vectors(arguments.out, texts, options, embedded.vectors);
  emit(globals, document(embedder.opened->place, arguments, options, embedded), text);
}

void add_embed(CLI::App& app, Globals& globals) {
  auto arguments = std::make_shared<EmbedArguments>();
  CLI::App* verb =
      add_verb(app, globals, "embed", "Write a vector for each line of text, from a sentence encoder or another model",
               "plumb embed runs/minilm --text sentences.txt --out vectors.npy",
               [arguments, &globals] { embed_input(*arguments, globals); });
  add_json_option(*verb, globals);
  verb->add_option("MODEL", arguments->model, kModelHelp)->type_name("RUN_OR_FOLDER")->required();
  verb->add_option("--text", arguments->text, kTextHelp)->type_name("FILE");
  verb->add_option(
          "--out", arguments->out,
          "FILE.npy: a float32 matrix for NumPy; FILE.jsonl: JSON Lines (default: JSON Lines to standard output)")
      ->type_name("FILE");
  verb->add_option("--pooling", arguments->asked.pooling,
                   "How token states are pooled (default: as in the sentence encoder's files, or as the model "
                   "was trained; else last for language models, mean for others)")
      ->check(CLI::IsMember({"first", "last", "max", "mean"}));
  CLI::Option* normalize = verb->add_flag_callback(
      "--normalize", [arguments] { arguments->asked.normalize = true; },
      "Divide each vector by its length (default: as the sentence encoder's files say, else no)");
  verb->add_flag_callback(
          "--no-normalize", [arguments] { arguments->asked.normalize = false; }, "Leave vectors as they are")
      ->excludes(normalize);
  verb->add_option(
          "--max-tokens", arguments->asked.max_tokens,
          "Truncate texts to N tokens, including special tokens (default: as in the sentence encoder's files, else "
          "the model's number of positions, else 512; a recurrent model reads whole texts)")
      ->check(positive());
  verb->add_option("--data", arguments->data,
                   "Data directory with the tokenizer (default: the run's, or the tokenizer of an imported model)")
      ->type_name("DIR");
  verb->add_option("--precision", arguments->options.precision, "Precision of matrix products")
      ->check(CLI::IsMember({"float32", "bf16", "int8"}));
  verb->add_option("--batch-tokens", arguments->options.batch_tokens, "Tokens per batch")->check(positive());
}

const bool kEmbedRegistered = register_verb({Heading::models, 100, add_embed});

}  // namespace
}  // namespace plumb::app
