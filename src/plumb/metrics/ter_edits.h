// The number of edits in TER. The minimum with shifts is NP-hard to find, so the number is defined by tercom's greedy
// search, as implemented in sacreBLEU: its limits and tie-breaking are part of the metric.
#pragma once

#include <cstdint>
#include <string_view>

namespace plumb {

/// Insertions, deletions, substitutions and shifts that turn `hypothesis` into `reference`, both sentences of words
/// numbered by WordNumbers. As long as a shift reduces the edit distance, the one is made that reduces it most; ties go
/// to the longest block, then the leftmost block, then the leftmost target. A shift moves a block of up to 10 words
/// that also occurs in the reference, at most 50 words away, to before or after any word aligned with that occurrence,
/// if neither the block nor the occurrence is already correct. The edit distance is limited to 25 words on either side
/// of the diagonal (more for a reference over 50 times as long as the hypothesis), and the search ends after trying
/// 1,000 shifts.
int64_t ter_edits(std::u32string_view hypothesis, std::u32string_view reference);

}  // namespace plumb
