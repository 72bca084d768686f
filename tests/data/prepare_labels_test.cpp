#include "plumb/data/prepare_labels.h"

#include <gtest/gtest.h>

#include <numeric>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "plumb/base/json.h"
#include "plumb/base/progress.h"
#include "plumb/base/text.h"
#include "plumb/data/directory.h"
#include "plumb/data/prepare_text.h"
#include "support/errors.h"
#include "support/paths.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;
using test::TemporaryDirectory;

class PrepareLabels : public testing::Test {
 protected:
  PrepareLabels() {
    std::string train;
    for (int i = 0; i < 200; ++i) {
      train += (i % 4 == 0 ? "question\twho sees cat " : "answer\tthe dog sees cat ") + std::to_string(i) + "\n";
    }
    options_.train = file("train.tsv", train);
    options_.tokenizer.vocabulary = 60;
  }

  fs::path file(const std::string& name, const std::string& content) {
    write_file_atomic(directory_ / name, content);
    return directory_ / name;
  }
  DataDirectory prepare() {
    prepare_labels(options_, directory_ / "out");
    return DataDirectory::open(directory_ / "out");
  }
  std::string failure() {
    std::string text = test::message_of([&] { prepare_labels(options_, directory_ / "none"); });
    EXPECT_FALSE(fs::exists(directory_ / "none"));
    replace_all(text, directory_.path().string() + "/", "");
    return text;
  }

  TemporaryDirectory directory_;
  LabelOptions options_;
};

TEST_F(PrepareLabels, LabelsStandBesideTokensAndText) {
  options_.valid = file("valid.tsv", "question\twho sees dog\nanswer\tcat 7\nquestion\twho\n");
  const DataDirectory data = prepare();
  EXPECT_EQ(data.task(), "classification");
  EXPECT_EQ(data.labels(), (std::vector<std::string>{"answer", "question"}));
  EXPECT_EQ(data.labels_of("valid"), (std::vector<int32_t>{1, 0, 1}));
  EXPECT_EQ(data.raw_source("valid"), (std::vector<std::string>{"who sees dog", "cat 7", "who"}));
  EXPECT_EQ(data.source_tokenizer().decode(data.split("valid").source(1)), "cat 7");
  EXPECT_TRUE(data.split("valid").target(1).empty());
  const std::vector<int32_t> labels = data.labels_of("train");
  ASSERT_EQ(labels.size(), 200U);
  EXPECT_EQ(std::accumulate(labels.begin(), labels.end(), 0), 50);
  EXPECT_EQ(read_file(directory_ / "out" / "splits" / "valid.labels"), "question\nanswer\nquestion\n");
}

TEST_F(PrepareLabels, DocumentSaysWhatThereIs) {
  options_.tests = {{"a", file("a.tsv", "question\twho sees\n")}};
  const Json info = prepare_labels(options_, directory_ / "out");
  EXPECT_EQ(info["task"], "classification");
  EXPECT_EQ(info["labels"], Json({"answer", "question"}));
  EXPECT_EQ(info["held_out"], true);
  EXPECT_EQ(info["splits"]["train"]["pairs"], 190);  // 5% of 200 are held out
  EXPECT_EQ(info["splits"]["valid"]["pairs"], 10);
  EXPECT_EQ(info["splits"]["train"]["labels"]["question"], 48);  // proportional: 2.5 of 50, rounded to 2
  EXPECT_EQ(info["splits"]["valid"]["labels"]["answer"], 8);
  EXPECT_EQ(info["splits"]["a"]["labels"], Json({{"answer", 0}, {"question", 1}}));
  EXPECT_EQ(info["inputs"]["a"][0]["bytes"], 18);
  EXPECT_EQ(DataDirectory::open(directory_ / "out").info(), info);
}

TEST_F(PrepareLabels, PairsOfSentences) {
  options_.format.text = {"2", "3"};
  options_.train = file("pairs.tsv", "yes\tthe dog sees\ta dog\nno\tthe cat\tno dog\nyes\ta\tb\nno\tdog\tthe cat\n");
  options_.valid = options_.train;
  const DataDirectory data = prepare();
  EXPECT_EQ(data.raw_target("train")[1], "no dog");
  EXPECT_EQ(data.target_tokenizer().decode(data.split("train").target(3)), "the cat");
}

