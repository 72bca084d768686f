#include "plumb/data/sequences.h"

#include <gtest/gtest.h>

#include "support/errors.h"

namespace plumb {
namespace {

using Ids = std::vector<int64_t>;
using Tokens = std::vector<int32_t>;

TEST(Sequences, APairHasItsSpecialTokensWhereTheModelsExpectThem) {
  Batch batch;
  append_pair(batch, Tokens{7, 8}, {}, Tokens{9}, {}, 5);
  append_pair(batch, Tokens{}, {}, Tokens{4, 6, 7}, {}, 2);
  EXPECT_EQ(batch.source, (Ids{7, 8, 2, 2}));
  EXPECT_EQ(batch.target_input, (Ids{1, 9, 1, 4, 6, 7}));
  EXPECT_EQ(batch.labels, (Ids{9, 2, 4, 6, 7, 2}));
  EXPECT_EQ(batch.source_layout, Ragged({3, 1}));
  EXPECT_EQ(batch.target_layout, Ragged({2, 4}));
  EXPECT_EQ(batch.examples, (Ids{5, 2}));
}

TEST(Sequences, SpecialTokensAreThoseOfTheTokenizers) {
  const Specials german{.pad = 10, .bos = 11, .eos = 12, .unknown = 13};
  const Specials english{.pad = 20, .bos = 21, .eos = 22, .unknown = 23};
  Batch pair;
  append_pair(pair, Tokens{7}, german, Tokens{9}, english, 0);
  EXPECT_EQ(pair.source, (Ids{7, 12}));
  EXPECT_EQ(pair.target_input, (Ids{21, 9}));
  EXPECT_EQ(pair.labels, (Ids{9, 22}));
  Batch labeled;
  append_labeled(labeled, Tokens{7}, Tokens{8}, german, 3, 0);
  EXPECT_EQ(labeled.source, (Ids{11, 7, 12, 8, 12}));
}

TEST(Sequences, RunningTextHasNoEnd) {
  Batch batch;
  append_running_text(batch, Tokens{5, 6, 7}, {}, 0);
  append_sentence(batch, Tokens{8}, {}, 1);
  EXPECT_EQ(batch.target_input, (Ids{1, 5, 6, 1, 8}));
  EXPECT_EQ(batch.labels, (Ids{5, 6, 7, 8, 2}));
  EXPECT_EQ(batch.target_layout, Ragged({3, 2}));
  EXPECT_TRUE(batch.source.empty());
}

TEST(Sequences, ALabeledPairIsOneSequenceOfTwoSegments) {
  Batch batch;
  append_labeled(batch, Tokens{5, 6}, {}, {}, 1, 0);
  append_labeled(batch, Tokens{7}, Tokens{8, 9}, {}, 0, 4);
  EXPECT_EQ(batch.source, (Ids{1, 5, 6, 2, 1, 7, 2, 8, 9, 2}));
  EXPECT_EQ(batch.segments, (Ids{0, 0, 0, 0, 0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(batch.source_layout, Ragged({4, 6}));
  EXPECT_EQ(batch.labels, (Ids{1, 0}));
  EXPECT_EQ(batch.examples, (Ids{0, 4}));
  EXPECT_EQ(batch.weight(), 2);
}

TEST(Sequences, ALabeledPairMayHaveTwoSeparators) {
  Batch batch;
  append_labeled(batch, Tokens{7}, Tokens{8, 9}, {.separators = 2}, 0, 4);
  append_labeled(batch, Tokens{7}, {}, {.separators = 2}, 0, 5);
  EXPECT_EQ(batch.source, (Ids{1, 7, 2, 2, 8, 9, 2, 1, 7, 2}));
  EXPECT_EQ(batch.segments, (Ids{0, 0, 0, 0, 1, 1, 1, 0, 0, 0}));
  EXPECT_EQ(batch.source_layout, Ragged({7, 3}));
  EXPECT_EQ(labeled_length(1, 2, {.separators = 2}), 7);
  EXPECT_EQ(labeled_length(1, 0, {.separators = 2}), 3);
}

TEST(Sequences, ALabeledPairMayBeReadBackward) {
  Batch batch;
  append_labeled(batch, Tokens{5, 6, 7}, {}, {}, 1, 0, true);
  append_labeled(batch, Tokens{7, 4}, Tokens{8, 9}, {}, 0, 4, true);
  EXPECT_EQ(batch.source, (Ids{1, 7, 6, 5, 2, 1, 4, 7, 2, 9, 8, 2}));
  EXPECT_EQ(batch.segments, (Ids{0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1}));
}

TEST(Sequences, PairsFromJson) {
  const Batch batch = batch_from_json(Json::parse(R"({"source": [[8, 6], [4]], "target": [[7], [5, 9]], "note": ""})"));
  Batch expected;
  append_pair(expected, Tokens{8, 6}, {}, Tokens{7}, {}, 0);
  append_pair(expected, Tokens{4}, {}, Tokens{5, 9}, {}, 1);
  EXPECT_EQ(batch, expected);
}

TEST(Sequences, TextFromJsonIsReadAsItIs) {
  const Batch batch = batch_from_json(Json::parse(R"({"tokens": [[3, 4, 5], [6, 7]]})"));
  EXPECT_EQ(batch.target_input, (Ids{3, 4, 6}));
  EXPECT_EQ(batch.labels, (Ids{4, 5, 7}));
  EXPECT_EQ(batch.target_layout, Ragged({2, 1}));
}

TEST(Sequences, LabeledTextFromJsonIsReadAsItIs) {
  const Batch batch = batch_from_json(Json::parse(R"({"tokens": [[3, 4, 5], [6]], "labels": [1, 0]})"));
  EXPECT_EQ(batch.source, (Ids{3, 4, 5, 6}));
  EXPECT_EQ(batch.source_layout, Ragged({3, 1}));
  EXPECT_EQ(batch.labels, (Ids{1, 0}));
  EXPECT_TRUE(batch.segments.empty());
  const Batch pair = batch_from_json(Json::parse(R"({"tokens": [[3, 4, 5]], "segments": [[0, 0, 1]], "labels": [1]})"));
  EXPECT_EQ(pair.segments, (Ids{0, 0, 1}));
}

TEST(Sequences, MaskedTextFromJsonPredictsWhatHasALabel) {
  const Batch batch = batch_from_json(Json::parse(R"({"tokens": [[3, 4, 5], [6]], "labels": [[null, 8, 9], [7]]})"));
  EXPECT_EQ(batch.source, (Ids{3, 4, 5, 6}));
  EXPECT_EQ(batch.source_layout, Ragged({3, 1}));
  EXPECT_EQ(batch.predicted_positions, (Ids{1, 2, 3}));
  EXPECT_EQ(batch.labels, (Ids{8, 9, 7}));
  EXPECT_EQ(batch.examples, (Ids{0, 1}));
}

TEST(Sequences, JsonOfAnotherShape) {
  const auto message = [](const char* text) -> std::string {
    return test::message_of([&] { batch_from_json(Json::parse(text)); });
  };
  EXPECT_EQ(message("[]"), "a batch contains neither 'source' and 'target' nor 'tokens'");
  EXPECT_EQ(message(R"({"source": [[1]]})"), "a batch has no array 'target'");
  EXPECT_EQ(message(R"({"source": [[1]], "target": []})"), "a batch has 1 sources but 0 targets");
  EXPECT_EQ(message(R"({"source": [1], "target": [[1]]})"), "source[0] of a batch is not an array of token ids");
  EXPECT_EQ(message(R"({"source": [[1]], "target": [[1.5]]})"),
            "target[0] of a batch contains 1.5, which is not a token id");
  EXPECT_EQ(message(R"({"source": [[-1]], "target": [[1]]})"),
            "source[0] of a batch contains -1, which is not a token id");
  EXPECT_EQ(message(R"({"source": [[4294967296]], "target": [[1]]})"),
            "source[0] of a batch contains 4294967296, which is not a token id");
  EXPECT_EQ(message(R"({"tokens": [[1]]})"), "tokens[0] of a batch leaves nothing to predict");
  EXPECT_EQ(message(R"({"tokens": [[1]], "labels": []})"), "a batch of 1 sequences needs the same number of labels");
  EXPECT_EQ(message(R"({"tokens": [[]], "labels": [0]})"), "tokens[0] of a batch is empty");
  EXPECT_EQ(message(R"({"tokens": [[1, 2]], "labels": [[0]]})"),
            "labels[0] of a batch needs a label, or null, for each token");
  EXPECT_EQ(message(R"({"tokens": [[1, 2]], "labels": [[null, null]]})"), "no token of a batch has a label");
  EXPECT_EQ(message(R"({"tokens": [[1], [2]], "labels": [[0]]})"),
            "a batch of 2 sequences needs the same number of lists of labels");
  EXPECT_EQ(message(R"({"tokens": [[1, 2]], "segments": [[0]], "labels": [0]})"),
            "a batch needs one segment for each token");
}

}  // namespace
}  // namespace plumb
