#include "plumb/data/prepare_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <set>
#include <utility>

#include "plumb/base/checksum.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/parallel.h"
#include "plumb/base/progress.h"
#include "plumb/base/text.h"
#include "plumb/data/directory.h"

namespace plumb {
namespace fs = std::filesystem;
namespace {

/// Throws Error unless the names consist of safe characters, are distinct, and are not reserved.
void check_names(const std::vector<std::string>& names, const std::set<std::string>& reserved, const char* one,
                 const char* several, const char* option) {
  std::set<std::string> taken;
  for (const std::string& name : names) {
    const bool plain = !name.empty() && name.front() != '.' && std::all_of(name.begin(), name.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
             c == '.';
    });
    if (!plain) {
      throw Error(fmt::format("'{}' is not a valid name for {}", name, one), "use letters, digits, '_', '-' and '.'");
    }
    const std::string hint = fmt::format("choose the names: {} NAME=…", option);
    if (reserved.contains(name)) throw Error(fmt::format("the name '{}' is not free for {}", name, one), hint);
    if (!taken.insert(name).second) throw Error(fmt::format("two {} are named '{}'", several, name), hint);
  }
}

}  // namespace

Tokenizer train_tokenizer(const std::vector<std::string>& lines, const TokenizerOptions& options,
                          const std::string& which) {
  Tokenizer tokenizer = Tokenizer::train(lines, options);
  if (tokenizer.vocabulary() < options.vocabulary) {
    say(fmt::format("{}: the text yields only {} pieces instead of {}", which, with_thousands(tokenizer.vocabulary()),
                    with_thousands(options.vocabulary)));
  }
  return tokenizer;
}

DescribedTokenizer borrow_tokenizer(const fs::path& from) {
  if (!fs::exists(from / "splits")) {
    const Tokenizer tokenizer = Tokenizer::from_file(from);
    if (!tokenizer.is_one_file()) {
      throw Error(fmt::format("{}: a tokenizer of Marian, which consists of several files, cannot be stored with data",
                              from.string()),
                  "name another model's folder, or omit --tokenizer-from to train a tokenizer");
    }
    return {tokenizer,
            {{"kind", "imported"},
             {"joint", true},
             {"source_vocabulary", tokenizer.vocabulary()},
             {"target_vocabulary", tokenizer.vocabulary()},
             {"from", from.string()}}};
  }
  const DataDirectory data = DataDirectory::open(from);
  if (!data.joint()) {
    throw Error(fmt::format("{}: has separate tokenizers for source and target", from.string()),
                "--tokenizer-from needs a data directory with one joint tokenizer");
  }
  Json description = data.info().at("tokenizer");
  description["from"] = from.string();
  return {data.source_tokenizer(), std::move(description)};
}

bool in_sample(int64_t i, int64_t lines, int64_t most) {
  return most <= 0 || lines <= most || (i + 1) * most / lines > i * most / lines;
}

Sequences encode_block(const Tokenizer& tokenizer, const std::vector<std::string>& lines) {
  Sequences sequences(lines.size());
  parallel_items(std::ssize(lines), [&](int64_t i) {
    sequences[static_cast<size_t>(i)] = tokenizer.encode(lines[static_cast<size_t>(i)]);
  });
  return sequences;
}

Sequences encode_lines(const Tokenizer& tokenizer, const std::vector<std::string>& lines, const std::string& label) {
  Sequences sequences(lines.size());
  Progress progress(label, std::ssize(lines));
  constexpr auto kChunk = static_cast<int64_t>(kLinesAtOnce);
  for (int64_t begin = 0; begin < std::ssize(lines); begin += kChunk) {
    const int64_t end = std::min<int64_t>(begin + kChunk, std::ssize(lines));
    parallel_items(end - begin, [&](int64_t i) {
      const auto line = static_cast<size_t>(begin + i);
      sequences[line] = tokenizer.encode(lines[line]);
    });
    progress.update(end);
  }
  return sequences;
}

void SequenceFacts::add(std::span<const int32_t> sequence) {
  tokens_ += std::ssize(sequence);
  longest_ = std::max<int64_t>(longest_, std::ssize(sequence));
  unknown_ += std::count(sequence.begin(), sequence.end(), unknown_id_);
}

Json facts_of(const Sequences& sequences, const Specials& specials) {
  SequenceFacts facts(specials);
  for (const auto& sequence : sequences) facts.add(sequence);
  return facts.json();
}

