#include "plumb/data/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <ostream>
#include <string_view>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/progress.h"
#include "plumb/base/random.h"
#include "plumb/data/prepare_parts.h"
#include "plumb/data/split_writer.h"

namespace plumb {
namespace fs = std::filesystem;
namespace {

struct Tokenizers {
  Tokenizer source, target;
};

Tokenizers train_tokenizers(ParallelText text, const TokenizerOptions& options, bool joint) {
  if (!joint) {
    return {train_tokenizer(text.sources, options, "source tokenizer"),
            train_tokenizer(text.targets, options, "target tokenizer")};
  }
  std::vector<std::string> both = std::move(text.sources);
  both.insert(both.end(), std::make_move_iterator(text.targets.begin()), std::make_move_iterator(text.targets.end()));
  const Tokenizer tokenizer = train_tokenizer(both, options, "joint tokenizer");
  return {tokenizer, tokenizer};
}

/// The splits, which need not be in memory.
struct PairStreams {
  std::vector<PairStream> train;     // one per corpus
  std::vector<std::string> corpora;  // their names; empty if there is only one
  std::optional<PairStream> valid;
  std::vector<std::pair<std::string, PairStream>> tests;
  const Json& inputs;
};

/// The result of the first pass over the training pairs.
struct TrainingPairs {
  int64_t pairs = 0;          // with text on both sides, including held-out pairs
  std::vector<int64_t> ends;  // the number of these pairs up to the end of each corpus
  int64_t empty = 0;          // the other pairs
  std::vector<bool> held;     // per pair with text: whether held out; empty if none are
  int64_t held_count = 0;
};

/// The pairs of a corpus that are held out, or those that are not. Calls throw Error if the number of pairs changes.
PairStream part_of_corpus(const PairStreams& streams, const TrainingPairs& found, size_t corpus, bool held) {
  return [&all = streams.train[corpus], &found, corpus, held](const PairVisitor& visit) {
    const auto changed = [] {
      return Error("the training text changed while it was being read",
                   "prepare the data again while nothing writes to it");
    };
    const int64_t end = found.ends[corpus];
    int64_t i = corpus == 0 ? 0 : found.ends[corpus - 1];
    all([&](std::string_view source, std::string_view target) {
      if (source.empty() || target.empty()) return;
      if (i == end) throw changed();
      const bool is_held = !found.held.empty() && found.held[static_cast<size_t>(i)];
      ++i;
      if (is_held == held) visit(source, target);
    });
    if (i != end) throw changed();
  };
}

/// The same for every corpus.
std::vector<PairStream> part_of_training(const PairStreams& streams, const TrainingPairs& found, bool held) {
  std::vector<PairStream> parts;
  for (size_t c = 0; c < streams.train.size(); ++c) parts.push_back(part_of_corpus(streams, found, c, held));
  return parts;
}

/// A split on disk.
struct WrittenSplit {
  Json facts;  // its entry in data.json
  int64_t pairs = 0;
  std::vector<int64_t> sizes;                // of each stream
  int64_t empty = 0, over_length_limit = 0;  // pairs that were dropped
};

/// Encodes and writes a split, one stream after another; `count` is its approximate number of pairs. With a length
/// limit, drops pairs with a side that exceeds it or has no token.
WrittenSplit write_pairs(const fs::path& splits, const std::string& name, const std::vector<PairStream>& streams,
                         int64_t count, const Tokenizers& tokenizers, std::optional<int64_t> length_limit,
                         const Json& inputs) {
  WrittenSplit written;
  SplitWriter tokens(splits / (name + ".tokens"));
  SequenceFacts source_facts(tokenizers.source.specials()), target_facts(tokenizers.target.specials());
  bool usable = false;
  Progress progress(name, count);
  const auto write_block = [&](const ParallelText& text, std::ostream& sources, std::ostream& targets) {
    const Sequences source_ids = encode_block(tokenizers.source, text.sources);
    const Sequences target_ids = encode_block(tokenizers.target, text.targets);
    for (size_t i = 0; i < text.size(); ++i) {
      const auto &s = source_ids[i], &t = target_ids[i];
      const bool empty = s.empty() || t.empty();  // has only characters that normalization removes
      usable = usable || !empty;
      if (length_limit && (empty || std::max(std::ssize(s), std::ssize(t)) > *length_limit)) {
        ++(empty ? written.empty : written.over_length_limit);
        continue;
      }
      tokens.add(s, t);
      source_facts.add(s);
      target_facts.add(t);
      sources << text.sources[i] << '\n';
      targets << text.targets[i] << '\n';
    }
  };
  write_file_atomic(splits / (name + ".source"), [&](std::ostream& sources) {
    write_file_atomic(splits / (name + ".target"), [&](std::ostream& targets) {
      ParallelText block;
      int64_t done = 0;
      const auto flush = [&] {
        write_block(block, sources, targets);
        done += static_cast<int64_t>(block.size());
        progress.update(done);
        block = {};
      };
      for (const PairStream& pairs : streams) {
        const int64_t before = tokens.size();
        pairs([&](std::string_view source, std::string_view target) {
          block.append(std::string(source), std::string(target));
          if (block.size() == kLinesAtOnce) flush();
        });
        flush();
        written.sizes.push_back(tokens.size() - before);
      }
    });
  });
  require_usable(usable, name, WantedSides::both, inputs);
  tokens.finish();
  written.pairs = tokens.size();
  written.facts["pairs"] = written.pairs;
  written.facts["source"] = source_facts.json();
  written.facts["target"] = target_facts.json();
  return written;
}

int64_t count_pairs(const PairStream& pairs) {
  int64_t count = 0;
  pairs([&](std::string_view, std::string_view) { ++count; });
  return count;
}

/// The training text: one corpus without a name, or several.
std::vector<std::pair<std::string, CorpusFiles>> training_files(const PrepareOptions& options) {
  check_corpus_names(names_of(options.corpora), !options.train.source.empty());
  if (!options.corpora.empty()) return options.corpora;
  return {{"", options.train}};
}

Json describe_input(const CorpusFiles& files) {
  Json list = Json::array();
  for (const fs::path& file : {files.source, files.target}) {
    if (!file.empty()) list.push_back(describe_file(file));
  }
  return list;
}

/// Counts the training pairs and, without a validation set, chooses those to hold out.
TrainingPairs examine_training(const PairStreams& streams, const PrepareOptions& options) {
  TrainingPairs found;
  std::vector<uint64_t> targets;  // hashes, to find equal targets
  for (size_t c = 0; c < streams.train.size(); ++c) {
    const int64_t before = found.pairs;
    streams.train[c]([&](std::string_view source, std::string_view target) {
      if (source.empty() || target.empty()) {
        ++found.empty;
        return;
      }
      ++found.pairs;
      if (!streams.valid) targets.push_back(stream_of(target));
    });
    found.ends.push_back(found.pairs);
    if (found.pairs == before && !streams.corpora.empty()) {
      throw Error(fmt::format("the corpus '{}' contains no pair with text on both sides", streams.corpora[c]));
    }
  }
  if (found.pairs == 0)
    throw Error(fmt::format("{}: contains no pair with text on both sides", origin_of("train", streams.inputs)));
  if (streams.valid) return found;
  const int64_t wanted = number_to_hold_out(options.valid_size, found.pairs, "pair");
  found.held = choose_held_out(targets, wanted, options.seed);
  found.held_count = std::count(found.held.begin(), found.held.end(), true);
  if (found.held_count == 0) {
    throw Error(
        fmt::format("no validation pairs can be held out: every target sentence occurs in more than {} pairs", wanted),
        "give a larger --valid-size, or validation files with --valid");
  }
  return found;
}

/// The part of data.json before the splits.
Json describe_data(const PrepareOptions& options, const Tokenizers& tokenizers, int64_t pairs, bool held_out) {
  Json info = make_document("data", 1);
  info["task"] = "translation";
  if (!options.source_language.empty()) info["source_language"] = options.source_language;
  if (!options.target_language.empty()) info["target_language"] = options.target_language;
  info["tokenizer"] =
      describe_tokenizers(options.tokenizer, tokenizers.source, tokenizers.target, options.joint, pairs);
  info["length_limit"] = options.length_limit;
  info["held_out"] = held_out;
  info["seed"] = options.seed;
  return info;
}

/// Reports how many training pairs were dropped, and returns the counts. Throws Error if none is left.
Json report_dropped(const WrittenSplit& train, int64_t empty, int64_t length_limit) {
  empty += train.empty;
  if (empty > 0) say(fmt::format("dropped {} training pairs with an empty side", empty));
  if (train.over_length_limit > 0) {
    say(fmt::format("dropped {} training pairs with more than {} tokens on a side", train.over_length_limit,
                    length_limit));
  }
  if (train.pairs == 0) {
    throw Error(fmt::format("every training pair has more than {} tokens on a side", length_limit),
                "increase --length-limit");
  }
  return {{"empty", empty}, {"over_length_limit", train.over_length_limit}};
}

/// Reads the training text three times: to count the pairs and choose those to hold out, to collect the tokenizer's
/// sample, and to write the pairs; and once more to write those held out.
Json prepare_streams(const PairStreams& streams, const PrepareOptions& options, const fs::path& out) {
  const TrainingPairs found = examine_training(streams, options);
  const int64_t pairs = found.pairs - found.held_count;
  const std::vector<PairStream> train = part_of_training(streams, found, false);

  const auto learn = [&] {
    say(fmt::format("training the tokenizer on {}", describe_sample(options.tokenizer, pairs, "pairs")));
    ParallelText sample;
    int64_t i = 0;
    for (const PairStream& corpus : train) {
      corpus([&](std::string_view source, std::string_view target) {
        if (in_sample(i++, pairs, options.tokenizer.sample)) sample.append(std::string(source), std::string(target));
      });
    }
    return train_tokenizers(std::move(sample), options.tokenizer, options.joint);
  };
  const Tokenizers tokenizers = learn();

  Json info = describe_data(options, tokenizers, pairs, !streams.valid);
  write_data_directory(out, info, [&](const fs::path& directory) {
    Json splits;
    const auto write = [&](const std::string& name, const std::vector<PairStream>& parts, int64_t count,
                           std::optional<int64_t> limit = {}) {
      WrittenSplit written = write_pairs(directory / "splits", name, parts, count, tokenizers, limit, streams.inputs);
      splits[name] = written.facts;
      return written;
    };
    const WrittenSplit written = write("train", train, pairs, options.length_limit);
    info["dropped"] = report_dropped(written, found.empty, options.length_limit);
    if (!streams.corpora.empty()) splits["train"]["corpora"] = describe_corpora(streams.corpora, written.sizes);
    if (streams.valid) {
      write("valid", {*streams.valid}, count_pairs(*streams.valid));
    } else {
      write("valid", part_of_training(streams, found, true), found.held_count);
    }
    for (const auto& [name, stream] : streams.tests) write(name, {stream}, count_pairs(stream));
    info["splits"] = std::move(splits);
    info["inputs"] = streams.inputs;
    if (options.joint) {
      tokenizers.source.save(directory / "tokenizer.model");
    } else {
      tokenizers.source.save(directory / "source.model");
      tokenizers.target.save(directory / "target.model");
    }
  });
  return info;
}

PairStream stream_of_memory(const ParallelText& text) {
  return [&text](const PairVisitor& visit) {
    for (size_t i = 0; i < text.size(); ++i) visit(text.sources[i], text.targets[i]);
  };
}

}  // namespace

Json prepare_data(const PrepareOptions& options, const fs::path& out) {
  check_data_output(out, "translation");
  check_options(options.length_limit, options.valid_size, names_of(options.tests));
  const auto training = training_files(options);
  Json inputs = Json::object();
  PairStreams streams{{}, names_of(options.corpora), {}, {}, inputs};
  inputs["train"] = Json::array();
  for (const auto& [corpus, files] : training) {
    streams.train.push_back(stream_parallel_text(files));
    for (Json file : describe_input(files)) {
      if (!corpus.empty()) file["corpus"] = corpus;
      inputs["train"].push_back(std::move(file));
    }
  }
  const auto open = [&](const std::string& name, const CorpusFiles& files) {
    PairStream pairs = stream_parallel_text(files);
    (void)count_pairs(pairs);  // reports errors early; the training pairs are read first anyway
    inputs[name] = describe_input(files);
    return pairs;
  };
  if (options.valid) streams.valid = open("valid", *options.valid);
  for (const auto& [name, files] : options.tests) streams.tests.emplace_back(name, open(name, files));
  return prepare_streams(streams, options, out);
}

Json prepare_corpora(Corpora corpora, const PrepareOptions& options, const fs::path& out) {
  check_data_output(out, "translation");
  check_options(options.length_limit, options.valid_size, names_of(corpora.tests));
  PairStreams streams{{stream_of_memory(corpora.train)}, {}, {}, {}, corpora.inputs};
  if (corpora.valid) streams.valid = stream_of_memory(*corpora.valid);
  for (const auto& [name, text] : corpora.tests) streams.tests.emplace_back(name, stream_of_memory(text));
  return prepare_streams(streams, options, out);
}

}  // namespace plumb
