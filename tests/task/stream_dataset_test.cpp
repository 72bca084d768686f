// A text as a stream: its columns compared with the text itself, and its evaluation with a pass over whole rows.
#include "plumb/task/stream_dataset.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "plumb/base/error.h"
#include "plumb/base/random.h"
#include "plumb/model/awd_lstm.h"
#include "plumb/task/task.h"
#include "support/gradcheck.h"
#include "support/paths.h"
#include "support/text_lines.h"

namespace plumb {
namespace {

using Ids = std::vector<int64_t>;

class Stream : public ::testing::Test {
 protected:
  Stream() {
    Random random(1, "stream");
    std::vector<std::vector<int32_t>> lines(11);
    for (std::vector<int32_t>& line : lines) {
      for (uint64_t n = random.below(6); n > 0; --n) line.push_back(4 + static_cast<int32_t>(random.below(90)));
      running_.insert(running_.end(), line.begin(), line.end());
      ended_.insert(ended_.end(), line.begin(), line.end());
      ended_.push_back(specials_.eos);
    }
    write_split(folder_ / "lines.split", std::vector<std::vector<int32_t>>(lines.size()), lines);
  }

  Split split(bool running) const {
    const Split found = Split::open(folder_ / "lines.split");
    found.verify();
    return running ? found.as_running_text() : found;
  }
  const Ids& text(bool running) const { return running ? running_ : ended_; }

  test::TemporaryDirectory folder_;
  Specials specials_;
  Ids running_, ended_;  // all tokens of the text
};

TEST_F(Stream, EveryTokenIsPredictedOnceFromTheOneBeforeIt) {
  for (const auto& [running, backward] : {std::pair{false, false}, {true, false}, {false, true}, {true, true}}) {
    Ids all = text(running);
    if (backward) std::reverse(all.begin(), all.end());
    for (const int64_t rows : {1, 2, 3, 4, 5, 7}) {
      SCOPED_TRACE(::testing::Message() << rows << " rows, running " << running << ", backward " << backward);
      const StreamDataset stream(split(running), specials_, rows, {3}, backward);
      std::vector<Ids> read(static_cast<size_t>(rows)), labels(static_cast<size_t>(rows));
      for (const auto& columns : cut_stream(stream.size(), {3})) {
        const Batch batch = stream.batch(columns);
        ASSERT_EQ(batch.target_layout.sequences(), rows);
        ASSERT_EQ(std::ssize(batch.examples), rows);
        ASSERT_EQ(batch.labels.size(), batch.target_input.size());
        int64_t tokens = 0;
        for (const int64_t column : columns) tokens += stream.cost(column).target;
        EXPECT_EQ(tokens, std::ssize(batch.labels));
        for (int64_t row = 0; row < rows; ++row) {
          const auto at = static_cast<size_t>(row);
          for (int64_t t = batch.target_layout.begin(row); t < batch.target_layout.begin(row + 1); ++t) {
            read[at].push_back(batch.target_input[static_cast<size_t>(t)]);
            labels[at].push_back(batch.labels[static_cast<size_t>(t)]);
          }
        }
      }
      Ids predicted, seen;
      for (size_t row = 0; row < read.size(); ++row) {
        EXPECT_GE(labels[row].size(), labels.back().size());
        EXPECT_LE(labels[row].size(), labels.back().size() + 1);
        predicted.insert(predicted.end(), labels[row].begin(), labels[row].end());
        seen.insert(seen.end(), read[row].begin(), read[row].end());
      }
      EXPECT_EQ(predicted, all);
      Ids before{specials_.bos};
      before.insert(before.end(), all.begin(), all.end() - 1);
      EXPECT_EQ(seen, before);
    }
  }
}

TEST_F(Stream, ColumnsThatAreNotAdjacentAreSequencesOfTheirOwn) {
  const StreamDataset stream(split(true), specials_, 2, {3});
  const Batch apart = stream.batch(std::vector<int64_t>{2, 3, 0});
  EXPECT_EQ(apart.target_layout.offsets(), (Ids{0, 2, 4, 5, 6}));
  EXPECT_EQ(apart.examples, (Ids{2, 2, 0, 0}));
  const Ids& all = text(true);
  const auto second = static_cast<size_t>((std::ssize(all) + 1) / 2);  // where the second row begins
  EXPECT_EQ(apart.labels, (Ids{all[2], all[3], all[second + 2], all[second + 3], all[0], all[second]}));
  EXPECT_THROW((void)stream.batch(std::vector<int64_t>{stream.size()}), Error);
}

TEST_F(Stream, HasNoMoreRowsThanTokens) {
  const StreamDataset stream(split(true), specials_, 10000, {3});
  EXPECT_EQ(stream.rows(), std::ssize(running_));
  EXPECT_EQ(stream.size(), 1);
  EXPECT_THROW(StreamDataset(split(true), specials_, 0, {3}), Error);
  EXPECT_THROW(StreamDataset(split(false), Specials{.eos = -1}, 2, {3}), Error);
  EXPECT_THROW(cut_stream(5, {0}), Error);
}

class StreamTask : public Stream {
 protected:
  StreamTask() {
    test::prepare_lines(folder_ / "data",
                        test::in_turn(20, {"a big cat sees the dog", "the dog sees a cat", "the dog sees a cat"}),
                        {"the cat sees a dog", "a dog", "the big dog sees"}, 9);
  }

