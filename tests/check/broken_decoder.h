// Language models with mistakes in their code, and labels with mistakes in theirs.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "plumb/model/embedding.h"
#include "plumb/model/model.h"
#include "plumb/model/stack.h"
#include "plumb/task/dataset.h"

namespace plumb::test {

/// A decoder that may lack its mask, or have a matrix that nothing uses.
class BrokenDecoder : public Model {
 public:
  struct Mistakes {
    bool unmasked = false;
    bool unused_matrix = false;
  };
  BrokenDecoder(const ModelConfig& config, const Mistakes& mistakes) : Model(config, at::kFloat) {
    const Tensor table =
        parameters_.add("tgt_embed.weight", {config.target_vocabulary, config.d_model}, Role::embedding);
    embedding_ = std::make_unique<TokenEmbedding>(parameters_, config, TokenEmbedding::Shape{"tgt", true}, table);
    stack_ = std::make_unique<Stack>(parameters_, config,
                                     Stack::Shape{StackKind::decoder, config.decoder_layers, !mistakes.unmasked, false},
                                     embedding_->positions());
    if (mistakes.unused_matrix)
      parameters_.add("decoder.layers.2.linear1.weight", {config.feed_forward, config.d_model}, Role::weight);
    add_output(config.target_vocabulary, table);
    parameters_.allocate();
  }

  Tensor states(const Batch& batch, ForwardContext& context) override {
    const Ragged& layout = batch.target_layout;
    context.enter(layout);
    return (*stack_)((*embedding_)(batch.target_input, layout.positions(), {}, context), layout, context);
  }

 private:
  [[nodiscard]] bool profiled() const override { return false; }

  std::unique_ptr<TokenEmbedding> embedding_;
  std::unique_ptr<Stack> stack_;
};

/// Labels that are the token at another distance than 1; the last ones of a sequence repeat its last token.
class ShiftedLabels : public Dataset {
 public:
  ShiftedLabels(std::unique_ptr<Dataset> data, int64_t distance) : data_(std::move(data)), distance_(distance) {}
  [[nodiscard]] int64_t size() const override { return data_->size(); }
  [[nodiscard]] ExampleCost cost(int64_t i) const override { return data_->cost(i); }
  [[nodiscard]] Batch batch(std::span<const int64_t> examples) const override {
    Batch batch = data_->batch(examples);
    const Ragged& layout = batch.target_layout;
    for (int64_t s = 0; s < layout.sequences(); ++s) {
      for (int64_t i = layout.begin(s); i < layout.begin(s + 1); ++i)
        batch.labels[static_cast<size_t>(i)] =
            batch.target_input[static_cast<size_t>(std::min(i + distance_, layout.begin(s + 1) - 1))];
    }
    return batch;
  }

 private:
  std::unique_ptr<Dataset> data_;
  int64_t distance_;
};

}  // namespace plumb::test
