// Which requests are read together.
#pragma once

#include <cstdint>
#include <vector>

#include "plumb/evaluate/text_encoder.h"

namespace plumb {

/// Requests with the same context, by number.
struct RequestGroup {
  std::vector<size_t> requests;
};

struct RequestBatch {
  std::vector<RequestGroup> groups;
  size_t common = 0;  // tokens that all contexts begin with and that are read once; at least one more follows in each
};

/// Divides requests into batches that read at most `batch_tokens` tokens, or one group. Neighbors with equal contexts
/// form a group; groups that read most come first, so that a batch that does not fit into memory fails at once.
std::vector<RequestBatch> plan_requests(const std::vector<TokenRequest>& requests, int64_t batch_tokens);

}  // namespace plumb
