// A fixture for tests that train a small encoder-decoder on the copy task.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "copy_task.h"
#include "plumb/model/encoder_decoder.h"
#include "plumb/run/directory.h"

namespace plumb::test {

class CopyRun : public ::testing::Test {
 protected:
  CopyRun() {
    make_copy_task(folder_ / "data");
    run_ = copy_run(folder_ / "data");
    task_ = make_task({}, DataDirectory::open(folder_ / "data"), run_.model.kind);
    task_->complete(run_.model);
  }

  [[nodiscard]] EncoderDecoder model() const {
    EncoderDecoder model(run_.model, at::kDouble);
    model.initialize(1);
    return model;
  }

  TemporaryDirectory folder_;
  RunConfig run_;
  std::unique_ptr<Task> task_;
};

}  // namespace plumb::test
