// How much of the gradient each part of a model passes back along the residual stream.
#pragma once

#include <optional>
#include <vector>

#include "plumb/analysis/loss_function.h"
#include "plumb/analysis/statistics.h"
#include "plumb/base/config.h"
#include "plumb/nn/context.h"

namespace plumb {

/// A sub-layer with its residual connection and norms, or the end of a stack with its final norm. Norms of gradients
/// are Frobenius norms over all tokens of all batches, and over all tensors of the stream if the residual scheme keeps
/// several.
struct BackwardGain {
  ActivationPoint point;  // the part's output: a sub-layer's `stream`, or the stack's `result`
  /// ‖∂L/∂x‖ at `point`, by differentiating the whole model.
  double gradient = 0;
  /// ‖Jᵀg‖/‖g‖, by differentiating this part alone: J is the derivative of its output with respect to the stream that
  /// it reads, g the gradient that arrives from the next part. NaN if g is 0. The first sub-layer of a stack includes
  /// what the residual scheme does to the stack's input.
  double gain = 0;
  /// The same for the gradient that a cross-attention passes back to the encoder states; empty for other parts. These
  /// gradients bypass the decoder's stream: their sum over the decoder's layers is the gradient of the encoder's
  /// result.
  std::optional<double> memory_gain{};
};
void describe(Fields& field, BackwardGain& gain);

struct StackGains {
  StackKind stack = StackKind::encoder;
  double input_gradient = 0;        // ‖∂L/∂x‖ at the stack's input, by differentiating the whole model
  std::vector<BackwardGain> parts;  // from the stack's input to its result
};
void describe(Fields& field, StackGains& gains);

/// Within a stack, the gradient at a point is the gradient of the result times the gains of all parts after the point.
struct BackwardGains {
  std::vector<StackGains> stacks;  // encoder, decoder
  /// The largest relative difference between a gradient from the whole model and the same gradient from the parts
  /// (gains times the gradient of the result; for the encoder's result, the sum over the cross-attentions). Only
  /// rounding, unless something besides the stream connects the parts (value residuals).
  double error = 0;
};
void describe(Fields& field, BackwardGains& gains);

/// L is the mean loss over all target tokens, without dropout. Costs at most two gradients. Throws Error if there are
/// no target tokens. The processes of a group share the batches, and all get the gains.
BackwardGains measure_backward_gains(Model& model, const std::vector<Batch>& batches, double label_smoothing = 0,
                                     const LossFunction& loss = model_loss, const Group& group = {});

/// The gain of a cross-attention in a Post-LN decoder at initialization, y = norm(x + m): 1/√(1 + ρ). Attention is
/// nearly uniform, so m is the mean of the values of all memory tokens. Xavier matrices preserve mean squares; with ρ
/// the mean cosine between the tokens, that of m is ρ times that of x (the rest averages out), the norm divides by √(1
/// + ρ), and m hardly depends on x: the branch adds to the stream without passing a gradient back to it, but to the
/// encoder. A branch that reads the stream, as a feed-forward sub-layer does, passes back as much as it adds; its gain
/// is 1.
/// With matrices of other sizes, which multiply the mean square of what attention returns by s², it is 1/√(1 + ρs²).
double predicted_cross_attention_gain(double memory_similarity, double branch_square = 1);

/// The same over several initializations. Means are geometric, so that they multiply out like the gains of one model.
struct BackwardGainReport {
  struct Part {
    ActivationPoint point;
    Interval gradient, gain;
    std::optional<Interval> memory_gain;
  };
  struct Stack {
    StackKind stack = StackKind::encoder;
    Interval input_gradient;
    std::vector<Part> parts;
  };
  std::vector<Stack> stacks;
  double error = 0;  // the largest
};

/// Throws Error if there are no measurements.
BackwardGainReport summarize(const std::vector<BackwardGains>& measurements);

}  // namespace plumb
