#include "plumb/data/prepare_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <ostream>
#include <span>
#include <string_view>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "plumb/base/progress.h"
#include "plumb/data/prepare_parts.h"
#include "plumb/data/split_writer.h"
#include "plumb/data/trim.h"

namespace plumb {
namespace fs = std::filesystem;
namespace {

using Lines = std::vector<std::string>;
using LineVisitor = std::function<void(std::string_view)>;
/// Lines that can be read several times: each call passes all of them to the visitor.
using LineStream = std::function<void(const LineVisitor&)>;

/// The splits, which need not be in memory.
struct TextStreams {
  std::vector<LineStream> train;     // one per corpus
  std::vector<std::string> corpora;  // their names; empty if there is only one
  std::optional<LineStream> valid;
  std::vector<std::pair<std::string, LineStream>> tests;
  const Json& inputs;
};

/// A split to write: the non-blank lines of each corpus, and their total number.
struct TextPart {
  std::string name;
  std::vector<LineStream> corpora;
  int64_t count = 0;
};

/// Words separated by white space, plus one for the line end, as is customary in language modeling.
int64_t count_words(std::string_view line) {
  int64_t words = 1;
  for (size_t at = line.find_first_not_of(kWhiteSpace); at != std::string_view::npos;) {
    ++words;
    at = line.find_first_not_of(kWhiteSpace, line.find_first_of(kWhiteSpace, at));
  }
  return words;
}

/// The lines of a file. A file that can be read only once, such as a pipe, is kept in memory.
LineStream stream_lines(const fs::path& file) {
  if (fs::is_regular_file(file)) {
    return [file](const LineVisitor& visit) {
      LineReader lines(file);
      while (const auto line = lines.next()) visit(*line);
    };
  }
  const auto lines = std::make_shared<const Lines>(read_lines(file));
  return [lines](const LineVisitor& visit) {
    for (const std::string& line : *lines) visit(line);
  };
}

LineStream lines_in_memory(const Lines& lines) {
  return [&lines](const LineVisitor& visit) {
    for (const std::string& line : lines) visit(line);
  };
}

/// The non-blank lines [begin, end), counted from 0.
LineStream with_text(LineStream all, int64_t begin = 0, int64_t end = std::numeric_limits<int64_t>::max()) {
  return [all = std::move(all), begin, end](const LineVisitor& visit) {
    int64_t i = 0;
    all([&](std::string_view line) {
      if (is_blank(line)) return;
      if (i >= begin && i < end) visit(line);
      ++i;
    });
  };
}

int64_t count_lines(const LineStream& lines) {
  int64_t count = 0;
  lines([&](std::string_view) { ++count; });
  return count;
}

/// The splits, `train` first. Reads every text once. Throws Error if one of them is blank.
std::vector<TextPart> parts_of(const TextStreams& streams, const TextOptions& options) {
  const auto no_text = [&](const std::string& name) {
    return Error(fmt::format("{}: contains no text", origin_of(name, streams.inputs)));
  };
  std::vector<TextPart> parts;
  const auto add = [&](const std::string& name, const LineStream& lines) {
    parts.push_back({name, {with_text(lines)}});
    parts.back().count = count_lines(parts.back().corpora.front());
    if (parts.back().count == 0) throw no_text(name);
  };
  TextPart train{"train", {}}, held{"valid", {}};
  for (size_t c = 0; c < streams.train.size(); ++c) {
    const LineStream& corpus = streams.train[c];
    int64_t kept = count_lines(with_text(corpus));
    if (kept == 0 && streams.corpora.empty()) throw no_text("train");
    if (kept == 0) throw Error(fmt::format("the corpus '{}' contains no text", streams.corpora[c]));
    if (!streams.valid) {
      const int64_t last = number_to_hold_out(options.valid_size, kept, "line");
      kept -= last;
      held.corpora.push_back(with_text(corpus, kept));
      held.count += last;
    }
    train.corpora.push_back(with_text(corpus, 0, kept));
    train.count += kept;
  }
  parts.push_back(std::move(train));
  if (streams.valid) {
    add("valid", *streams.valid);
  } else {
    parts.push_back(std::move(held));
  }
  for (const auto& [name, lines] : streams.tests) add(name, lines);
  return parts;
}

/// Cuts lines, each followed by EOS, into blocks.
class BlockCutter {
 public:
  BlockCutter(int64_t block, int32_t eos, std::function<void(std::span<const int32_t>)> take)
      : size_(block), eos_(eos), take_(std::move(take)) {}
  void add_line(std::span<const int32_t> ids) {
    for (const int32_t id : ids) add(id);
    add(eos_);
  }
  /// Passes on the last, possibly shorter block.
  void finish() {
    if (!block_.empty()) take_(block_);
    block_.clear();
  }

