// Streaming preparation writes the same bytes as the same steps in memory.
#include <gtest/gtest.h>

#include <algorithm>

#include "plumb/base/checksum.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "plumb/base/random.h"
#include "plumb/data/directory.h"
#include "plumb/data/prepare.h"
#include "plumb/data/prepare_text.h"
#include "plumb/data/split.h"
#include "support/paths.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;
using Sentences = std::vector<std::vector<int32_t>>;
using Lines = std::vector<std::string>;

std::string joined(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

Sentences encoded(const Tokenizer& tokenizer, const Lines& lines) {
  Sentences ids;
  for (const std::string& line : lines) ids.push_back(tokenizer.encode(line));
  return ids;
}

/// The pairs without an empty side.
ParallelText with_text(const ParallelText& text) {
  ParallelText full;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!text.sources[i].empty() && !text.targets[i].empty()) full.append(text.sources[i], text.targets[i]);
  }
  return full;
}

class PrepareStream : public testing::Test {
 protected:
  fs::path file(const std::string& name, const std::string& content) {
    write_file_atomic(directory_ / name, content);
    return directory_ / name;
  }

  /// Pairs with repeated targets, empty sides and long sources.
  static ParallelText text_of(int64_t pairs) {
    const Lines words = {"Hund", "Katze", "rennt", "schläft", "im", "Garten", "mit", "Ball"};
    ParallelText text;
    Random random(3, "text");
    for (int64_t i = 0; i < pairs; ++i) {
      std::string source, target;
      const uint64_t length = i % 997 == 5 ? 40 : 1 + random.below(4);
      for (uint64_t w = 0; w < length; ++w) source += (w > 0 ? " " : "") + words[random.below(words.size())];
      for (uint64_t w = 0; w < 2; ++w) target += (w > 0 ? " " : "") + words[random.below(words.size())];
      if (i % 3 == 0) target += " " + std::to_string(i % 400);
      text.append(i % 501 == 7 ? "" : source, i % 777 == 9 ? "" : target);
    }
    return text;
  }

  void expect_split(const std::string& name, const ParallelText& text, const Tokenizer& tokenizer, int64_t limit) {
    ParallelText kept;
    Sentences sources, targets;
    const Sentences all_sources = encoded(tokenizer, text.sources), all_targets = encoded(tokenizer, text.targets);
    for (size_t i = 0; i < text.size(); ++i) {
      if (limit > 0 && std::max(std::ssize(all_sources[i]), std::ssize(all_targets[i])) > limit) continue;
      kept.append(text.sources[i], text.targets[i]);
      sources.push_back(all_sources[i]);
      targets.push_back(all_targets[i]);
    }
    write_split(directory_ / "expected", sources, targets);
    const fs::path split = directory_ / "out" / "splits" / name;
    EXPECT_EQ(read_file(fs::path(split).concat(".tokens")), read_file(directory_ / "expected")) << name;
    EXPECT_EQ(read_file(fs::path(split).concat(".source")), joined(kept.sources)) << name;
    EXPECT_EQ(read_file(fs::path(split).concat(".target")), joined(kept.targets)) << name;
  }

  test::TemporaryDirectory directory_;
};

TEST_F(PrepareStream, PairsAreThoseOfTheStepsInMemory) {
  const ParallelText text = text_of(25000);
  PrepareOptions options;
  options.train = {file("train.de", joined(text.sources)), file("train.en", joined(text.targets))};
  options.tokenizer.vocabulary = 100;
  options.length_limit = 20;
  options.seed = 5;
  const Json info = prepare_data(options, directory_ / "out");

  const ParallelText full = with_text(text);
  const auto [train, valid] = hold_out(full, 1000, options.seed);
  Lines both = train.sources;
  both.insert(both.end(), train.targets.begin(), train.targets.end());
  const Tokenizer tokenizer = Tokenizer::train(both, options.tokenizer);
  tokenizer.save(directory_ / "model");
  EXPECT_EQ(read_file(directory_ / "out" / "tokenizer.model"), read_file(directory_ / "model"));
  expect_split("train", train, tokenizer, options.length_limit);
  expect_split("valid", valid, tokenizer, 0);
  EXPECT_EQ(info["dropped"]["empty"], text.size() - full.size());
  EXPECT_EQ(info["dropped"]["over_length_limit"],
            std::ssize(train.sources) - info["splits"]["train"]["pairs"].get<int64_t>());
  EXPECT_FALSE(info["tokenizer"].contains("sample"));
  // No temporary files are left.
  int64_t files = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(directory_ / "out" / "splits")) ++files;
  EXPECT_EQ(files, 6);
}