TEST_F(PrepareLabels, LongExamplesAreCutInEverySplit) {
  options_.format.text = {"2", "3"};
  const std::string text = "x\ta a a a a a a a\tb b\ny\ta\tb\n";
  options_.train = file("train", text);
  options_.valid = file("valid", text);
  options_.tokenizer.vocabulary = 10;
  options_.length_limit = 100;
  const auto whole = prepare();
  const int64_t first = std::ssize(whole.split("train").source(0)), second = std::ssize(whole.split("train").target(0));
  ASSERT_GT(first, second + 1);
  options_.length_limit = first;  // the excess is removed from the longer sentence
  const DataDirectory data = prepare();
  for (const char* name : {"train", "valid"}) {
    const auto& split = data.split(name);
    EXPECT_EQ(std::ssize(split.source(0)), first - second);
    EXPECT_EQ(std::ssize(split.target(0)), second);
    EXPECT_EQ(data.info()["splits"][name]["cut"], 1);
    const auto kept = split.source(0), all = whole.split(name).source(0);
    EXPECT_TRUE(std::equal(kept.begin(), kept.end(), all.begin()));
  }
}

TEST(CutToLimit, TakesFromTheLonger) {
  const auto cut = [](size_t first, size_t second, int64_t limit) {
    std::vector<int32_t> a(first), b(second);
    const bool any = cut_to_limit(a, b, limit);
    EXPECT_EQ(any, static_cast<int64_t>(first + second) > limit);
    return std::pair(a.size(), b.size());
  };
  EXPECT_EQ(cut(5, 3, 8), std::pair(size_t{5}, size_t{3}));
  EXPECT_EQ(cut(9, 0, 4), std::pair(size_t{4}, size_t{0}));
  EXPECT_EQ(cut(9, 2, 7), std::pair(size_t{5}, size_t{2}));
  EXPECT_EQ(cut(2, 9, 7), std::pair(size_t{2}, size_t{5}));
  EXPECT_EQ(cut(6, 6, 7), std::pair(size_t{4}, size_t{3}));
  EXPECT_EQ(cut(9, 5, 6), std::pair(size_t{3}, size_t{3}));
  EXPECT_EQ(cut(9, 5, 1), std::pair(size_t{1}, size_t{0}));
}

TEST_F(PrepareLabels, AnotherDirectorysTokenizer) {
  TextCorpora corpora;
  for (int i = 0; i < 50; ++i) corpora.train.push_back("some text of quite another kind, number " + std::to_string(i));
  TextOptions text;
  text.tokenizer.vocabulary = 70;
  prepare_text_lines(corpora, text, directory_ / "text");
  options_.tokenizer_from = directory_ / "text";
  const DataDirectory data = prepare();
  EXPECT_EQ(read_file(directory_ / "out" / "tokenizer.model"), read_file(directory_ / "text" / "tokenizer.model"));
  EXPECT_EQ(data.info()["tokenizer"]["from"], (directory_ / "text").string());
  EXPECT_EQ(data.info()["tokenizer"]["requested_vocabulary"], 70);
}

TEST_F(PrepareLabels, TheTokenizerOfAModelsFolder) {
  const fs::path model = test::source_directory() / "tests" / "golden" / "sentence_encoder" / "model";
  options_.tokenizer_from = model;
  const DataDirectory data = prepare();
  const Tokenizer tokenizer = Tokenizer::from_file(model);
  EXPECT_EQ(data.source_vocabulary(), tokenizer.vocabulary());
  EXPECT_EQ(data.source_tokenizer().specials(), tokenizer.specials());
  EXPECT_EQ(data.info()["tokenizer"]["kind"], "imported");
  const auto ids = data.split("train").source(0);
  EXPECT_EQ(std::vector<int32_t>(ids.begin(), ids.end()), tokenizer.encode(data.raw_source("train")[0]));
  options_.tokenizer_from = directory_ / "nowhere";
  EXPECT_CONTAINS(failure(), "nowhere");
}

TEST_F(PrepareLabels, ATokenizerOfSeveralFilesIsRefused) {
  const fs::path model = directory_ / "marian";
  fs::create_directory(model);
  const std::vector<std::string> lines = {"the cat sat on the mat", "a dog ran after the cat", "the mat was red"};
  for (const char* name : {"source.spm", "target.spm"})
    Tokenizer::train(lines, {.kind = "unigram", .vocabulary = 40}).save(model / name);
  write_json(model / "vocab.json", {{"</s>", 0}, {"<unk>", 1}});  // where Marian has the ids
  options_.tokenizer_from = model;
  EXPECT_CONTAINS(failure(), "a tokenizer of Marian");
}

