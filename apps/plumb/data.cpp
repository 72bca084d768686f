// plumb data: builds data directories from parallel text, text in one language, labeled text, the synthetic corpus, and
// public data sets.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "checks.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/terminal.h"
#include "plumb/base/text.h"
#include "plumb/data/download.h"
#include "plumb/data/prepare.h"
#include "plumb/data/prepare_labels.h"
#include "plumb/data/prepare_synthetic.h"
#include "plumb/data/prepare_text.h"
#include "verb.h"

namespace plumb::app {
namespace {

CorpusFiles corpus_files(const std::vector<std::string>& paths) {
  return {paths.at(0), paths.size() > 1 ? paths[1] : std::string()};
}

/// "NAME=VALUE", or just a value, which gets the name "test".
std::pair<std::string, std::string> named(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) return {"test", text};
  return {text.substr(0, equals), text.substr(equals + 1)};
}

/// Parses "SOURCE,TARGET" or "FILE.tsv". `given` is the whole argument, for messages.
CorpusFiles pair_files(const std::string& value, const std::string& given) {
  const std::vector<std::string> paths = split(value, ',');
  if (paths.size() > 2 || paths.front().empty() || paths.back().empty()) {
    throw UsageError(fmt::format("{}: expected NAME=SOURCE,TARGET or NAME=FILE.tsv", given));
  }
  return corpus_files(paths);
}

/// "NAME=SOURCE,TARGET", "NAME=FILE.tsv", or either without a name.
std::pair<std::string, CorpusFiles> test_set(const std::string& text) {
  const auto [name, value] = named(text);
  return {name, pair_files(value, "--test " + text)};
}

/// "NAME=VALUE"; throws UsageError without a name.
std::pair<std::string, std::string> named_corpus(const std::string& text) {
  if (text.find('=') != std::string::npos) return named(text);
  throw UsageError(fmt::format("--corpus {}: the corpus has no name", text), "give it one: --corpus NAME=FILE");
}

/// Throws UsageError unless training text is given.
void require_training_text(bool given) {
  if (!given) throw UsageError("no training text given", "give --train, or --corpus for each of several corpora");
}

/// One line per corpus if the split lists corpora; `examples`: the unit, such as "pairs".
std::string corpus_summary(const Json& split, const char* examples) {
  std::string text;
  if (!split.contains("corpora")) return text;
  for (const Json& corpus : split["corpora"])
    text += fmt::format("    {:<10} {:>9} {}\n", printable(corpus["name"].get<std::string>()),
                        with_thousands(corpus["pairs"]), examples);
  return text;
}

/// Tokens of a split that stand for a text that the vocabulary lacks, of which no loss and no score knows more; empty
/// without any.
std::string unknown_summary(const Json& split) {
  int64_t unknown = 0;
  for (const char* side : {"source", "target"})
    if (split.contains(side)) unknown += split[side].value("unknown", int64_t{0});
  return unknown == 0 ? ""
                      : fmt::format("    {} tokens are unknown: their text is lost to losses and scores\n",
                                    with_thousands(unknown));
}

/// A summary of a new data directory for people; data.json has the details.
std::string pairs_summary(const Json& info, const std::string& out) {
  const Json& tokenizer = info["tokenizer"];
  std::string text = fmt::format("{}: {} vocabulary of ", printable(out), tokenizer["kind"].get<std::string>());
  text += tokenizer["joint"] ? fmt::format("{} pieces for both sides\n", with_thousands(tokenizer["source_vocabulary"]))
                             : fmt::format("{} pieces for the source, {} for the target\n",
                                           with_thousands(tokenizer["source_vocabulary"]),
                                           with_thousands(tokenizer["target_vocabulary"]));
  for (const auto& [name, split] : info["splits"].items()) {
    text += fmt::format("  {:<12} {:>9} pairs {:>11} source tokens {:>11} target tokens\n", printable(name),
                        with_thousands(split["pairs"]), with_thousands(split["source"]["tokens"]),
                        with_thousands(split["target"]["tokens"]));
    text += corpus_summary(split, "pairs") + unknown_summary(split);
  }
  return text;
}

std::string text_summary(const Json& info, const std::string& out) {
  const Json& tokenizer = info["tokenizer"];
  std::string text = fmt::format("{}: {} vocabulary of {} pieces\n", printable(out),
                                 tokenizer["kind"].get<std::string>(), with_thousands(tokenizer["target_vocabulary"]));
  for (const auto& [name, split] : info["splits"].items()) {
    text += fmt::format("  {:<12} {:>9} sequences {:>11} tokens {:>11} words\n", printable(name),
                        with_thousands(split["pairs"]), with_thousands(split["target"]["tokens"]),
                        with_thousands(split["words"]));
    text += corpus_summary(split, "sequences") + unknown_summary(split);
  }
  return text;
}

std::string label_summary(const Json& info, const std::string& out) {
  const Json& tokenizer = info["tokenizer"];
  std::string text =
      fmt::format("{}: {} vocabulary of {} pieces, {} labels\n", printable(out), tokenizer["kind"].get<std::string>(),
                  with_thousands(tokenizer["source_vocabulary"]), info["labels"].size());
  for (const auto& [name, split] : info["splits"].items()) {
    const int64_t tokens = split["source"]["tokens"].get<int64_t>() + split["target"]["tokens"].get<int64_t>();
    text += fmt::format("  {:<12} {:>9} examples {:>11} tokens", printable(name), with_thousands(split["pairs"]),
                        with_thousands(tokens));
    constexpr size_t kShown = 10;
    if (info["labels"].size() <= kShown) {
      const char* separator = "   ";
      for (const auto& [label, count] : split["labels"].items()) {
        text += fmt::format("{}{} {}", separator, printable(label), with_thousands(count));
        separator = ", ";
      }
    }
    text += '\n' + unknown_summary(split);
  }
  return text;
}

/// Adds --corpus, which replaces --train.
void add_corpus_option(CLI::App* verb, CLI::Option* train, std::vector<std::string>& corpora, const char* meaning) {
  repeatable(verb->add_option("--corpus", corpora, meaning))->type_name("CORPUS")->excludes(train);
}

/// Adds --test.
void add_test_option(CLI::App* verb, std::vector<std::string>& tests, const char* meaning) {
  repeatable(verb->add_option("--test", tests, meaning))->type_name("TEST");
}

/// Adds the options for learning a tokenizer and returns them.
std::vector<CLI::Option*> add_tokenizer_options(CLI::App* verb, TokenizerOptions& tokenizer) {
  CLI::Option* vocabulary =
      verb->add_option("--vocabulary", tokenizer.vocabulary, "Vocabulary size, including special tokens");
  CLI::Option* kind = verb->add_option("--tokenizer", tokenizer.kind, "Algorithm that learns the vocabulary")
                          ->check(CLI::IsMember({"bpe", "unigram", "word"}));
  CLI::Option* coverage = verb->add_option("--character-coverage", tokenizer.character_coverage,
                                           "Fraction of the text's characters that the vocabulary covers");
  CLI::Option* sample = verb->add_option("--tokenizer-sample", tokenizer.sample,
                                         "Learn the vocabulary from at most N training examples; 0: from all")
                            ->check(not_negative());
  CLI::Option* mask =
      verb->add_flag("--mask-token", tokenizer.mask, "Give the vocabulary a mask token, for masked language modeling");
  return {vocabulary, kind, coverage, sample, mask};
}

/// The same with --tokenizer-from, which excludes them.
void add_tokenizer_options(CLI::App* verb, TokenizerOptions& tokenizer, std::filesystem::path& from) {
  CLI::Option* option =
      verb->add_option("--tokenizer-from", from,
                       "Use the tokenizer of a data directory, an imported model or a model's folder instead of "
                       "learning one")
          ->type_name("DIR");
  for (CLI::Option* learning : add_tokenizer_options(verb, tokenizer)) option->excludes(learning);
}

/// Where a data directory is written.
struct DataOutput {
  std::string directory;
  bool replace = false;