  std::unique_ptr<Task> task(const std::string& options) const {
    TaskConfig config;
    Config::from_string("[task.language-modeling]\n" + options, "test").read("task", config);
    return make_task(config, DataDirectory::open(folder_ / "data"), "awd-lstm");
  }
};

// The state is carried over segments, so their length does not matter.
TEST_F(StreamTask, IsEvaluatedAsIfEachRowWereReadAtOnce) {
  ModelConfig config;
  config.kind = "awd-lstm";
  config.embedding_size = 6;
  config.hidden_size = 8;
  config.layers = 2;
  task("")->complete(config);
  AwdLstm model(config, at::kDouble);
  model.parameters().flat().copy_(testing::random_tensor({model.parameters().count()}, 3, 0.5));
  for (const int64_t rows : {1, 2, 3}) {
    const auto few = task(fmt::format("stream = 4\nevaluation_rows = {}\nbptt = 2\n", rows));
    const Split& split = few->data().split("valid");
    Ids all;
    for (int64_t i = 0; i < split.size(); ++i) {
      for (const int32_t id : split.target(i)) all.push_back(id);
    }
    const int64_t length = std::ssize(all) / rows, longer = std::ssize(all) % rows;
    double expected = 0;
    for (int64_t row = 0, begin = 0; row < rows; ++row) {
      const int64_t end = begin + length + (row < longer ? 1 : 0);
      Ids read;
      for (int64_t t = begin; t < end; ++t)
        read.push_back(t == 0 ? few->data().target_tokenizer().specials().bos : all[static_cast<size_t>(t - 1)]);
      ForwardContext context;
      const Tensor hidden = model.run(read, Ragged({end - begin}), {}, context).hidden;
      const Tensor log_p = at::log_softmax(model.logits(hidden), 1);
      for (int64_t t = begin; t < end; ++t) expected -= log_p[t - begin][all[static_cast<size_t>(t)]].item<double>();
      begin = end;
    }
    for (const int64_t bptt : {1, 2, 5, 100}) {
      const auto any = task(fmt::format("stream = 4\nevaluation_rows = {}\nbptt = {}\n", rows, bptt));
      const Sums sums = evaluate(*any, model, *any->dataset("valid"), 64, 0, {});
      EXPECT_NEAR(sums.nll, expected, 1e-10 * expected) << rows << " rows, bptt " << bptt;
      EXPECT_EQ(sums.weight, static_cast<double>(all.size()));
      const double mean = expected / static_cast<double>(all.size());
      EXPECT_NEAR(*any->metrics(sums).get("perplexity"), std::exp(mean), 1e-10 * std::exp(mean));
    }
  }
}

TEST_F(StreamTask, SaysWhatDoesNotGoTogether) {
  EXPECT_THROW(task("stream = -1\n"), Error);
  EXPECT_THROW(task("stream = 4\nbptt = 0\n"), Error);
  EXPECT_THROW(task("stream = 4\nevaluation_rows = 0\n"), Error);
  EXPECT_THROW(task("stream = 4\napart = true\n"), Error);
  EXPECT_THROW(task("stream = 4\npack = 16\n"), Error);
  ModelConfig config;
  config.kind = "decoder";
  EXPECT_THROW(task("stream = 4\n")->complete(config), Error);
  EXPECT_NO_THROW(task("")->complete(config));
  const auto varied = task("stream = 4\n"), fixed = task("stream = 4\nbptt = 30\nvaried_bptt = false\n");
  EXPECT_EQ(varied->dataset("train")->stream(), (StreamCut{70, true}));
  EXPECT_EQ(varied->dataset("valid")->stream(), (StreamCut{70, false}));
  EXPECT_EQ(fixed->dataset("train")->stream(), (StreamCut{30, false}));
  EXPECT_EQ(task("")->dataset("train")->stream(), std::nullopt);
}

}  // namespace
}  // namespace plumb
