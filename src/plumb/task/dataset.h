// The examples of one split for a task: their sizes, and how they form batches.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "plumb/base/batch.h"
#include "plumb/data/batches.h"
#include "plumb/data/split.h"
#include "plumb/data/stream_cut.h"

namespace plumb {

/// Selects an example's random variant, for tasks that have such variants: each epoch has its own.
struct Draw {
  uint64_t seed = 0;
  int64_t epoch = 0;
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  [[nodiscard]] virtual int64_t size() const = 0;

  /// Number of tokens that example i adds to a batch, including special tokens; 0 ≤ i < size().
  [[nodiscard]] virtual ExampleCost cost(int64_t i) const = 0;

  /// A batch of these examples, in the given order. Throws Error on an index outside the split.
  /// Deterministic: evaluation sees the same batch each time.
  [[nodiscard]] virtual Batch batch(std::span<const int64_t> examples) const = 0;

  /// The same for training, where a task may draw something anew in each epoch, such as which tokens are masked. A
  /// function of its arguments only; an example's variant does not depend on the other examples. By default `batch`.
  [[nodiscard]] virtual Batch drawn(std::span<const int64_t> examples, const Draw& draw) const;

  /// The corpora that the examples come from, in order, with their numbers of examples; empty if there is only one.
  [[nodiscard]] virtual std::vector<CorpusSize> corpora() const { return {}; }

  /// How to cut the stream, if the examples are the columns of one (data/stream_cut.h): they are read in order, and the
  /// model's state is carried over.
  [[nodiscard]] virtual std::optional<StreamCut> stream() const { return std::nullopt; }

  /// The costs of all examples, for planning.
  [[nodiscard]] std::vector<ExampleCost> costs() const;

 protected:
  /// Throws Error if `example` is outside the split.
  void require(int64_t example) const;
};

/// The first `count` examples (0: all) in batches of at most `tokens` tokens, or of one larger example, for
/// measurements and evaluation. Deterministic; examples of similar size are batched together.
std::vector<Batch> evaluation_batches(const Dataset& dataset, int64_t tokens, int64_t count = 0);

}  // namespace plumb
