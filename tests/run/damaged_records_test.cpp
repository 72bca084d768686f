// Records of a run with values that no run writes: they are errors, and nothing overflows later.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/json_fields.h"
#include "plumb/run/metrics_file.h"
#include "plumb/run/seal.h"
#include "plumb/run/train_state.h"
#include "plumb/trouble/spikes.h"
#include "support/errors.h"
#include "support/paths.h"

namespace plumb {
namespace {

/// A line of metrics.jsonl with another value of this key; of "trouble", within it.
std::string damaged_line(const Json& good, const char* key, const Json& value) {
  Json line = good;
  (line.contains("trouble") && std::string(key) != "step" && std::string(key) != "trouble" ? line["trouble"]
                                                                                           : line)[key] = value;
  return line.dump() + "\n";
}

TEST(DamagedRecords, OfMetricsNameTheFile) {
  const test::TemporaryDirectory directory;
  const auto path = directory / "metrics.jsonl";
  const auto refused = [&](const std::string& line) {
    write_file_atomic(path, line);
    const std::string refusal = test::message_of([&] { (void)read_records(path); });
    return refusal.starts_with(path.string() + ": ");
  };
  const Json point = described_json(TrainPoint{.step = 1}), trouble = described_json(TroubleRecord{.step = 1});
  EXPECT_FALSE(refused(point.dump() + "\n"));
  EXPECT_FALSE(refused(trouble.dump() + "\n"));
  EXPECT_TRUE(refused(damaged_line(point, "step", std::numeric_limits<int64_t>::min())));
  EXPECT_TRUE(refused(damaged_line(point, "tokens", -1)));
  EXPECT_TRUE(refused(damaged_line(point, "epoch", 1e300)));
  EXPECT_TRUE(refused(damaged_line(point, "metrics", 5)));
  EXPECT_TRUE(refused(damaged_line(point, "metrics", {{"bleu", "high"}})));
  EXPECT_TRUE(refused(R"({"step": 1, "loss": 1})"));
  EXPECT_TRUE(refused(R"({"step": 1, "watch": 5})"));
  EXPECT_TRUE(refused(R"({"step": -1, "watch": {}})"));
  EXPECT_TRUE(refused(damaged_line(trouble, "trouble", Json::array({1}))));
  EXPECT_TRUE(refused(damaged_line(trouble, "to", "x")));
  EXPECT_TRUE(refused(damaged_line(trouble, "text", 3)));
  EXPECT_TRUE(refused(damaged_line(trouble, "action", nullptr)));
  EXPECT_TRUE(refused(damaged_line(trouble, "kind", "bad luck")));
}

TEST(DamagedRecords, OfMetricsThatNestDeeplyAreRefused) {
  const test::TemporaryDirectory directory;
  const auto path = directory / "metrics.jsonl";
  std::string deep = R"({"step": 2, "watch": )";
  for (int i = 0; i < 100'000; ++i) deep += R"({"a": )";
  deep += "1" + std::string(100'001, '}');
  write_file_atomic(path, R"({"step": 1, "watch": {"a": {"seconds": 1}}})" + ("\n" + deep) + "\n");
  EXPECT_EQ(test::message_of([&] { (void)read_records(path); }), path.string() + ": line 2: is no JSON object");
  EXPECT_EQ(readable_records(path).watched.size(), 1U);
}

TEST(DamagedRecords, OnlyTheLastLineOfMetricsMayBeCut) {
  const test::TemporaryDirectory directory;
  const auto path = directory / "metrics.jsonl";
  const auto point = [](int64_t step) { return described_json(TrainPoint{.step = step, .loss = 1}).dump(); };
  const std::string trouble = described_json(TroubleRecord{.step = 3}).dump();
  const std::string watched = R"({"step": 3, "watch": {}})";
  const std::string intact = point(1) + "\n" + trouble + "\n" + watched + "\n" + point(3) + "\n";
  for (const std::string& last : {point(4).substr(0, 30), std::string("{"), std::string(20, '\0')}) {
    write_file_atomic(path, intact + last);
    const RunRecords records = read_records(path);
    EXPECT_EQ(records.points.size(), 2U);
    EXPECT_EQ(records.damage, "");
  }
  // The bytes of the end of one line and of the beginning of the next.
  const std::string bad = R"({"step": 2, "lo)" + std::string("\n") + R"(ss": 1})" + "\n";
  write_file_atomic(path, point(1) + "\n" + bad + trouble + "\n" + watched + "\n" + point(3) + "\n");
  const RunRecords records = readable_records(path);
  EXPECT_EQ(records.points.size(), 2U);
  EXPECT_EQ(records.points.back().step, 3);
  EXPECT_EQ(records.watched.size(), 1U);
  EXPECT_EQ(records.troubles.size(), 1U);
  EXPECT_EQ(records.damage, path.string() + ": line 2: is no JSON object (and 1 more)");
  EXPECT_EQ(test::message_of([&] { (void)read_records(path); }), records.damage);
  EXPECT_TRUE(readable_records(directory / "none").points.empty());
}

TEST(DamagedRecords, OfAResultAreRefused) {
  const Json good = TrainResult{.steps = 1}.to_json();
  const std::pair<const char*, Json> damages[] = {
      {"history", nullptr}, {"steps", -1}, {"best", {{"metric", "bleu"}, {"value", 1}, {"step", 0.5}}}, {"metrics", 1}};
  for (const auto& [key, value] : damages) {
    Json bad = good;
    bad[key] = value;
    EXPECT_THROW((void)TrainResult::from_json(bad), Error) << bad;
  }
  // The document's own keys are not metrics.
  EXPECT_TRUE(TrainResult::from_json(good).metrics.empty());
}

TEST(DamagedRecords, OfAStateAreRefused) {
  TrainState state;
  state.best_list = {{3, 0.5}};
  const Json good = described_json(state);
  EXPECT_EQ(described_json(from_described_json<TrainState>(good)), good);
  for (const char* key : {"step", "epoch", "batch", "tokens", "best_step", "validations_since_best", "best_list"}) {
    Json bad = good;
    bad[key] = -1;
    if (std::string(key) == "best_list") bad[key] = {{{"step", -1}, {"value", 0.5}}};
    EXPECT_THROW((void)from_described_json<TrainState>(bad), Error) << key;
  }
  Json bad_point = good;
  bad_point["pending_point"] = {{"loss", 1.0}};
  EXPECT_THROW((void)from_described_json<TrainState>(bad_point), Error);
  const Json mark = described_json(FileMark{3, 0x0A1B2C3D});
  EXPECT_EQ(mark, (Json{{"bytes", 3}, {"crc32", "0a1b2c3d"}}));
  EXPECT_EQ(from_described_json<FileMark>(mark), (FileMark{3, 0x0A1B2C3D}));
  for (const char* text : {"", "x", "0a1b2c3d4e", "0a1b2c3 ", "-1"}) {
    Json bad = mark;
    bad["crc32"] = text;
    EXPECT_THROW((void)from_described_json<FileMark>(bad), Error) << text;
  }
  Json spike = described_json(Spike{"loss", 30, 9, 2, 12, 29, 2});
  spike["since"] = -1;
  EXPECT_THROW((void)from_described_json<Spike>(spike), Error);
}

}  // namespace
}  // namespace plumb
