// A run made by version 0.1, stored in tests/golden/run_0_1, resumes and ends as it did with that version.
#include <gtest/gtest.h>

#include <cmath>

#include "plumb/base/files.h"
#include "plumb/base/progress.h"
#include "plumb/io/safetensors.h"
#include "plumb/run/checkpoints.h"
#include "plumb/run/directory.h"
#include "plumb/run/metrics_file.h"
#include "plumb/train/run_training.h"
#include "support/paths.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

TEST(EarlierRelease, ARunOfVersion01GoesOnToTheSameEnd) {
  set_verbosity(Verbosity::quiet);
  const fs::path stored = test::source_directory() / "tests" / "golden" / "run_0_1";
  const test::TemporaryDirectory folder;
  fs::copy(stored, folder.path(), fs::copy_options::recursive);
  RunConfig config = load_run_config(folder / "run");
  config.data = (folder / "data").string();  // moved
  const TrainResult result = run_training(config, folder / "run");
  set_verbosity(Verbosity::normal);
  EXPECT_EQ(result.outcome, "finished");
  EXPECT_EQ(result.steps, 60);

  // Instruction sets round differently; on the machine that made the run, the bytes are equal. The bias of the keys
  // does not affect attention: its gradient is rounding error, which Adam scales up.
  const auto without_keys = [](const std::string& name, const Tensor& values) {
    if (!name.ends_with("in_proj_bias")) return values;
    const std::vector<Tensor> parts = values.chunk(3);  // of query, key and value
    return at::cat({parts[0], parts[2]});
  };
  const NamedTensors wanted = load_safetensors(stored / "end" / "model.safetensors");
  const NamedTensors found = load_safetensors(latest_checkpoint(folder / "run") / "model.safetensors");
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(found[i].first, wanted[i].first);
    EXPECT_TRUE(at::allclose(without_keys(found[i].first, found[i].second),
                             without_keys(wanted[i].first, wanted[i].second), 1e-4, 1e-5))
        << wanted[i].first;
  }
  Json now = read_json(latest_checkpoint(folder / "run") / "state.json"),
       then = read_json(stored / "end" / "state.json");
  EXPECT_NEAR(now["best_valid_nll"], then["best_valid_nll"], 1e-4);
  for (const char* key : {"step", "epoch", "batch", "best_step", "validations_since_best", "complete"})
    EXPECT_EQ(now[key], then[key]) << key;

  const auto points = read_metrics(folder / "run" / "metrics.jsonl");
  const auto before = read_metrics(stored / "end" / "metrics.jsonl");
  ASSERT_EQ(points.size(), before.size());
  for (size_t i = 0; i < points.size(); ++i) {
    EXPECT_EQ(points[i].step, before[i].step);
    EXPECT_NEAR(points[i].loss, before[i].loss, 1e-4);
    EXPECT_EQ(points[i].metrics.get("valid_nll").has_value(), before[i].metrics.get("valid_nll").has_value());
  }
  EXPECT_TRUE(damage_of(latest_checkpoint(folder / "run")).empty());
}

}  // namespace
}  // namespace plumb