TEST_F(PrepareLabels, ExamplesWithoutTextAreDroppedFromTrainingAlone) {
  options_.train = file("t", "a\tone\nb\ttwo\na\t\nb\tthree\na\tfour\n");
  options_.valid = file("v", "a\t\nb\ttwo\n");
  const DataDirectory data = prepare();
  EXPECT_EQ(data.info()["dropped"]["empty"], 1);
  EXPECT_EQ(data.split("train").size(), 4);
  EXPECT_EQ(data.split("valid").size(), 2);
}

TEST_F(PrepareLabels, RefusesWhatNoClassifierCanLearn) {
  const LabelOptions good = options_;
  options_.train = file("one", "a\tx\na\ty\n");
  EXPECT_EQ(failure(), "one: every example has the label 'a'");
  std::string swapped;
  for (int i = 0; i < 300; ++i) swapped += "sentence " + std::to_string(i) + "\t1\n";
  options_.train = file("swapped", swapped);
  EXPECT_EQ(failure(), "swapped: 300 different labels in 300 examples");
  options_ = good;
  options_.valid = file("valid", "answer\tx\nanswr\ty\n");
  EXPECT_EQ(failure(), "valid:2: no training example has the label 'answr'");
  options_.valid = file("blank", "\n\n");
  EXPECT_EQ(failure(), "blank: contains no examples");
  options_ = good;
  options_.train = file("blank", "a\t \nb\t\n");
  EXPECT_EQ(failure(), "blank: no example has any text");
  options_.train = file("spaces", "a\t\u3000\nb\t\u200B\n");
  EXPECT_EQ(failure(), "spaces: no example has any text");
  options_ = good;
  options_.valid = file("spaces", "answer\t\u3000\n");
  EXPECT_EQ(failure(), "spaces: contains no text that yields tokens");
  options_ = good;
  options_.valid_size = 200;
  EXPECT_EQ(failure(), "200 examples cannot be held out of 200");
  options_ = good;
  options_.length_limit = 0;
  EXPECT_EQ(failure(), "the length limit must be at least 1, not 0");
  options_ = good;
  options_.tests = {{"valid", options_.train}};
  EXPECT_EQ(failure(), "the name 'valid' is not free for a test set");
}

TEST_F(PrepareLabels, AFirstLineThatNamesTheColumnsIsNoticed) {
  const auto said = [&] {
    set_verbosity(Verbosity::normal);
    testing::internal::CaptureStderr();
    prepare();
    set_verbosity(Verbosity::quiet);
    return testing::internal::GetCapturedStderr();
  };
  const std::string note = "only the first line has the label 'label'; if it names the columns, pass --header";
  EXPECT_EQ(said().find(note), std::string::npos);
  options_.train = file("named.tsv", "label\ttext\n" + read_file(directory_ / "train.tsv"));
  EXPECT_CONTAINS(said(), note);
  options_.format.header = true;
  EXPECT_EQ(said().find(note), std::string::npos);
}

TEST_F(PrepareLabels, DamagedLabelsAreNoticed) {
  prepare();
  const fs::path labels = directory_ / "out" / "splits" / "valid.labels";
  const auto message = [&] {
    return test::message_of([&] { (void)DataDirectory::open(directory_ / "out").labels_of("valid"); });
  };
  EXPECT_EQ(message(), "accepted");
  write_file_atomic(labels, "answer\n");
  EXPECT_CONTAINS(message(), "valid.labels: 1 lines, but 10 pairs");
  write_file_atomic(labels, "answer\nother\n3\n4\n5\n6\n7\n8\n9\n10\n");
  EXPECT_CONTAINS(message(), "valid.labels:2: 'other' is not among the labels");
  EXPECT_THROW((void)DataDirectory::open(directory_ / "out").labels_of("tset"), Error);
}

