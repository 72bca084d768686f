#include "plumb/data/stream_cut.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "plumb/base/error.h"
#include "plumb/base/random.h"

namespace plumb {
namespace {

constexpr double kShareOfWholeLength = 0.95;
constexpr double kDeviationOfLength = 5;
constexpr int64_t kShortestSegment = 5;

}  // namespace

int64_t segment_length(const StreamCut& cut, uint64_t seed, int64_t epoch, int64_t number) {
  if (!cut.varied) return cut.length;
  Random random(seed, stream_of("segments") + (static_cast<uint64_t>(epoch) << 32) + static_cast<uint64_t>(number));
  const auto whole = static_cast<double>(cut.length);
  const double mean = random.uniform() < kShareOfWholeLength ? whole : whole / 2;
  return std::max(kShortestSegment, static_cast<int64_t>(mean + kDeviationOfLength * random.normal()));
}

std::vector<std::vector<int64_t>> cut_stream(int64_t columns, const StreamCut& cut, uint64_t seed, int64_t epoch) {
  if (cut.length < 1) throw Error(fmt::format("segments of a stream must have at least 1 token, not {}", cut.length));
  std::vector<std::vector<int64_t>> segments;
  for (int64_t begin = 0; begin < columns;) {
    const int64_t length = std::min(segment_length(cut, seed, epoch, std::ssize(segments)), columns - begin);
    std::vector<int64_t>& segment = segments.emplace_back(static_cast<size_t>(length));
    std::iota(segment.begin(), segment.end(), begin);
    begin += std::ssize(segment);
  }
  return segments;
}

}  // namespace plumb