Json describe_tokenizers(const TokenizerOptions& options, const Tokenizer& source, const Tokenizer& target, bool joint,
                         int64_t lines) {
  Json description = {{"kind", options.kind},
                      {"joint", joint},
                      {"character_coverage", options.character_coverage},
                      {"requested_vocabulary", options.vocabulary},
                      {"source_vocabulary", source.vocabulary()},
                      {"target_vocabulary", target.vocabulary()}};
  if (options.sample > 0 && lines > options.sample) description["sample"] = options.sample;
  if (options.mask) description["mask"] = true;
  return description;
}

std::string describe_sample(const TokenizerOptions& options, int64_t lines, const std::string& what) {
  const std::string all = with_thousands(lines) + " " + what;
  return options.sample > 0 && lines > options.sample ? with_thousands(options.sample) + " of " + all : all;
}

std::string origin_of(const std::string& split, const Json& inputs) {
  std::vector<std::string> files;
  if (inputs.contains(split) && inputs[split].is_array())
    for (const Json& file : inputs[split]) files.push_back(file.at("file").get<std::string>());
  return files.empty() ? fmt::format("the split '{}'", split) : join(files);
}

void require_usable(bool usable, const std::string& split, WantedSides sides, const Json& inputs) {
  if (usable) return;
  throw Error(
      fmt::format("{}: contains no {} that yields tokens{}", origin_of(split, inputs),
                  sides == WantedSides::both ? "pair" : "text", sides == WantedSides::both ? " on both sides" : ""),
      "its lines are empty, or consist of white space and characters that normalization removes");
}

Json describe_file(const fs::path& file) {
  if (!fs::is_regular_file(file)) return {{"file", file.string()}};  // such as a pipe, already consumed
  const FileDigest digest = digest_of(file);
  return {{"file", file.string()}, {"bytes", digest.bytes}, {"sha256", digest.sha256}};
}

void check_options(int64_t length_limit, int64_t valid_size, const std::vector<std::string>& test_names) {
  if (length_limit < 1) throw Error(fmt::format("the length limit must be at least 1, not {}", length_limit));
  if (valid_size < 0) throw Error(fmt::format("--valid-size must be at least 0, not {}", valid_size));
  check_names(test_names, {"train", "valid"}, "a test set", "test sets", "--test");
}

int64_t held_out_of(int64_t examples) { return std::clamp<int64_t>(examples / 20, 1, 1000); }

int64_t number_to_hold_out(int64_t wanted, int64_t examples, const char* what) {
  if (wanted == 0) wanted = held_out_of(examples);
  if (wanted < examples) return wanted;
  throw Error(fmt::format("{} {}{} cannot be held out of {}", with_thousands(wanted), what, wanted == 1 ? "" : "s",
                          with_thousands(examples)),
              fmt::format("give {}, or other text for validation with --valid",
                          examples == 1 ? "more text" : "a smaller --valid-size"));
}
void check_corpus_names(const std::vector<std::string>& names, bool other_text) {
  if (other_text && !names.empty())
    throw Error("the training text is given both as one corpus and as several", "give either --train or --corpus");
  check_names(names, {}, "a corpus", "corpora", "--corpus");
}

Json describe_corpora(const std::vector<std::string>& names, const std::vector<int64_t>& sizes) {
  Json corpora = Json::array();
  for (size_t c = 0; c < names.size(); ++c) {
    if (sizes[c] == 0) {
      throw Error(fmt::format("nothing of the corpus '{}' is left for training", names[c]),
                  "its lines are empty, over the length limit, or held out for validation (see --valid)");
    }
    corpora.push_back({{"name", names[c]}, {"pairs", sizes[c]}});
  }
  return corpora;
}

void check_data_output(const fs::path& out, const std::string& task) {
  check_output_directory(out, "data");
  if (!fs::exists(out / "data.json")) return;
  const std::string found = read_json(out / "data.json").value("task", task);
  if (found == task) return;
  throw Error(fmt::format("{}: has data for {}, not for {}", out.string(), found, task),
              "choose another --out; nothing was changed");
}

void write_data_directory(const fs::path& out, const Json& info, const std::function<void(const fs::path&)>& fill) {
  write_directory_atomic(
      out, "data",
      [&](const fs::path& temporary) {
        claim_output_directory(temporary, "data");
        fs::create_directory(temporary / "splits");
        fill(temporary);
        write_json(temporary / "data.json", info);
      },
      Links::followed);
}

void write_lines(const fs::path& path, const std::vector<std::string>& lines) {
  write_file_atomic(path, [&](std::ostream& out) {
    for (const std::string& line : lines) out << line << '\n';
  });
}

}  // namespace plumb
