// Records of a run with values that no run writes: they are errors, and nothing overflows later.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/run/metrics_file.h"
#include "plumb/run/seal.h"
#include "plumb/run/train_state.h"
#include "plumb/trouble/spikes.h"
#include "support/paths.h"

namespace plumb {
namespace {

std::string refusal_of_record(const std::function<void()>& read) {
  try {
    read();
  } catch (const Error& error) {
    return error.what();
  }
  return "no Error was thrown";
}

TEST(DamagedRecords, OfMetricsNameTheFile) {
  const test::TemporaryDirectory directory;
  const auto path = directory / "metrics.jsonl";
  const char* const lines[] = {R"({"step": -9223372036854775808, "loss": 1})",
                               R"({"step": 1, "loss": 1, "tokens": -1})",
                               R"({"step": 1, "loss": 1, "epoch": 1e300})",
                               R"({"step": 1, "watch": 5})",
                               R"({"step": -1, "watch": {}})",
                               R"({"step": 1, "trouble": [1]})",
                               R"({"step": 1, "trouble": {"to": "x"}})",
                               R"({"step": 1, "trouble": {"text": 3}})",
                               R"({"step": 1, "trouble": {"action": null}})"};
  for (const char* line : lines) {
    write_file_atomic(path, std::string(line) + "\n");
    const std::string refusal = refusal_of_record([&] {
      (void)read_metrics(path);
      (void)read_watch_records(path);
      (void)read_trouble_records(path);
    });
    EXPECT_TRUE(refusal.starts_with(path.string() + ": ")) << line << ": " << refusal;
  }
}

TEST(DamagedRecords, OfMetricsThatNestDeeplyEndTheHistory) {
  const test::TemporaryDirectory directory;
  const auto path = directory / "metrics.jsonl";
  std::string deep = R"({"step": 2, "watch": )";
  for (int i = 0; i < 100'000; ++i) deep += R"({"a": )";
  deep += "1" + std::string(100'001, '}');
  write_file_atomic(path, R"({"step": 1, "watch": {"a": 1}})" + ("\n" + deep) + "\n");
  EXPECT_EQ(read_watch_records(path).size(), 1U);
}

TEST(DamagedRecords, OfAResultAreRefused) {
  for (const char* text : {R"({"outcome": "finished", "steps": 1, "history": null})",
                           R"({"outcome": "finished", "steps": -1, "history": []})",
                           R"({"outcome": "finished", "steps": 1, "best_step": 0.5, "history": []})"})
    EXPECT_THROW(TrainResult::from_json(Json::parse(text)), Error) << text;
  // The document's own keys are not metrics.
  const Json odd = Json::parse(R"({"schema": 1, "watched": null, "outcome": "finished", "steps": 1, "history": []})");
  EXPECT_TRUE(TrainResult::from_json(odd).metrics.empty());
}

TEST(DamagedRecords, OfAStateAreRefused) {
  const Json good = to_json(TrainState{}, "bleu");
  EXPECT_EQ(to_json(train_state_from_json(good, "bleu", "state"), "bleu"), good);
  for (const char* key : {"step", "epoch", "batch", "tokens", "best_step", "validations_since_best", "best_list"}) {
    Json bad = good;
    bad[key] = -1;
    if (std::string(key) == "best_list") bad[key] = Json::array({Json::array({-1, 0.5})});
    EXPECT_TRUE(refusal_of_record([&] { (void)train_state_from_json(bad, "bleu", "state"); }).starts_with("state: "))
        << key;
  }
  Json bad_point = good;
  bad_point["pending_point"] = {{"loss", 1.0}};
  EXPECT_TRUE(
      refusal_of_record([&] { (void)train_state_from_json(bad_point, "bleu", "state"); }).starts_with("state: "));
  const Json mark = to_json(FileMark{3, 0x0A1B2C3D});
  EXPECT_EQ(file_mark_from_json(mark), (FileMark{3, 0x0A1B2C3D}));
  for (const char* text : {"", "x", "0a1b2c3d4e", "0a1b2c3 ", "-1"}) {
    Json bad = mark;
    bad["crc32"] = text;
    EXPECT_THROW(file_mark_from_json(bad), Error) << text;
  }
  Json spike = to_json(Spike{"loss", 30, 9, 2, 12, 29, 2});
  spike["since"] = -1;
  EXPECT_THROW(spike_from_json(spike), Error);
}

}  // namespace
}  // namespace plumb
