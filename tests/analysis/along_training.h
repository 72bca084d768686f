// A small model on the copy task, trained for four steps in float64 while a watch measures it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "plumb/train/trainer.h"
#include "support/paths.h"
#include "train/copy_task.h"

namespace plumb::test {

class AlongTraining : public ::testing::Test, protected CopyTaskFolder {
 protected:
  AlongTraining() {
    run_.model.d_model = 4;
    run_.model.feed_forward = 4;
    run_.model.heads = 2;
    run_.model.residual = "post-ln";
    run_.train.steps = 4;
    run_.train.warm_up = 10;
    task_ = completed_task();
    run_.watch.every = 4;
    run_.watch.examples = 10;
  }

  [[nodiscard]] std::unique_ptr<Model> model() const {
    std::unique_ptr<Model> made = make_model(run_.model, at::kDouble);
    made->initialize(3);
    return made;
  }

  [[nodiscard]] Batch examples(std::vector<int64_t> which) const { return task_->dataset("train")->batch(which); }

  void read_watch(const std::string& toml) {
    Config::from_string("[watch]\n" + toml, "test").read("watch", run_.watch);
  }

  std::unique_ptr<Task> task_;
};

}  // namespace plumb::test