 private:
  void add(int32_t id) {
    block_.push_back(id);
    if (std::ssize(block_) == size_) finish();
  }

  int64_t size_;
  int32_t eos_;
  std::function<void(std::span<const int32_t>)> take_;
  std::vector<int32_t> block_;
};

/// A split on disk.
struct WrittenText {
  Json facts;                  // its entry in data.json
  std::vector<int64_t> sizes;  // sequences of each corpus
  int64_t dropped = 0;         // lines without tokens or too long
};

/// Encodes and writes a split; `lines_text` receives its lines if each is a sequence, and may be null otherwise.
WrittenText write_encoded_lines(const fs::path& splits, const TextPart& part, const Tokenizer& tokenizer,
                                const TextOptions& options, std::ostream* lines_text, const Json& inputs) {
  WrittenText written;
  SplitWriter tokens(splits / (part.name + ".tokens"));
  SequenceFacts target_facts(tokenizer.specials());
  const auto write = [&](std::span<const int32_t> ids) {
    tokens.add({}, ids);
    target_facts.add(ids);
  };
  BlockCutter blocks(options.block, options.block > 0 ? require_special(tokenizer.specials().eos, "end of a line") : 0,
                     write);
  int64_t words = 0, done = 0;
  bool usable = false;
  Progress progress(part.name, part.count);
  Lines pending;
  const auto flush = [&] {
    const Sequences encoded = encode_block(tokenizer, pending);
    for (size_t i = 0; i < pending.size(); ++i) {
      usable = usable || !encoded[i].empty();
      if (options.block > 0) {
        blocks.add_line(encoded[i]);
      } else {
        const bool fits = !encoded[i].empty() && std::ssize(encoded[i]) <= options.length_limit;
        if (part.name == "train" && !fits) {
          ++written.dropped;
          continue;
        }
        write(encoded[i]);
        *lines_text << pending[i] << '\n';
      }
      words += count_words(pending[i]);
    }
    done += std::ssize(pending);
    progress.update(done);
    pending.clear();
  };
  for (const LineStream& lines : part.corpora) {
    const int64_t before = tokens.size();
    lines([&](std::string_view line) {
      pending.emplace_back(line);
      if (pending.size() == kLinesAtOnce) flush();
    });
    flush();
    if (options.block > 0) blocks.finish();
    written.sizes.push_back(tokens.size() - before);
  }
  require_usable(usable, part.name, WantedSides::either, inputs);
  tokens.finish();
  written.facts = {{"pairs", tokens.size()},
                   {"words", words},
                   {"source", SequenceFacts(tokenizer.specials()).json()},
                   {"target", target_facts.json()}};
  return written;
}

/// The same, including the text files if each line is a sequence.
WrittenText write_text_part(const fs::path& splits, const TextPart& part, const Tokenizer& tokenizer,
                            const TextOptions& options, const Json& inputs) {
  if (options.block > 0) return write_encoded_lines(splits, part, tokenizer, options, nullptr, inputs);
  WrittenText written;
  write_file_atomic(splits / (part.name + ".target"), [&](std::ostream& out) {
    written = write_encoded_lines(splits, part, tokenizer, options, &out, inputs);
  });
  write_file_atomic(splits / (part.name + ".source"), [&](std::ostream& out) {
    for (int64_t i = 0; i < written.facts["pairs"].get<int64_t>(); ++i) out << '\n';
  });
  return written;
}

void check_text_options(const TextOptions& options, const std::vector<std::string>& test_names) {
  if (options.block < 0 || options.block == 1)
    throw Error(fmt::format("the block size must be 0 or at least 2, not {}", options.block));
  check_options(options.length_limit, options.valid_size, test_names);
}

DescribedTokenizer learn_from_sample(const TextPart& train, const TokenizerOptions& options) {
  say(fmt::format("training the tokenizer on {}", describe_sample(options, train.count, "lines")));
  Lines sample;
  int64_t i = 0;
  for (const LineStream& lines : train.corpora) {
    lines([&](std::string_view line) {
      if (in_sample(i++, train.count, options.sample)) sample.emplace_back(line);
    });
  }
  Tokenizer tokenizer = train_tokenizer(sample, options, "tokenizer");
  Json description = describe_tokenizers(options, tokenizer, tokenizer, true, train.count);
  return {std::move(tokenizer), std::move(description)};
}

/// Reads the training text up to four times: to count its lines, to collect the tokenizer's sample if one is trained,
/// to write the lines, and to write those held out.
Json prepare_text_streams(const TextStreams& streams, const TextOptions& options, const fs::path& out) {
  const std::vector<TextPart> parts = parts_of(streams, options);
  const DescribedTokenizer described = options.tokenizer_from.empty()
                                           ? learn_from_sample(parts.front(), options.tokenizer)
                                           : borrow_tokenizer(options.tokenizer_from);
  const Tokenizer& tokenizer = described.tokenizer;

  Json info = make_document("data", 1);
  info["task"] = "language-modeling";
  info["tokenizer"] = described.description;
  info["text"] = {{"block", options.block}};
  info["length_limit"] = options.block > 0 ? options.block : options.length_limit;
  info["held_out"] = !streams.valid;
  write_data_directory(out, info, [&](const fs::path& directory) {
    int64_t dropped = 0;
    for (const TextPart& part : parts) {
      const WrittenText written = write_text_part(directory / "splits", part, tokenizer, options, streams.inputs);
      dropped += written.dropped;
      if (written.dropped > 0) {
        say(fmt::format("dropped {} training lines that are empty or have more than {} tokens", written.dropped,
                        options.length_limit));
      }
      if (written.facts["pairs"] == 0)
        throw Error(fmt::format("every training line has more than {} tokens", options.length_limit),
                    "increase --length-limit");
      info["splits"][part.name] = written.facts;
      if (part.name == "train" && !streams.corpora.empty())
        info["splits"]["train"]["corpora"] = describe_corpora(streams.corpora, written.sizes);
    }
    info["dropped"] = {{"over_length_limit", dropped}};
    info["inputs"] = streams.inputs;
    tokenizer.save(directory / "tokenizer.model");
  });
  return info;
}

}  // namespace

Json prepare_text(const TextOptions& options, const fs::path& out) {
  check_data_output(out, "language-modeling");
  check_text_options(options, names_of(options.tests));
  check_corpus_names(names_of(options.corpora), !options.train.empty());
  Json inputs = Json::object();
  const auto open = [&](const std::string& name, const fs::path& file) {
    LineStream lines = stream_lines(file);
    inputs[name].push_back(describe_file(file));
    return lines;
  };
  TextStreams streams{{}, names_of(options.corpora), {}, {}, inputs};
  if (options.corpora.empty()) streams.train.push_back(open("train", options.train));
  for (const auto& [name, file] : options.corpora) {
    streams.train.push_back(open("train", file));
    inputs["train"].back()["corpus"] = name;
  }
  if (options.valid) streams.valid = open("valid", *options.valid);
  for (const auto& [name, file] : options.tests) streams.tests.emplace_back(name, open(name, file));
  return prepare_text_streams(streams, options, out);
}

Json prepare_text_lines(TextCorpora corpora, const TextOptions& options, const fs::path& out) {
  check_data_output(out, "language-modeling");
  check_text_options(options, names_of(corpora.tests));
  TextStreams streams{{lines_in_memory(corpora.train)}, {}, {}, {}, corpora.inputs};
  if (corpora.valid) streams.valid = lines_in_memory(*corpora.valid);
  for (const auto& [name, lines] : corpora.tests) streams.tests.emplace_back(name, lines_in_memory(lines));
  return prepare_text_streams(streams, options, out);
}

}  // namespace plumb
