// A model that fits into no single process: each of several begins with its pieces, saves, loads and ends with them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "copy_task.h"
#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "plumb/run/checkpoints.h"
#include "plumb/run/directory.h"
#include "support/port.h"
#include "support/process.h"

namespace plumb {
namespace {

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they use memory of their own
using test::Process;

struct DivisionInFour {
  std::string name;
  std::function<void(TrainConfig&)> set;
};

/// 17 layers of width 512: 53 million parameters, in float32 with gradients and Adam's moments 0.86 GB.
class StartMemory : public ::testing::TestWithParam<DivisionInFour>, protected test::CopyTaskFolder {
 protected:
  StartMemory() {
    run_.model.kind = "decoder";
    run_.model.d_model = 512;
    run_.model.feed_forward = 2048;
    run_.model.heads = 8;
    run_.train.optimizer = "adam";
    run_.train.processes = kProcesses;
    GetParam().set(run_.train);
    run_.train.validate_every = 1000;
    run_.train.checkpoint_every = 1000;  // at the end only
  }
  void write() { write_file_atomic(folder_ / "config.toml", to_toml(run_)); }

  static constexpr int64_t kLayers = 17, kFewLayers = 2, kLayer = 12 * 512 * 512;

  /// Trains in four processes, and returns the peak memory of each. That of rank 0 is taken until the first
  /// step, since the pages of files that it reads and writes count too.
  std::vector<int64_t> peaks(const std::string& steps) {
    const int port = test::unused_port();
    std::vector<std::unique_ptr<Process>> all;
    for (int64_t rank = 0; rank < kProcesses; ++rank) {
      std::vector<std::string> command = {fmt::format("RANK={}", rank),
                                          fmt::format("WORLD_SIZE={}", kProcesses),
                                          "MASTER_ADDR=127.0.0.1",
                                          fmt::format("MASTER_PORT={}", port),
                                          "OMP_NUM_THREADS=1",
                                          test::plumb_program(),
                                          "train",
                                          "--quiet",
                                          "--config",
                                          (folder_ / "config.toml").string(),
                                          "--out",
                                          out_.string(),
                                          "--set",
                                          "train.steps=" + steps};
      all.push_back(std::make_unique<Process>("env", command));
    }
    std::vector<int64_t> peaks(kProcesses);
    for (bool running = true; running; std::this_thread::sleep_for(std::chrono::milliseconds(5))) {
      running = false;
      for (size_t rank = 0; rank < kProcesses; ++rank) {
        const auto [ended, peak] = test::status_of(all[rank]->id());
        running = running || !ended;
        if (rank > 0 || !has_step()) peaks[rank] = std::max(peaks[rank], peak);
      }
    }
    for (const auto& each : all) test::succeeded(each->wait());
    return peaks;
  }

  [[nodiscard]] bool has_step() const {
    const std::filesystem::path metrics = out_ / "metrics.jsonl";
    return std::filesystem::exists(metrics) && read_file(metrics).find("\"step\":1,") != std::string::npos;
  }

  static constexpr int64_t kProcesses = 4;
  std::filesystem::path out_ = folder_ / "run";
};

TEST_P(StartMemory, IsThatOfPieces) {
  run_.model.decoder_layers = kFewLayers;
  write();
  const std::vector<int64_t> small = peaks("4");
  std::filesystem::remove_all(out_);
  run_.model.decoder_layers = kLayers;
  write();
  // Weights, gradients and moments, of which a quarter is held, and a layer with its gradients.
  const int64_t more = (kLayers - kFewLayers) * kLayer * 16, allowed = more / kProcesses + kLayer * 8;
  const std::vector<int64_t> begun = peaks("4"), resumed = peaks("6");
  EXPECT_EQ(step_of(latest_checkpoint(out_)), 6);
  for (size_t rank = 0; rank < kProcesses; ++rank) {
    EXPECT_GT(small[rank], 0);
    EXPECT_LT(begun[rank] - small[rank], allowed * 5 / 4) << rank;
    if (rank > 0) {
      EXPECT_LT(resumed[rank] - small[rank], allowed * 5 / 4) << rank;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Of, StartMemory,
    ::testing::Values(DivisionInFour{"Shards", [](TrainConfig& train) { train.shard = "parameters"; }},
                      DivisionInFour{"StagesOfTwo",
                                     [](TrainConfig& train) { train.tensor_parallel = train.pipeline_parallel = 2; }}),
    [](const auto& info) { return info.param.name; });
#endif

}  // namespace
}  // namespace plumb