  /// Throws UsageError if the directory holds data that another command has made, unless they are to be replaced.
  void protect() const {
    const std::filesystem::path file = std::filesystem::path(directory) / "data.json";
    if (replace || directory.empty() || !std::filesystem::exists(file)) return;
    const auto arguments = [](const std::string& command) { return command.substr(command.find(' ') + 1); };
    const std::string made = read_json(file).value("command", "");
    if (arguments(made) != arguments(command_line()))
      throw UsageError(fmt::format("{}: holds the data of another command: {}", directory, made),
                       "give another --out; or --replace, if no run needs them any more");
  }
};

CLI::Option* add_output_options(CLI::App* verb, DataOutput& output) {
  verb->add_flag("--replace", output.replace, "Replace the data of another command in --out");
  return verb->add_option("--out", output.directory, "Data directory to create")->type_name("DIR");
}

void add_joint_option(CLI::App* verb, bool& joint) {
  verb->add_flag("--joint,!--separate", joint, "One vocabulary for both languages (default), or one for each");
}

void add_prepare(CLI::App& data, Globals& globals) {
  struct Arguments {
    PrepareOptions prepare;
    std::vector<std::string> train, corpora, valid, tests;
    DataOutput out;
  };
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* verb =
      add_verb(data, globals, "prepare", "Build a data directory from parallel text",
               "plumb data prepare --train train.de train.en --valid val.de val.en --test 2016=test.de,test.en "
               "--vocabulary 8000 --out data/multi30k",
               [arguments, &globals] {
                 PrepareOptions& prepare = arguments->prepare;
                 require_training_text(!arguments->train.empty() || !arguments->corpora.empty());
                 if (!arguments->train.empty()) prepare.train = corpus_files(arguments->train);
                 for (const std::string& text : arguments->corpora) {
                   const auto [name, value] = named_corpus(text);
                   prepare.corpora.emplace_back(name, pair_files(value, "--corpus " + text));
                 }
                 if (!arguments->valid.empty()) prepare.valid = corpus_files(arguments->valid);
                 for (const std::string& text : arguments->tests) prepare.tests.push_back(test_set(text));
                 prepare.seed = globals.seed;
                 arguments->out.protect();
                 const Json info = prepare_data(prepare, arguments->out.directory);
                 emit(globals, info, pairs_summary(info, arguments->out.directory));
               });
  add_json_option(*verb, globals);
  add_seed_option(*verb, globals);
  CLI::Option* train =
      verb->add_option("--train", arguments->train, "Source and target file, or one TSV file: SOURCE TAB TARGET")
          ->type_name("FILE [FILE]")
          ->expected(1, 2);
  add_corpus_option(verb, train, arguments->corpora,
                    "Instead of --train: one of several corpora, NAME=SOURCE,TARGET or NAME=FILE.tsv; may be repeated");
  verb->add_option("--valid", arguments->valid, "The same for validation (default: held out from the training text)")
      ->type_name("FILE [FILE]")
      ->expected(1, 2);
  add_test_option(verb, arguments->tests, "A test set, NAME=SOURCE,TARGET or NAME=FILE.tsv; may be repeated");
  add_output_options(verb, arguments->out)->required();
  PrepareOptions& prepare = arguments->prepare;
  add_tokenizer_options(verb, prepare.tokenizer);
  add_joint_option(verb, prepare.joint);
  verb->add_option("--length-limit", prepare.length_limit,
                   "Drop training pairs with more tokens than this on either side");
  verb->add_option("--valid-size", prepare.valid_size, "Pairs to hold out without --valid (default: 5%, at most 1000)");
  verb->add_option("--source-language", prepare.source_language, "Source language, recorded in data.json")
      ->type_name("NAME");
  verb->add_option("--target-language", prepare.target_language, "Target language, recorded in data.json")
      ->type_name("NAME");
}

void add_text(CLI::App& data, Globals& globals) {
  struct Arguments {
    TextOptions text;
    std::string valid;
    DataOutput out;
    std::vector<std::string> corpora, tests;
  };
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* verb =
      add_verb(data, globals, "text", "Build a data directory for language models from text in one language",
               "plumb data text --train train.txt --valid valid.txt --block 256 --vocabulary 8000 --out data/wikitext",
               [arguments, &globals] {
                 TextOptions& options = arguments->text;
                 for (const std::string& text : arguments->corpora) options.corpora.emplace_back(named_corpus(text));
                 require_training_text(!options.train.empty() || !options.corpora.empty());
                 if (!arguments->valid.empty()) options.valid = arguments->valid;
                 for (const std::string& test : arguments->tests) options.tests.emplace_back(named(test));
                 arguments->out.protect();
                 const Json info = prepare_text(options, arguments->out.directory);
                 emit(globals, info, text_summary(info, arguments->out.directory));
               });
  add_json_option(*verb, globals);
  TextOptions& options = arguments->text;
  CLI::Option* train = verb->add_option("--train", options.train, "Training text")->type_name("FILE");
  add_corpus_option(verb, train, arguments->corpora,
                    "Instead of --train: one of several corpora, NAME=FILE; may be repeated");
  verb->add_option("--valid", arguments->valid, "Validation text (default: the last lines of the training text)")
      ->type_name("FILE");
  add_test_option(verb, arguments->tests, "A test set, NAME=FILE; may be repeated");
  add_output_options(verb, arguments->out)->required();
  verb->add_option("--block", options.block, "Cut the text into sequences of N tokens; 0: each line is a sequence")
      ->check(not_negative());
  add_tokenizer_options(verb, options.tokenizer, options.tokenizer_from);
  verb->add_option("--length-limit", options.length_limit,
                   "With --block 0: drop training lines with more tokens than this");
  verb->add_option("--valid-size", options.valid_size,
                   "Lines of each text to hold out without --valid (default: 5%, at most 1000)");
}

ColumnSeparator separator_named(const std::string& name) {
  if (name == "comma") return ColumnSeparator::comma;
  return name == "space" ? ColumnSeparator::space : ColumnSeparator::tab;
}

void add_labels(CLI::App& data, Globals& globals) {
  struct Arguments {
    LabelOptions labels;
    std::string valid, separator = "tab", encoding = "utf-8";
    DataOutput out;
    std::vector<std::string> tests;
  };
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* verb =
      add_verb(data, globals, "labels", "Build a data directory for classification from labeled text",
               "plumb data labels --train train.tsv --valid dev.tsv --test test=test.tsv --text 1 --label 2 "
               "--vocabulary 8000 --out data/sst2",
               [arguments, &globals] {
                 LabelOptions& options = arguments->labels;
                 options.format.separator = separator_named(arguments->separator);
                 if (arguments->encoding == "latin-1") options.format.encoding = TextEncoding::latin_1;
                 if (!arguments->valid.empty()) options.valid = arguments->valid;
                 for (const std::string& test : arguments->tests) options.tests.emplace_back(named(test));
                 options.seed = globals.seed;
                 arguments->out.protect();
                 const Json info = prepare_labels(options, arguments->out.directory);
                 emit(globals, info, label_summary(info, arguments->out.directory));
               });
  add_json_option(*verb, globals);
  add_seed_option(*verb, globals);
  LabelOptions& options = arguments->labels;
  LabeledTextFormat& format = options.format;
  verb->add_option("--train", options.train, "Training file, one example per line")->type_name("FILE")->required();
  verb->add_option("--valid", arguments->valid, "Validation file (default: held out from --train)")->type_name("FILE");
  add_test_option(verb, arguments->tests, "A test set, NAME=FILE; may be repeated");
  add_output_options(verb, arguments->out)->required();
  verb->add_option("--label", format.label, "Column of the label: its number from 1 or, with --header, its name")
      ->type_name("COLUMN");
  verb->add_option("--text", format.text, "Column of the sentence, or columns of the two sentences of a pair")
      ->type_name("COLUMN [COLUMN]")
      ->expected(1, 2);
  verb->add_flag("--header", format.header, "The first line of each file names the columns");
  verb->add_option("--separator", arguments->separator,
                   "Column separator: tab; comma, with quoted fields; space, only the first in a line")
      ->check(CLI::IsMember({"tab", "comma", "space"}));
  verb->add_option("--label-end", format.label_end, "Text that ends the label: with ':', NUM:date has the label NUM")
      ->type_name("TEXT");
  verb->add_option("--encoding", arguments->encoding, "Encoding of all files")
      ->check(CLI::IsMember({"utf-8", "latin-1"}));
  add_tokenizer_options(verb, options.tokenizer, options.tokenizer_from);
  verb->add_option("--length-limit", options.length_limit,
                   "Truncate examples with more tokens than this, counting both sentences of a pair");
  verb->add_option("--valid-size", options.valid_size,
                   "Examples to hold out without --valid (default: 5%, at most 1000)");
}

void add_synthesize(CLI::App& data, Globals& globals) {
  struct Arguments {
    SyntheticOptions synthetic;
    DataOutput out;
    std::string raw;
  };
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* verb =
      add_verb(data, globals, "synthesize", "Generate a synthetic German-English corpus",
               "plumb data synthesize --pairs 20000 --out data/synthetic", [arguments, &globals] {
                 SyntheticOptions& synthetic = arguments->synthetic;
                 synthetic.seed = globals.seed;
                 if (arguments->out.directory.empty() && arguments->raw.empty()) {
                   throw UsageError("no output given", "give --out DIR, --raw PREFIX or both");
                 }
                 arguments->out.protect();
                 if (!arguments->out.directory.empty()) check_output_directory(arguments->out.directory, "data");
                 const std::string& raw = arguments->raw;
                 const auto write_raw = [&] {
                   if (!raw.empty()) write_synthetic_text(synthetic.pairs, synthetic.seed, raw);
                 };
                 if (!arguments->out.directory.empty()) {
                   const Json info = prepare_synthetic(synthetic, arguments->out.directory);
                   write_raw();
                   emit(globals, info, pairs_summary(info, arguments->out.directory));
                   return;
                 }
                 write_raw();
                 Json info = make_document("synthetic", 1);
                 info["pairs"] = synthetic.pairs;
                 info["seed"] = synthetic.seed;
                 info["files"] = {raw + ".de", raw + ".en"};
                 emit(globals, info,
                      fmt::format("{0}.de, {0}.en: {1} pairs\n", printable(raw), with_thousands(synthetic.pairs)));
               });
  add_json_option(*verb, globals);
  add_seed_option(*verb, globals);
  add_output_options(verb, arguments->out);
  verb->add_option("--raw", arguments->raw, "Write the text to PREFIX.de and PREFIX.en")->type_name("PREFIX");
  SyntheticOptions& synthetic = arguments->synthetic;
  verb->add_option("--pairs", synthetic.pairs, "Sentence pairs, including validation and test")->check(between(1, 1e8));
  verb->add_option("--valid-size", synthetic.valid, "Validation pairs (default: 1,000, at most an eighth of all)");
  verb->add_option("--test-size", synthetic.test, "Test pairs (default: 1,000, at most an eighth of all)");
  add_tokenizer_options(verb, synthetic.tokenizer);
  add_joint_option(verb, synthetic.joint);
}

void add_get(CLI::App& data, Globals& globals) {
  struct Arguments {
    std::string name, from, out;
  };
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* verb = add_verb(data, globals, "get", "Download a public data set and verify its checksums",
                            "plumb data get multi30k --out raw/multi30k", [arguments, &globals] {
                              const PublicDataSet& set = public_data_set(arguments->name);
                              const Json info = get_data_set(set, arguments->from, arguments->out);
                              emit(globals, info, json_text(info));
                            });
  add_json_option(*verb, globals);
  std::vector<std::string> names;
  for (const PublicDataSet& set : public_data_sets()) names.push_back(set.name);
  verb->add_option("NAME", arguments->name, "Name of the data set: " + join(names))
      ->check(CLI::IsMember(names))
      ->required();
  verb->add_option("--out", arguments->out, "Directory for its files")->type_name("DIR")->required();
  verb->add_option("--from", arguments->from, "Read the files from this directory instead of the network")
      ->type_name("DIR");
}

void add_data(CLI::App& app, Globals& globals) {
  CLI::App* data = app.add_subcommand("data", "Build data directories from text");
  data->require_subcommand(1);
  add_prepare(*data, globals);
  add_text(*data, globals);
  add_labels(*data, globals);
  add_synthesize(*data, globals);
  add_get(*data, globals);
}

const bool kDataRegistered = register_verb({Heading::models, 10, add_data});

}  // namespace
}  // namespace plumb::app
