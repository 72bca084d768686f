#include "plumb/task/masked_dataset.h"

#include <utility>

#include "plumb/base/random.h"

namespace plumb {
namespace {

/// The masks of evaluation: not those of any training epoch.
constexpr Draw kFixed{0, -1};

/// The random generator of one example.
Random random_of(const Draw& draw, int64_t example) {
  const auto words =
      philox(draw.seed ^ stream_of("masked tokens"), static_cast<uint64_t>(draw.epoch), static_cast<uint64_t>(example));
  return {uint64_t{words[0]} << 32 | words[1], uint64_t{words[2]} << 32 | words[3]};
}

}  // namespace

MaskedDataset::MaskedDataset(TextDataset text, const Specials& specials, Masker masker)
    : text_(std::move(text)), specials_(specials), masker_(std::move(masker)) {
  require_special(specials.bos, "beginning of a sentence");
  require_special(specials.eos, "end of a line");
}

ExampleCost MaskedDataset::cost(int64_t i) const { return {1 + text_.cost(i).target + (text_.ends(i) ? 0 : 1), 0}; }

Batch MaskedDataset::batch(std::span<const int64_t> examples) const { return drawn(examples, kFixed); }

Batch MaskedDataset::drawn(std::span<const int64_t> examples, const Draw& draw) const {
  Batch batch;
  for (const int64_t i : examples) {
    require(i);
    const std::vector<int32_t> ids = text_.joined(i);
    std::vector<int64_t> tokens = {specials_.bos};
    tokens.insert(tokens.end(), ids.begin(), ids.end());
    if (!text_.ends(i)) tokens.push_back(specials_.eos);
    const std::vector<int64_t> whole = tokens;
    Random random = random_of(draw, i);
    for (const int64_t place : masker_.mask(tokens, random)) {
      batch.predicted_positions.push_back(std::ssize(batch.source) + place);
      batch.labels.push_back(whole[static_cast<size_t>(place)]);
    }
    batch.source.insert(batch.source.end(), tokens.begin(), tokens.end());
    batch.source_layout.append(std::ssize(tokens));
    batch.examples.push_back(i);
  }
  return batch;
}

}  // namespace plumb
