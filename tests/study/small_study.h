// Studies of minimal size, and their configurations.
#pragma once

#include <string>

#include "plumb/nn/residual/residual.h"
#include "plumb/study/study.h"
#include "support/paths.h"
#include "train/copy_task.h"

namespace plumb::test {

inline constexpr const char* kTrainingPart = R"(
[training]
warm_ups = [0, 2]
learning_rates = [1e-3]
layers = [1]
)";

inline StudyConfig small_study() {
  StudyConfig config;
  config.study.schemes = residual_schemes().names();
  config.study.schemes.emplace_back("n/dna");
  config.data.pairs = 2400;
  config.data.vocabulary = 200;
  config.model.d_model = 8;
  config.model.feed_forward = 12;
  config.model.heads = 2;
  config.train.steps = 4;
  config.train.validate_every = 2;
  config.train.batch_tokens = 128;
  config.train.warm_up = 2;
  config.model.dropout = 0;
  return config;
}

/// Two schemes on the copy task, which is prepared in `directory`.
inline StudyConfig small_on_copy_task(const TemporaryDirectory& directory) {
  make_copy_task(directory / "data");
  StudyConfig config = small_study();
  config.study.schemes = {"post-ln", "pre-ln"};
  config.study.seed = 5;
  config.data.directory = (directory / "data").string();
  return config;
}

}  // namespace plumb::test