TEST_F(PrepareLabels, OtherDataHaveNoLabels) {
  TextCorpora corpora{.train = {"one two", "three four", "five"}};
  prepare_text_lines(corpora, {.tokenizer = {.vocabulary = 30}}, directory_ / "text");
  const DataDirectory data = DataDirectory::open(directory_ / "text");
  EXPECT_EQ(data.task(), "language-modeling");
  EXPECT_TRUE(data.labels().empty());
  EXPECT_THROW((void)data.labels_of("train"), Error);
}

// Public data sets in their published form, read with nothing but options.
class SharedLabels : public testing::Test {
 protected:
  static Json prepare(LabelOptions options, const std::string& train, const std::string& valid = {},
                      const std::string& test = {}) {
    const fs::path folder = test::shared_directory() / "data" / "classification";
    const TemporaryDirectory directory;
    options.train = folder / train;
    if (!valid.empty()) options.valid = folder / valid;
    if (!test.empty()) options.tests.emplace_back("test", folder / test);
    options.tokenizer.vocabulary = 2000;
    Json info = prepare_labels(options, directory / "out");
    const DataDirectory data = DataDirectory::open(directory / "out");
    for (const std::string& name : data.split_names()) {
      EXPECT_EQ(std::ssize(data.labels_of(name)), data.split(name).size()) << name;
    }
    return info;
  }
};

TEST_F(SharedLabels, Trec) {
  PLUMB_REQUIRE_SHARED("data/classification/trec");
  LabelOptions options;
  options.format.separator = ColumnSeparator::space;
  options.format.label_end = ":";
  options.valid_size = 500;
  const Json info = prepare(options, "trec/train.txt", "", "trec/test.txt");
  EXPECT_EQ(info["labels"], Json({"ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM"}));
  EXPECT_EQ(info["splits"]["train"]["pairs"].get<int>() + info["splits"]["valid"]["pairs"].get<int>(), 5452);
  EXPECT_EQ(
      info["splits"]["test"]["labels"],
      Json({{"ABBR", 9}, {"DESC", 138}, {"ENTY", 94}, {"HUM", 65}, {"LOC", 81}, {"NUM", 113}}));  // Li & Roth's counts
  options.format.label_end.clear();
  EXPECT_EQ(prepare(options, "trec/train.txt")["labels"].size(), 50U);
}

TEST_F(SharedLabels, Sst2) {
  PLUMB_REQUIRE_SHARED("data/classification/sst2");
  LabelOptions options;
  options.format.label = "2";
  options.format.text = {"1"};
  const Json info = prepare(options, "sst2/train.tsv", "sst2/dev.tsv", "sst2/test.tsv");
  EXPECT_EQ(info["labels"], Json({"0", "1"}));
  EXPECT_EQ(info["splits"]["train"]["pairs"], 6920);  // Socher et al.'s counts
  EXPECT_EQ(info["splits"]["valid"]["pairs"], 872);
  EXPECT_EQ(info["splits"]["test"]["pairs"], 1821);
}

TEST_F(SharedLabels, PairsWithAHeader) {
  PLUMB_REQUIRE_SHARED("data/classification/mrpc");
  LabelOptions options;
  options.format.header = true;
  options.format.label = "Quality";
  options.format.text = {"#1 String", "#2 String"};
  Json info = prepare(options, "mrpc/msr_paraphrase_train.txt");
  EXPECT_EQ(info["splits"]["train"]["pairs"].get<int>() + info["splits"]["valid"]["pairs"].get<int>(), 4076);
  EXPECT_GT(info["splits"]["train"]["target"]["tokens"], 0);
  options.format.label = "label";
  options.format.text = {"sentence1", "sentence2"};
  info = prepare(options, "rte/train.tsv", "rte/dev.tsv");
  EXPECT_EQ(info["labels"], Json({"entailment", "not_entailment"}));
  EXPECT_EQ(info["splits"]["valid"]["pairs"], 277);
}

TEST_F(SharedLabels, Latin1) {
  PLUMB_REQUIRE_SHARED("data/classification/sentences");
  LabelOptions options;
  options.format.separator = ColumnSeparator::space;
  EXPECT_THROW(prepare(options, "sentences/subj.all"), Error);
  options.format.encoding = TextEncoding::latin_1;
  const Json info = prepare(options, "sentences/subj.all");
  EXPECT_EQ(info["splits"]["train"]["labels"]["1"].get<int>() + info["splits"]["valid"]["labels"]["1"].get<int>(),
            5000);
}

}  // namespace
}  // namespace plumb
