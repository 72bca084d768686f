// Batches of requests.
#pragma once

#include <cstdint>
#include <vector>

#include "plumb/evaluate/text_encoder.h"

namespace plumb {

/// Requests with the same context, by number.
using RequestGroup = std::vector<size_t>;

struct RequestBatch {
  std::vector<RequestGroup> groups;
  size_t common = 0;  // length of the contexts' common prefix, which is read once; each context is longer
};

/// Divides requests into batches that read at most `batch_tokens` tokens, or one group. Consecutive requests with equal
/// contexts form a group; the largest groups come first, so that running out of memory happens early.
std::vector<RequestBatch> plan_requests(const std::vector<TokenRequest>& requests, int64_t batch_tokens);

}  // namespace plumb
