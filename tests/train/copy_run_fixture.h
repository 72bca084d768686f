// A fixture for tests that train a small encoder-decoder on the copy task.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "copy_task.h"
#include "plumb/model/encoder_decoder.h"

namespace plumb::test {

class CopyRun : public ::testing::Test, protected CopyTaskFolder {
 protected:
  CopyRun() : task_(completed_task()) {}

  [[nodiscard]] EncoderDecoder model() const {
    EncoderDecoder model(run_.model, at::kDouble);
    model.initialize(1);
    return model;
  }

  std::unique_ptr<Task> task_;
};

}  // namespace plumb::test
