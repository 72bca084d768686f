#include "plumb/data/stream_cut.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "plumb/base/error.h"

namespace plumb {

std::vector<std::vector<int64_t>> cut_stream(int64_t columns, const StreamCut& cut) {
  if (cut.length < 1) throw Error(fmt::format("segments of a stream must have at least 1 token, not {}", cut.length));
  std::vector<std::vector<int64_t>> segments;
  for (int64_t begin = 0; begin < columns;) {
    std::vector<int64_t>& segment = segments.emplace_back(static_cast<size_t>(std::min(cut.length, columns - begin)));
    std::iota(segment.begin(), segment.end(), begin);
    begin += std::ssize(segment);
  }
  return segments;
}

}  // namespace plumb
