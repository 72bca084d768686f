// The AWD-LSTM language model: Merity et al. 2018, "Regularizing and optimizing LSTM language models", arXiv
// 1708.02182; and the language model and the classifier of ULMFiT (Howard & Ruder 2018, arXiv 1801.06146).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "plumb/model/batch_norm_head.h"
#include "plumb/model/capabilities.h"
#include "plumb/model/model.h"
#include "plumb/nn/pooling.h"
#include "plumb/ops/lstm.h"

namespace plumb {

/// [model.awd-lstm]: the regularizers of training steps, inactive in evaluation and measurements, and the head of a
/// classifier.
struct AwdLstmOptions {
  double embedding_dropout = 0.1;
  double input_dropout = 0.4;
  double hidden_dropout = 0.3;
  double output_dropout = 0.4;
  double weight_drop = 0.5;
  double activation_penalty = 2;
  double temporal_penalty = 1;
  int64_t pooled_tokens = 1400;  // 20·70
  int64_t head_size = 50;
  double pooled_dropout = 0.4;
  double head_dropout = 0.1;
};
void describe(Fields& field, AwdLstmOptions& options);

/// LSTM layers (ops/lstm.h) of widths embedding_size → hidden_size → … → embedding_size, whose output
/// layer shares the embedding's matrix and has a bias. Reads only the target side of batches. Each sequence starts from
/// a zero state, unless `loss` continues a text (ForwardContext::carry). Parameters: embedding.weight,
/// lstm.i.{weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0} as in torch.nn.LSTM, output.bias.
///
/// With model.labels it is a classifier (BPT3C). The states of the last `pooled_tokens` tokens of a sequence, without
/// the dropout of a language model after its last layer, are pooled (model.pooling, usually "concat") and passed
/// through a BatchNormHead to output.weight and output.bias, which are over the labels. Earlier tokens are read without
/// a graph, with the same masks, and receive no gradient.
class AwdLstm final : public Model, public Generates, public Classifies, public Embeds {
 public:
  struct Layer {
    std::string name;  // "lstm.3": the prefix of its parameters and of its carried state
    int64_t size = 0;  // columns of its output and of each part of its state
    ops::LstmWeights weights{};
  };

  /// Builds the model with all parameters 0; `type` is at::kFloat or at::kDouble. Throws Error if the configuration is
  /// invalid or of another kind.
  explicit AwdLstm(const ModelConfig& config, at::ScalarType type = at::kFloat);

  struct Result {
    Tensor hidden;                     // (tokens, embedding_size), after dropout
    Tensor before_dropout;             // the same without it
    std::vector<ops::LstmState> last;  // [layer]: after the last token of each sequence
  };
  /// `start` [layer]: the initial states of the sequences; empty: zeros.
  Result run(const std::vector<int64_t>& tokens, const Ragged& layout, const std::vector<ops::LstmState>& start,
             ForwardContext& context) const;

  /// The input of the output layer: one row per token or, for a classifier, per sequence.
  Tensor states(const Batch& batch, ForwardContext& context) override;

  /// In a training step, the loss grows by α·AR + β·TAR (nn/regularization.h). For a part of a batch
  /// (LossOptions::scale), AR and TAR are means over that part, weighted by its share of the labels. The carried state
  /// is that of every layer after the last position, before its dropout: lstm.i.hidden and lstm.i.cell, (sequences,
  /// width). Throws Error if the carried state belongs to another model or to another number of sequences.
  Loss loss(const Batch& batch, const LossOptions& options, ForwardContext& context) override;

  Tensor hidden(const std::vector<int64_t>& tokens, const std::vector<int64_t>& segments, const Ragged& layout,
                ForwardContext& context) override;

  [[nodiscard]] Tensor logits(const Tensor& hidden) const override { return Model::logits(hidden); }
  Generates* generates() override { return config().labels > 0 ? nullptr : this; }
  Classifies* classifies() override { return config().labels > 0 ? this : nullptr; }
  Tensor class_logits(const Batch& batch) override;
  [[nodiscard]] int64_t labels() const override { return config().labels; }
  [[nodiscard]] bool reads_target() const override { return true; }
  Embeds* embeds() override { return this; }

  DecoderState start(int64_t rows) override;
  Tensor read(DecoderState& state, const std::vector<int64_t>& tokens, const Ragged& layout) override;
  [[nodiscard]] int64_t longest() const override;
  [[nodiscard]] int64_t vocabulary() const override { return config().target_vocabulary; }

 private:
  /// The last tokens of each sequence of a batch, and the result of running them.
  struct Ending {
    Ragged layout;
    Result result;
  };
  [[nodiscard]] bool profiled() const override { return false; }
  [[nodiscard]] Ending read_ending(const Batch& batch, ForwardContext& context) const;
  [[nodiscard]] Tensor pooled(const Ending& ending, ForwardContext& context) const;

  /// The loss with AR and TAR.
  [[nodiscard]] Loss penalized(Loss loss, const Result& result, const Ragged& layout, const LossOptions& options) const;

  AwdLstmOptions options_;
  Tensor table_;  // (vocabulary, embedding_size)
  std::vector<Layer> layers_;
  Pooling pooling_;                      // for a classifier, like the next
  std::unique_ptr<BatchNormHead> head_;  // null in a language model
};

}  // namespace plumb
