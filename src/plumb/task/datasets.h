// The datasets of the tasks: pairs, text, and labeled text from a split of a data directory.
#pragma once

#include <utility>
#include <vector>

#include "plumb/data/split.h"
#include "plumb/task/dataset.h"
#include "plumb/text/specials.h"

namespace plumb {

/// Sentence pairs: the encoder reads source + EOS; the decoder reads BOS + target and predicts target + EOS.
class PairDataset final : public Dataset {
 public:
  PairDataset(Split split, const Specials& source, const Specials& target);
  [[nodiscard]] int64_t size() const override { return split_.size(); }
  [[nodiscard]] ExampleCost cost(int64_t i) const override;
  [[nodiscard]] Batch batch(std::span<const int64_t> examples) const override;
  [[nodiscard]] std::vector<CorpusSize> corpora() const override { return split_.corpora(); }

 private:
  Split split_;
  Specials source_, target_;
};

/// How text becomes sequences.
struct Packing {
  /// Consecutive sentences of one corpus form an example of at most this many tokens, including each EOS; a longer
  /// sentence forms its own. 0: each sentence or block is an example.
  int64_t tokens = 0;
  /// Whether each EOS in a packed example or a block of running text ends a sequence: the next one begins with BOS at
  /// position 0 and cannot see the earlier ones, and Batch::examples has one entry per sequence. Otherwise, an example
  /// is one sequence.
  bool apart = false;
  /// Whether sequences are read from end to beginning; a final EOS stays at the end.
  bool backward = false;
};

/// The target side of a split as text: either blocks of running text, as they are, or sentences with EOS.
class TextDataset final : public Dataset {
 public:
  /// Throws Error on packing blocks, or on any packing option if the vocabulary has no EOS.
  TextDataset(Split split, const Specials& specials, const Packing& packing = {});
  [[nodiscard]] int64_t size() const override { return packing_.tokens > 0 ? std::ssize(first_) - 1 : split_.size(); }
  [[nodiscard]] ExampleCost cost(int64_t i) const override;
  [[nodiscard]] Batch batch(std::span<const int64_t> examples) const override;
  [[nodiscard]] std::vector<CorpusSize> corpora() const override {
    return packing_.tokens > 0 ? packed_corpora_ : split_.corpora();
  }

  /// The ids of example i in text order: a block, or sentences, each with its EOS.
  [[nodiscard]] std::vector<int32_t> joined(int64_t i) const;

  /// Whether they end with EOS; always true for sentences.
  [[nodiscard]] bool ends(int64_t i) const;

 private:
  /// Number of tokens of sentence i with its EOS, or of block i.
  [[nodiscard]] int64_t length(int64_t i) const;

  /// Packs sentences begin, …, end − 1. Returns the number of examples.
  int64_t pack(int64_t begin, int64_t end);

  /// The first sentence of example i, and the one after its last.
  [[nodiscard]] std::pair<int64_t, int64_t> sentences(int64_t i) const;

  Split split_;
  Specials specials_;
  Packing packing_;
  std::vector<int64_t> first_;              // with packing: each example's first sentence, then the sentence count
  std::vector<CorpusSize> packed_corpora_;  // with packing: sizes in examples
};

/// The side of a batch that a classifier reads: the source for an encoder, the target for a decoder.
enum class Side { source, target };

/// How a classifier reads an example.
struct Reading {
  Side side = Side::source;
  bool backward = false;  // reads each sentence from end to beginning
};

/// Sentences, or pairs of sentences on the two sides of the split, with one label per example.
class LabeledDataset final : public Dataset {
 public:
  LabeledDataset(Split split, std::vector<int32_t> labels, const Specials& specials, const Reading& reading = {});
  [[nodiscard]] int64_t size() const override { return split_.size(); }
  [[nodiscard]] ExampleCost cost(int64_t i) const override;
  [[nodiscard]] Batch batch(std::span<const int64_t> examples) const override;

 private:
  Split split_;
  std::vector<int32_t> labels_;
  Specials specials_;
  Reading reading_;
};

}  // namespace plumb
