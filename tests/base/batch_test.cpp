#include "plumb/base/batch.h"

#include <gtest/gtest.h>

#include "plumb/base/error.h"

namespace plumb {
namespace {

using Ids = std::vector<int64_t>;

TEST(Batch, SpecialsStandWhereTheModelsExpectThem) {
  Batch batch;
  append(batch, std::vector<int32_t>{7, 8}, std::vector<int32_t>{9}, 5);
  append(batch, std::vector<int32_t>{}, std::vector<int32_t>{4, 6, 7}, 2);
  EXPECT_EQ(batch.source, (Ids{7, 8, 2, 2}));
  EXPECT_EQ(batch.target_input, (Ids{1, 9, 1, 4, 6, 7}));
  EXPECT_EQ(batch.labels, (Ids{9, 2, 4, 6, 7, 2}));
  EXPECT_EQ(batch.source_layout, Ragged({3, 1}));
  EXPECT_EQ(batch.target_layout, Ragged({2, 4}));
  EXPECT_EQ(batch.examples, (Ids{5, 2}));
}

TEST(Batch, FromJson) {
  const Batch batch = batch_from_json(Json::parse(R"({"source": [[8, 6], [4]], "target": [[7], [5, 9]], "note": ""})"));
  Batch expected;
  append(expected, std::vector<int32_t>{8, 6}, std::vector<int32_t>{7}, 0);
  append(expected, std::vector<int32_t>{4}, std::vector<int32_t>{5, 9}, 1);
  EXPECT_EQ(batch, expected);
}

TEST(Batch, JsonOfAnotherShape) {
  const auto message = [](const char* text) -> std::string {
    try {
      batch_from_json(Json::parse(text));
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message("[]"), "a batch has no array 'source'");
  EXPECT_EQ(message(R"({"source": [[1]]})"), "a batch has no array 'target'");
  EXPECT_EQ(message(R"({"source": [[1]], "target": []})"), "a batch has 1 sources but 0 targets");
  EXPECT_EQ(message(R"({"source": [1], "target": [[1]]})"), "source[0] of a batch is no array of token ids");
  EXPECT_EQ(message(R"({"source": [[1]], "target": [[1.5]]})"), "target[0] of a batch holds 1.5, which is no token id");
  EXPECT_EQ(message(R"({"source": [[-1]], "target": [[1]]})"), "source[0] of a batch holds -1, which is no token id");
  EXPECT_EQ(message(R"({"source": [[4294967296]], "target": [[1]]})"),
            "source[0] of a batch holds 4294967296, which is no token id");
}

}  // namespace
}  // namespace plumb
