// A fixture for small runs with numerical trouble.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "copy_task.h"
#include "disturbed_task.h"
#include "plumb/data/batches.h"
#include "plumb/model/encoder_decoder.h"

namespace plumb::test {

class TroubledRun : public ::testing::Test, protected CopyTaskFolder {
 protected:
  TroubledRun() : task_(completed_task()), train_(task_->dataset("train")) { run_.train.learning_rate = 0.05; }

  EncoderDecoder model(at::ScalarType type = at::kFloat) const {
    EncoderDecoder model(run_.model, type);
    model.initialize(1);
    return model;
  }

  /// Plain gradient descent at a constant rate.
  void use_sgd() {
    run_.train.optimizer = "sgd";
    Config::from_string("[train.sgd]\nmomentum = 0\n", "test").read("train", run_.train);
    run_.train.schedule = "constant";
    run_.model.dropout = 0;
  }

  [[nodiscard]] std::vector<int64_t> examples_of_step(int64_t step) const {
    auto batch = static_cast<size_t>(step - 1);
    for (int64_t epoch = 0;; ++epoch) {
      const auto plan = plan_batches(train_->costs(), run_.train.batch_tokens, 1, epoch);
      if (batch < plan.size()) return plan[batch];
      batch -= plan.size();
    }
  }

  [[nodiscard]] DisturbedTask nan_at(std::set<int64_t> steps) const { return nan_in_steps(*task_, std::move(steps)); }

  std::unique_ptr<Task> task_;
  std::unique_ptr<Dataset> train_;
};

}  // namespace plumb::test
