// The mean of checkpoints against one computed tensor by tensor, and the choice of the checkpoints.
#include "plumb/run/checkpoint_average.h"
#include "plumb/base/input.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "copy_task.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/json_fields.h"
#include "plumb/io/safetensors.h"
#include "plumb/run/directory.h"
#include "plumb/run/metrics_file.h"
#include "plumb/train/run_training.h"
#include "support/errors.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

class CheckpointAverage : public ::testing::Test, protected test::CopyTaskFolder {
 protected:
  CheckpointAverage() {
    run_.train.checkpoint_every = run_.train.validate_every = 4;
    run_.train.keep_checkpoints = 4;  // of steps 8, 12, 16 and 20
  }

  [[nodiscard]] fs::path checkpoint(int64_t step) const {
    return folder_ / "run" / "checkpoints" / fmt::format("step-{:06}", step);
  }

  void expect_mean(const fs::path& out, const std::vector<fs::path>& checkpoints) {
    std::vector<NamedTensors> all;
    for (const fs::path& path : checkpoints) all.push_back(load_safetensors(path / "model.safetensors"));
    const NamedTensors found = load_safetensors(out / "model.safetensors");
    ASSERT_EQ(found.size(), all[0].size());
    for (size_t i = 0; i < found.size(); ++i) {
      const Tensor values = found[i].second.contiguous().view({-1});
      for (int64_t j = 0; j < values.numel(); ++j) {
        double sum = 0;
        for (const NamedTensors& tensors : all) {
          ASSERT_EQ(tensors[i].first, found[i].first);
          sum += static_cast<double>(tensors[i].second.contiguous().view({-1})[j].item<float>());
        }
        ASSERT_EQ(values[j].item<float>(), static_cast<float>(sum / static_cast<double>(all.size()))) << found[i].first;
      }
    }
  }
};

TEST_F(CheckpointAverage, OfTheLast) {
  const fs::path run = folder_ / "run", out = folder_ / "averaged";
  run_training(run_, run);
  EXPECT_EQ(last_checkpoints(run, 3), (std::vector<fs::path>{checkpoint(12), checkpoint(16), checkpoint(20)}));
  average_checkpoints(run, last_checkpoints(run, 3), out);
  expect_mean(out, {checkpoint(12), checkpoint(16), checkpoint(20)});
  EXPECT_EQ(read_json(out / "result.json")["averaged"], (Json{12, 16, 20}));
  // It can be used like a run, with its vocabulary, but not trained.
  EXPECT_EQ(read_file(out / "data.json"), read_file(run / "data.json"));
  const RunAndCheckpoint place = locate_run(out.string());
  EXPECT_EQ(place.run, out);
  EXPECT_EQ(latest_checkpoint(out), out);
  const std::unique_ptr<Model> model = load_model(place.run, place.checkpoint);
  EXPECT_TRUE(
      at::equal(model->parameters().values()[0].detach(), load_safetensors(out / "model.safetensors")[0].second));
  EXPECT_THROW((void)run_training(load_run_config(out), out), Error);
  // Replaces the earlier average; the mean of one checkpoint is itself.
  average_checkpoints(run, last_checkpoints(run, 1), out);
  expect_mean(out, {checkpoint(20)});
}

TEST_F(CheckpointAverage, OfTheBest) {
  const fs::path run = folder_ / "run";
  run_training(run_, run);
  // As if the validations had found these values: the best are neither the last nor the first.
  const fs::path metrics = run / "metrics.jsonl";
  const std::map<int64_t, double> found = {{4, 0.1}, {8, 2.0}, {12, 1.0}, {16, NAN}, {20, 1.5}};
  std::string text = read_lines(metrics).front() + "\n";
  for (TrainPoint point : read_metrics(metrics)) {
    if (const auto value = found.find(point.step); value != found.end()) point.metrics.set("valid_nll", value->second);
    text += described_json(point).dump() + "\n";
  }
  write_file_atomic(metrics, text);
  const std::vector<fs::path> best = {checkpoint(12), checkpoint(20)};
  EXPECT_EQ(best_checkpoints(run, 2), best);
  average_checkpoints(run, best_checkpoints(run, 2), folder_ / "out");
  expect_mean(folder_ / "out", best);
}

TEST_F(CheckpointAverage, OfTheBestByAnotherMetric) {
  const fs::path run = folder_ / "run";
  run_.train.best_metric = "bleu";
  run_.train.score_every = 20;
  run_training(run_, run);
  const std::map<int64_t, double> found = {{4, 90.0}, {8, 1.0}, {12, 8.0}, {16, 2.0}, {20, 7.0}};
  std::string text = read_lines(run / "metrics.jsonl").front() + "\n";
  for (TrainPoint point : read_metrics(run / "metrics.jsonl")) {
    if (const auto value = found.find(point.step); value != found.end()) point.metrics.set("bleu", value->second);
    text += described_json(point).dump() + "\n";
  }
  write_file_atomic(run / "metrics.jsonl", text);
  EXPECT_EQ(best_checkpoints(run, 2), (std::vector<fs::path>{checkpoint(12), checkpoint(20)}));
}

// For example, on a machine to which only the run was copied.
TEST_F(CheckpointAverage, OfTheBestByLossNeedsNoData) {
  run_.train.best_metric = "valid_loss";
  run_training(run_, folder_ / "run");
  const std::vector<fs::path> best = best_checkpoints(folder_ / "run", 2);
  fs::remove_all(run_.data);
  EXPECT_EQ(best_checkpoints(folder_ / "run", 2), best);
}

TEST_F(CheckpointAverage, SatisfiesTheConstraintsOfTheModel) {
  run_.model.residual = "ngpt";
  run_.model.share_embeddings = "none";
  run_training(run_, folder_ / "run");
  average_checkpoints(folder_ / "run", last_checkpoints(folder_ / "run", 3), folder_ / "out");
  const RunAndCheckpoint place = locate_run((folder_ / "out").string());
  const std::unique_ptr<Model> model = load_model(place.run, place.checkpoint);
  const Tensor rows = model->parameters().at("tgt_embed.weight").value.detach().square().sum(1).sqrt();
  EXPECT_LT((rows - 1).abs().max().item<double>(), 1e-6);
}

TEST_F(CheckpointAverage, RefusesMoreThanThereAreAndDirectoriesInUse) {
  const fs::path run = folder_ / "run";
  run_.train.validate_every = 8;
  run_training(run_, run);
  EXPECT_EQ(test::message_of([&] { (void)last_checkpoints(run, 5); }), run.string() + ": has 4 checkpoints, not 5");
  EXPECT_EQ(test::message_of([&] { (void)best_checkpoints(run, 4); }),
            run.string() + ": has 3 checkpoints with a value of valid_nll at their step, not 4");
  EXPECT_EQ(test::message_of([&] { (void)last_checkpoints(run, 0); }), "cannot average 0 checkpoints");
  const std::string before = read_file(run / "config.toml");
  EXPECT_EQ(test::message_of([&] { average_checkpoints(run, last_checkpoints(run, 2), run); }),
            run.string() + ": is a training run");
  EXPECT_EQ(read_file(run / "config.toml"), before);
  EXPECT_EQ(test::message_of([&] { average_checkpoints(run, last_checkpoints(run, 2), folder_ / "data"); }),
            (folder_ / "data").string() + ": is a data directory, not a run directory");
}

}  // namespace
}  // namespace plumb
