#include "plumb/nn/vocabulary_rows.h"

#include <algorithm>

#include "plumb/base/error.h"
#include "plumb/ops/embedding.h"
#include "plumb/ops/index.h"
#include "plumb/ops/linear.h"

namespace plumb {
namespace {

/// The targets of all tokens. `rows`: their labels among this rank's rows, 0 for those of other ranks; `own`: 1 where
/// the label is this rank's, else 0. `factors`: the weights.
struct Targets {
  const Group& group;
  double vocabulary;
  Tensor rows, own, factors;  // (tokens)
  double smoothing;
  double scale;
};

struct LossSums {
  Tensor smoothed, nll;  // scalars
};

/// The losses of the tokens from `first` on, of which `logits` are this rank's logits, and then their derivatives.
LossSums replace_by_derivatives(const Targets& all, const Tensor& logits, int64_t first) {
  const int64_t count = logits.size(0);
  const Tensor rows = all.rows.narrow(0, first, count).unsqueeze(1);
  const Tensor own = all.own.narrow(0, first, count);
  const Tensor factors = all.factors.narrow(0, first, count);
  const Tensor ignored = factors.eq(0);  // even if their logits are NaN
  const Tensor largest = at::stack(all.group.all_gather(logits.amax(1))).amax(0);
  logits.sub_(largest.unsqueeze(1));
  const Tensor of_label = at::where(own.eq(1), logits.gather(1, rows).squeeze(1), at::zeros_like(own));
  const Tensor sum = logits.sum(1);
  logits.exp_();
  const Tensor sums = at::stack({logits.sum(1), of_label, sum});
  all.group.sum(sums);
  const Tensor log_partition = sums[0].log();
  const Tensor each_nll = log_partition - sums[1];
  Tensor each = each_nll;
  if (all.smoothing != 0)  // else a logit of −∞ would make it NaN: 0·∞
    each = (1 - all.smoothing) * each_nll + all.smoothing * (log_partition - sums[2] / all.vocabulary);
  const auto total = [&](const Tensor& of_tokens) {
    return (factors * of_tokens).masked_fill(ignored, 0).sum(at::kDouble);
  };
  const LossSums losses{total(each), total(each_nll)};
  // softmax − target, where the target is (1 − ε)·[label] + ε/vocabulary.
  logits.div_(sums[0].unsqueeze(1)).sub_(all.smoothing / all.vocabulary);
  logits.scatter_add_(1, rows, ((all.smoothing - 1) * own).unsqueeze(1));
  logits.mul_((all.scale * factors).unsqueeze(1)).masked_fill_(ignored.unsqueeze(1), 0);
  return losses;
}

/// About 16 MB of float32 logits at a time.
int64_t chunk_tokens(int64_t rows) { return std::clamp<int64_t>((int64_t{1} << 22) / rows, 64, 1024); }

class DividedCrossEntropy : public torch::autograd::Function<DividedCrossEntropy> {
 public:
  static Tensor forward(AutogradContext* ctx, const Tensor& hidden, const Tensor& weight,
                        const c10::optional<Tensor>& bias_in, const Targets& targets, Tensor* nll) {
    const Tensor bias = bias_in.value_or(Tensor());
    const Tensor dhidden = at::zeros_like(hidden), dweight = at::zeros_like(weight);
    const Tensor dbias = bias.defined() ? at::zeros_like(bias) : Tensor();
    Tensor loss = at::zeros({}, hidden.options().dtype(at::kDouble));
    *nll = at::zeros_like(loss);
    const int64_t step = chunk_tokens(weight.size(0));
    for (int64_t first = 0; first < hidden.size(0); first += step) {
      const int64_t count = std::min(step, hidden.size(0) - first);
      const Tensor some = hidden.narrow(0, first, count);
      const Tensor logits = ops::linear(some, weight, bias);
      const LossSums found = replace_by_derivatives(targets, logits, first);
      loss += found.smoothed;
      *nll += found.nll;
      if (dbias.defined()) dbias.add_(logits.sum(0));
      ops::gemm(logits, weight, {.accumulate_into = dhidden.narrow(0, first, count)});
      ops::gemm(logits, some, {.transpose_a = true, .accumulate_into = dweight});
    }
    targets.group.sum(dhidden);
    ctx->saved_data["gradients"] = std::vector<Tensor>{dhidden, dweight};
    ctx->saved_data["dbias"] = dbias;
    return (targets.scale * loss).to(hidden.scalar_type());
  }
  static variable_list backward(AutogradContext* ctx, variable_list grad) {
    if (at::GradMode::is_enabled())
      throw Error("the divided cross-entropy has no second derivative", "use logits() for curvature");
    const std::vector<Tensor> gradients = ctx->saved_data["gradients"].toTensorVector();
    const Tensor dbias = ctx->saved_data["dbias"].toTensor();
    return {grad[0] * gradients[0], grad[0] * gradients[1], dbias.defined() ? grad[0] * dbias : dbias, Tensor(),
            Tensor()};
  }
};

}  // namespace

VocabularyRows::VocabularyRows(LayerDivision& division, const std::vector<Tensor>& tables) {
  const int64_t vocabulary = tables.front().size(0);
  if (vocabulary % division.ranks() != 0) return;
  for (const Tensor& table : tables) {
    if (table.defined()) division.divide(table, 0);
  }
  group_ = division.group();
  vocabulary_ = vocabulary;
  rows_ = division.per_rank(vocabulary);
  first_ = group_.rank() * rows_;
}

Tensor VocabularyRows::embedding(const Tensor& table, const std::vector<int64_t>& tokens, double scale) const {
  if (!divided()) return ops::embedding(table, tokens, scale);
  ops::require_tokens(tokens, vocabulary_);
  std::vector<int64_t> rows;
  std::vector<double> own;
  for (const int64_t token : tokens) {
    rows.push_back(has(token) ? token - first_ : 0);
    own.push_back(has(token) ? 1 : 0);
  }
  const Tensor found = ops::embedding(table, rows, scale);
  const Tensor is_own = ops::values_beside(table, own).unsqueeze(1).eq(1);
  return group_.reduce_from_region(at::where(is_own, found, at::zeros_like(found)));
}

Tensor VocabularyRows::logits(const Tensor& hidden, const Tensor& weight, const Tensor& bias) const {
  if (!divided()) return ops::linear(hidden, weight, bias);
  const Tensor own = ops::linear(group_.copy_to_region(hidden), weight, bias);
  return group_.reduce_from_region(at::constant_pad_nd(own, {first_, vocabulary_ - first_ - rows_}));
}

ops::CrossEntropy VocabularyRows::cross_entropy(const Tensor& hidden, const Tensor& weight, const Tensor& bias,
                                                const std::vector<int64_t>& labels, const std::vector<double>& weights,
                                                double smoothing, double scale) const {
  if (!divided()) return ops::linear_cross_entropy(hidden, weight, bias, labels, weights, smoothing, scale);
  ops::require_labels(labels, weights, hidden.size(0), vocabulary_);
  std::vector<int64_t> rows;
  std::vector<double> own;
  for (const int64_t label : labels) {
    rows.push_back(has(label) ? label - first_ : 0);
    own.push_back(has(label) ? 1 : 0);
  }
  const Targets targets{
      .group = group_,
      .vocabulary = static_cast<double>(vocabulary_),
      .rows = ops::index_beside(hidden, rows),
      .own = ops::values_beside(hidden, own),
      .factors = ops::values_beside(hidden, weights.empty() ? std::vector<double>(labels.size(), 1.0) : weights),
      .smoothing = smoothing,
      .scale = scale};
  Tensor nll;
  const Tensor loss = DividedCrossEntropy::apply(hidden, weight, if_defined(bias), targets, &nll);
  return {loss, ops::DeviceScalar(nll)};
}

}  // namespace plumb
