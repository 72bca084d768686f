// A tiny study of scale.
#pragma once

#include <string>
#include <vector>

#include "plumb/study/config.h"

namespace plumb::test {

/// Two schemes, four widths (the largest for the first scheme only) and two seeds; `assignments` such as
/// "scale.seeds=1" override its settings.
inline StudyConfig tiny_scale_study(const std::vector<std::string>& assignments) {
  Config config = Config::from_string(R"(
[study]
schemes = ["pre-ln", "post-ln"]
[[study.claim]]
text = "A power law of smaller models predicts the loss of the largest"
source = "Hoffmann et al. 2022, arXiv 2203.15556, equation 2, at equal tokens"
quantity = "scale_prediction_error"
within = 0.05
around = 0.0

[[study.claim]]
text = "Reading comprehension gains more from size than logical reasoning"
source = "Rae et al. 2021, arXiv 2112.11446, section 4"
quantity = "comprehension_gain_over_reasoning"
above = 0.0

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
  return read_study(config);
}

}  // namespace plumb::test
