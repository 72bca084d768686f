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
  PairDataset(ParallelSplit split, const Specials& source, const Specials& target);
  [[nodiscard]] int64_t size() const override { return split_.size(); }
  [[nodiscard]] ExampleCost cost(int64_t i) const override;
  [[nodiscard]] Batch batch(std::span<const int64_t> examples) const override;
  [[nodiscard]] std::vector<CorpusSize> corpora() const override { return split_.corpora(); }

 private:
  ParallelSplit split_;
  Specials source_, target_;
};

/// How text becomes sequences.
struct Packing {
  /// Consecutive sentences of one corpus form one example of at most this many tokens, with their EOS; a longer
  /// sentence forms its own. 0: each sentence is an example.
  int64_t tokens = 0;
  /// Whether what ends with EOS, in a packed example or in a block of running text, is a sequence of its own: the next
  /// one begins with BOS and position 0 and sees nothing of it, and Batch::examples has one entry for each sequence.
  /// Else all of them are one sequence.
  bool apart = false;
  /// Whether a sequence is read from its end to its beginning; an EOS that ends it stays at its end.
  bool backward = false;
};

/// The target side of a split as text: either blocks of running text, which have no end, or sentences, which do.
class TextDataset final : public Dataset {
 public:
  /// Throws Error if blocks are to be packed, or if there is no EOS to pack by.
  TextDataset(ParallelSplit split, const Specials& specials, const Packing& packing = {});
  [[nodiscard]] int64_t size() const override { return packing_.tokens > 0 ? std::ssize(first_) - 1 : split_.size(); }
  [[nodiscard]] ExampleCost cost(int64_t i) const override;
  [[nodiscard]] Batch batch(std::span<const int64_t> examples) const override;
  [[nodiscard]] std::vector<CorpusSize> corpora() const override {
    return packing_.tokens > 0 ? packed_corpora_ : split_.corpora();
  }

  /// The ids of example i, in the order of the text: of a block, or of its sentences, each with its EOS.
  [[nodiscard]] std::vector<int32_t> joined(int64_t i) const;

  /// Whether they end with EOS, as all but blocks do.
  [[nodiscard]] bool ends(int64_t i) const;

 private:
  /// Number of tokens of sentence i with its EOS, or of block i.
  [[nodiscard]] int64_t length(int64_t i) const;

  /// Packs sentences `begin` to before `end`. Returns into how many examples.
  int64_t pack(int64_t begin, int64_t end);

  /// The first sentence of example i, and the one after its last.
  [[nodiscard]] std::pair<int64_t, int64_t> sentences(int64_t i) const;

  ParallelSplit split_;
  Specials specials_;
  Packing packing_;
  std::vector<int64_t> first_;  // if sentences are packed: the first of each example, and the number of sentences
  std::vector<CorpusSize> packed_corpora_;  // and the corpora, in examples
};

/// The side of a batch that a model reads alone: the source of an encoder, the target of a decoder.
enum class Side { source, target };

/// How a classifier reads an example.
struct Reading {
  Side side = Side::source;
  bool backward = false;  // each sentence from its end to its beginning
};

/// A sentence, or a pair of sentences on the two sides of the split, with one label each.
class LabeledDataset final : public Dataset {
 public:
  LabeledDataset(ParallelSplit split, std::vector<int32_t> labels, const Specials& specials,
                 const Reading& reading = {});
  [[nodiscard]] int64_t size() const override { return split_.size(); }
  [[nodiscard]] ExampleCost cost(int64_t i) const override;
  [[nodiscard]] Batch batch(std::span<const int64_t> examples) const override;

 private:
  ParallelSplit split_;
  std::vector<int32_t> labels_;
  Specials specials_;
  Reading reading_;
};

}  // namespace plumb
