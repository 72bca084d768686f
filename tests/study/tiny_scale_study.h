// A tiny study of scale.
#pragma once

#include <string>
#include <vector>

#include "plumb/study/config.h"
#include "study/parts.h"

namespace plumb::test {

/// Two schemes, four widths (the largest for the first scheme only) and two seeds; `assignments` such as
/// "scale.seeds=1" override its settings.
inline StudyConfig tiny_scale_study(const std::vector<std::string>& assignments) {
  Config config = Config::from_string(R"(
[study]
schemes = ["pre-ln", "post-ln"]
[data]
pairs = 200
vocabulary = 120
block = 16
[model]
kind = "decoder"
d_model = 16
feed_forward = 32
heads = 2
share_embeddings = "none"
dropout = 0.0
[train]
steps = 4
learning_rate = 1e-3
batch_tokens = 64
validate_every = 4
log_every = 2
warm_up = 2
[scale]
widths = [8, 16, 24, 32]
layers = [1, 1, 1, 2]
seeds = 2
)",
                                      "study.toml");
  for (const std::string& assignment : assignments) config.set(assignment);
  StudyConfig study = read_study(config);
  study.study.claims = claims_of("capabilities");
  return study;
}

}  // namespace plumb::test