TEST_F(PrepareStream, TheTokenizerLearnsFromASampleAtEvenDistances) {
  ParallelText full = with_text(text_of(2000));
  full.sources.resize(1200);
  full.targets.resize(1200);
  PrepareOptions options;
  options.train = {file("de", joined(full.sources)), file("en", joined(full.targets))};
  options.valid = options.train;
  options.tokenizer.vocabulary = 60;
  options.tokenizer.sample = 300;
  const Json info = prepare_data(options, directory_ / "out");
  EXPECT_EQ(info["tokenizer"]["sample"], 300);
  Lines both;
  for (size_t i = 3; i < 1200; i += 4) both.push_back(full.sources[i]);  // the last of every four
  for (size_t i = 3; i < 1200; i += 4) both.push_back(full.targets[i]);
  Tokenizer::train(both, options.tokenizer).save(directory_ / "model");
  EXPECT_EQ(read_file(directory_ / "out" / "tokenizer.model"), read_file(directory_ / "model"));
}

TEST_F(PrepareStream, LinesAndBlocksAreThoseOfTheStepsInMemory) {
  Lines lines = text_of(21000).sources;
  for (const int64_t block : {0, 7}) {
    TextOptions options;
    options.train = file("train.txt", joined(lines));
    options.block = block;
    options.length_limit = 12;
    options.valid_size = 30;
    options.tokenizer.vocabulary = 80;
    const Json info = prepare_text(options, directory_ / "out");

    Lines train;
    for (const std::string& line : lines)
      if (!line.empty()) train.push_back(line);
    const Lines valid(train.end() - 30, train.end());
    train.resize(train.size() - 30);
    const Tokenizer tokenizer = Tokenizer::train(train, options.tokenizer);
    for (const auto& [name, text] : {std::pair<std::string, Lines>("train", train), {"valid", valid}}) {
      Sentences sequences;
      Lines kept;
      std::vector<int32_t> all;
      for (const std::string& line : text) {
        const std::vector<int32_t> ids = tokenizer.encode(line);
        all.insert(all.end(), ids.begin(), ids.end());
        all.push_back(tokenizer.specials().eos);
        if (name == "train" && std::ssize(ids) > options.length_limit) continue;
        kept.push_back(line);
        sequences.push_back(ids);
      }
      if (block > 0) {
        sequences.clear();
        for (size_t i = 0; i < all.size(); i += 7) {
          const size_t end = std::min(i + 7, all.size());
          sequences.emplace_back(all.begin() + static_cast<ptrdiff_t>(i), all.begin() + static_cast<ptrdiff_t>(end));
        }
      }
      write_split(directory_ / "expected", Sentences(sequences.size()), sequences);
      const fs::path split = directory_ / "out" / "splits" / name;
      EXPECT_EQ(read_file(fs::path(split).concat(".tokens")), read_file(directory_ / "expected")) << name << block;
      EXPECT_EQ(info["splits"][name]["pairs"], sequences.size());
      if (block == 0) {
        EXPECT_EQ(read_file(fs::path(split).concat(".target")), joined(kept));
      }
      int64_t words = 0;
      for (const std::string& line : block > 0 ? text : kept)
        words += 2 + std::count(line.begin(), line.end(), ' ');  // no two spaces in a row
      EXPECT_EQ(info["splits"][name]["words"], words);
    }
  }
}

TEST_F(PrepareStream, AStreamMayBeReadAgain) {
  const PairStream pairs = stream_parallel_text({file("t.tsv", "Hallo!\tHi.\n Gut. \tGood.\tCC BY\n"), {}});
  for (int time = 0; time < 2; ++time) {
    ParallelText text;
    pairs([&](std::string_view source, std::string_view target) {
      text.append(std::string(source), std::string(target));
    });
    EXPECT_EQ(text, (ParallelText{{"Hallo!", "Gut."}, {"Hi.", "Good."}}));
  }
}

TEST_F(PrepareStream, LinesAreReadWithoutTheirEndsAndTheMark) {
  const std::vector<std::pair<const char*, Lines>> files = {{"", {}},
                                                            {"\n", {""}},
                                                            {"a", {"a"}},
                                                            {"a\n", {"a"}},
                                                            {"a\r\nb\r", {"a", "b"}},
                                                            {"\xEF\xBB\xBF", {}},
                                                            {"\xEF\xBB\xBF\n", {""}},
                                                            {"\xEF\xBB\xBFx\n\ny", {"x", "", "y"}}};
  for (const auto& [content, lines] : files) EXPECT_EQ(read_lines(file("lines", content)), lines) << content;
  LineReader bad(file("bad", "a\n\xFF\n"));
  (void)bad.next();
  EXPECT_THROW((void)bad.next(), Error);
  EXPECT_THROW(LineReader(directory_ / "none"), Error);
}

TEST_F(PrepareStream, AFilesDigestIsThatOfItsContent) {
  const std::string content(3'000'001, 'x');  // several blocks
  const FileDigest digest = digest_of(file("large", content));
  EXPECT_EQ(digest.bytes, content.size());
  EXPECT_EQ(digest.sha256, sha256(content));
  // The one-block example for FIPS 180-4.
  EXPECT_EQ(digest_of(file("abc", "abc")).sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace plumb
