#include "plumb/task/datasets.h"

#include <algorithm>

#include "plumb/base/error.h"
#include "plumb/data/sequences.h"

namespace plumb {

PairDataset::PairDataset(Split split, const Specials& source, const Specials& target)
    : split_(std::move(split)), source_(source), target_(target) {}

ExampleCost PairDataset::cost(int64_t i) const {
  return {std::ssize(split_.source(i)) + 1, std::ssize(split_.target(i)) + 1};
}

Batch PairDataset::batch(std::span<const int64_t> examples) const {
  Batch batch;
  for (const int64_t i : examples) {
    require(i);
    append_pair(batch, split_.source(i), source_, split_.target(i), target_, i);
  }
  return batch;
}

TextDataset::TextDataset(Split split, const Specials& specials, const Packing& packing)
    : split_(std::move(split)), specials_(specials), packing_(packing) {
  if (packing.tokens > 0 || packing.apart || packing.backward) require_special(specials.eos, "end of a line");
  if (packing.tokens == 0) return;
  if (split_.running_text()) {
    throw Error("the data are blocks of running text, which cannot be packed",
                "set `pack` of the task to 0, or prepare the data with --block 0");
  }
  packed_corpora_ = split_.corpora();
  if (packed_corpora_.empty()) {
    pack(0, split_.size());
  } else {
    int64_t begin = 0;
    for (CorpusSize& corpus : packed_corpora_) {
      const int64_t end = begin + corpus.size;
      corpus.size = pack(begin, end);
      begin = end;
    }
  }
  first_.push_back(split_.size());
}

int64_t TextDataset::pack(int64_t begin, int64_t end) {
  const auto before = std::ssize(first_);
  int64_t tokens = 0;
  for (int64_t i = begin; i < end; ++i) {
    tokens += length(i);
    if (i > begin && tokens <= packing_.tokens) continue;
    first_.push_back(i);
    tokens = length(i);
  }
  return std::ssize(first_) - before;
}

int64_t TextDataset::length(int64_t i) const { return std::ssize(split_.target(i)) + (split_.running_text() ? 0 : 1); }

ExampleCost TextDataset::cost(int64_t i) const {
  if (packing_.tokens == 0) return {0, length(i)};
  int64_t tokens = 0;
  const auto [begin, end] = sentences(i);
  for (int64_t s = begin; s < end; ++s) tokens += length(s);
  return {0, tokens};
}

std::pair<int64_t, int64_t> TextDataset::sentences(int64_t i) const {
  if (packing_.tokens == 0) return {i, i + 1};
  return {first_[static_cast<size_t>(i)], first_[static_cast<size_t>(i) + 1]};
}

bool TextDataset::ends(int64_t i) const {
  return !split_.running_text() || (!split_.target(i).empty() && split_.target(i).back() == specials_.eos);
}

std::vector<int32_t> TextDataset::joined(int64_t i) const {
  std::vector<int32_t> ids;
  const auto append = [&](TokenSpan more) { ids.insert(ids.end(), more.begin(), more.end()); };
  if (split_.running_text()) {
    append(split_.target(i));
    return ids;
  }
  const auto [begin, end] = sentences(i);
  for (int64_t s = begin; s < end; ++s) {
    append(split_.target(s));
    ids.push_back(specials_.eos);
  }
  return ids;
}

Batch TextDataset::batch(std::span<const int64_t> examples) const {
  Batch batch;
  for (const int64_t i : examples) {
    require(i);
    if (packing_.tokens == 0 && !split_.running_text() && !packing_.backward) {
      append_sentence(batch, split_.target(i), specials_, i);
      continue;
    }
    std::vector<int32_t> ids = joined(i);
    for (auto begin = ids.begin(); begin != ids.end();) {
      auto end = packing_.apart ? std::find(begin, ids.end(), specials_.eos) : ids.end();
      if (end != ids.end()) ++end;  // the EOS belongs to the sequence that it ends
      if (packing_.backward) std::reverse(begin, *(end - 1) == specials_.eos ? end - 1 : end);
      append_running_text(batch, TokenSpan(begin, end), specials_, i);
      begin = end;
    }
  }
  return batch;
}

LabeledDataset::LabeledDataset(Split split, std::vector<int32_t> labels, const Specials& specials,
                               const Reading& reading)
    : split_(std::move(split)), labels_(std::move(labels)), specials_(specials), reading_(reading) {}

ExampleCost LabeledDataset::cost(int64_t i) const {
  const int64_t tokens = labeled_length(std::ssize(split_.source(i)), std::ssize(split_.target(i)), specials_);
  return reading_.side == Side::source ? ExampleCost{tokens, 1} : ExampleCost{0, tokens};
}

Batch LabeledDataset::batch(std::span<const int64_t> examples) const {
  Batch batch;
  for (const int64_t i : examples) {
    require(i);
    append_labeled(batch, split_.source(i), split_.target(i), specials_, labels_[static_cast<size_t>(i)], i,
                   reading_.backward);
  }
  if (reading_.side == Side::target) move_to_target(batch);
  return batch;
}

}  // namespace plumb
