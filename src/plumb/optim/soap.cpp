// SOAP (Vyas et al. 2024, arXiv 2409.11321, algorithm 3): Adam in the eigenbasis of Shampoo's preconditioner. For a
// matrix with gradient G and rotations P and Q:
//   G′ = Pᵀ·G·Q;  M ← β₁M + (1 − β₁)G;  M′ = Pᵀ·M·Q;  V ← β₂V + (1 − β₂)G′²
//   W ← W − lr·[P·((M′/(1 − β₁ᵗ)) / (√(V/(1 − β₂ᵗ)) + eps))·Qᵀ + weight_decay·W]
//   L ← β₂L + (1 − β₂)G·Gᵀ;  R ← β₂R + (1 − β₂)Gᵀ·G
//   every `every` steps: the columns of P are sorted by decreasing diagonal of Pᵀ·L·P, the rows of V with them; then
//   P ← orthogonal factor of L·P = P·(triangular); likewise Q with R and the columns of V
// As in the authors' code, which sorts before the QR iteration where the paper does not, and where the first gradient
// only sets L, R and their eigenvectors P and Q, so that no gradient is rotated by a basis computed from it; t counts
// from the next step. There eps is added to √V, here to √(V/(1 − β₂ᵗ)), as in Adam. A side longer than `longest_side`
// is not rotated; a matrix with two such sides, and all parameters that are not matrices, use Adam.
#include <algorithm>
#include <cmath>
#include <limits>

#include "plumb/ops/linear.h"
#include "plumb/optim/adam.h"

namespace plumb {
namespace {

struct SoapOptions {
  AdamOptions adam{.beta1 = 0.95, .beta2 = 0.95, .eps = 1e-8};
  int64_t every = 10;
  int64_t longest_side = 2048;
};
void describe(Fields& field, SoapOptions& options) {
  field("beta1", options.adam.beta1, "β₁, decay rate of the running mean of gradients", below_one());
  field("beta2", options.adam.beta2, "β₂, decay rate of the running means of squared gradients, of G·Gᵀ and of Gᵀ·G",
        below_one());
  field("eps", options.adam.eps, "added to the square root of the mean of squared gradients", epsilon());
  field("every", options.every, "steps between updates of the rotations", at_least(1));
  field("longest_side", options.longest_side, "a side of a matrix with more rows or columns is not rotated",
        at_least(0));
}

Tensor times(const Tensor& a, const Tensor& b) { return ops::gemm(a, b); }
Tensor transposed_times(const Tensor& a, const Tensor& b) { return ops::gemm(a, b, {.transpose_a = true}); }
Tensor times_transposed(const Tensor& a, const Tensor& b) { return ops::gemm(a, b, {.transpose_b = true}); }

/// The rotation of one side of a matrix: a running mean of G·Gᵀ or Gᵀ·G, and an orthogonal matrix that nearly
/// diagonalizes it. Both are undefined if the side is not rotated.
struct Rotation {
  Tensor mean{}, basis{};

  /// Starts from the first product: its eigenvectors, in order of decreasing eigenvalue. NaN if the product is not
  /// finite.
  void begin(const Tensor& product, double beta) const {
    mean.copy_(product * (1 - beta));
    if (!product.isfinite().all().item<bool>()) {
      basis.fill_(std::numeric_limits<double>::quiet_NaN());
      return;
    }
    basis.copy_(std::get<1>(at::linalg_eigh(product.to(at::kDouble))).flip(-1));
  }
  /// One step of power iteration with QR, from the basis sorted by its estimated eigenvalues. `v`: the mean squares in
  /// this basis along `dimension`, which are sorted with it.
  void improve(const Tensor& v, int64_t dimension) const {
    const Tensor order = std::get<1>((basis * times(mean, basis)).sum(0).sort(/*stable=*/true, 0, /*descending=*/true));
    v.copy_(v.index_select(dimension, order));
    basis.copy_(std::get<0>(at::linalg_qr(times(mean, basis.index_select(1, order)))));
  }
};

/// A matrix with the optimizer's state for it; the tensors are views.
struct Rotated {
  size_t member, part;
  Tensor weight, m, v;
  Rotation left, right;

  [[nodiscard]] Tensor to_basis(const Tensor& x) const {
    const Tensor half = left.basis.defined() ? transposed_times(left.basis, x) : x;
    return right.basis.defined() ? times(half, right.basis) : half;
  }
  [[nodiscard]] Tensor from_basis(const Tensor& x) const {
    const Tensor half = left.basis.defined() ? times(left.basis, x) : x;
    return right.basis.defined() ? times_transposed(half, right.basis) : half;
  }
};

bool is_rotated(const Parameter& parameter, int64_t longest) {
  if (parameter.value.dim() != 2) return false;
  const std::vector<int64_t> rows =
      parameter.parts.empty() ? std::vector<int64_t>{parameter.value.size(0)} : parameter.parts;
  return parameter.value.size(1) <= longest ||
         std::all_of(rows.begin(), rows.end(), [&](int64_t count) { return count <= longest; });
}

class Soap final : public Optimizer {
 public:
  /// The state is `rotation_step`; `m.NAME`, `v.NAME`, `left.NAME`, `left_basis.NAME`, `right.NAME` and
  /// `right_basis.NAME` of matrices (of stacked ones, `left.0.NAME` and so on); and Adam's for the rest.
  Soap(const Parameters& parameters, const SoapOptions& options)
      : Optimizer(parameters),
        options_(options),
        set_(parameters, [&](const Parameter& each) { return is_rotated(each, options.longest_side); }),
        m_(set_.zeros()),
        v_(set_.zeros()),
        steps_(set_.members().size()),
        rest_(ParameterSet(parameters, [&](const Parameter& each) { return !is_rotated(each, options.longest_side); }),
              options.adam) {
    const auto rotation = [&](int64_t side) {
      if (side > options.longest_side) return Rotation{};
      return Rotation{at::zeros({side, side}, parameters.options()), at::zeros({side, side}, parameters.options())};
    };
    for (size_t k = 0; k < set_.members().size(); ++k) {
      const ParameterSet::Member& member = set_.members()[k];
      const std::vector<Tensor> weights = matrices_of(member.parameter, member.parameter.value.detach());
      const std::vector<Tensor> m = matrices_of(member.parameter, ParameterSet::piece(member, m_));
      const std::vector<Tensor> v = matrices_of(member.parameter, ParameterSet::piece(member, v_));
      for (size_t i = 0; i < weights.size(); ++i)
        matrices_.push_back({k, i, weights[i], m[i], v[i], rotation(weights[i].size(0)), rotation(weights[i].size(1))});
    }
    set_.append_numbers(declared_state(), "rotation_step", steps_.numbers());
    set_.append(declared_state(), "m", m_);
    set_.append(declared_state(), "v", v_);
    for (const Rotated& matrix : matrices_) {
      const ParameterSet::Member& member = set_.members()[matrix.member];
      const auto add = [&](const std::string& kind, const Tensor& square) {
        if (!square.defined()) return;
        declared_state().push_back(
            {.kind = kind_of(kind, member.parameter, matrix.part), .parameter = member.index, .value = square});
      };
      add("left", matrix.left.mean);
      add("left_basis", matrix.left.basis);
      add("right", matrix.right.mean);
      add("right_basis", matrix.right.basis);
    }
    rest_.append_state(declared_state());
  }

  /// The first step sets the rotations.
  [[nodiscard]] Beginning beginning() const override { return {.preparatory_steps = 1}; }

 private:
  void update(const OptimizerStep& step) override {
    for (const size_t k : set_.moving(step)) steps_.next(k);
    for (const Rotated& matrix : matrices_) {
      const ParameterSet::Member& member = set_.members()[matrix.member];
      const ParameterStep& settings = step.parameters[member.index];
      if (settings.frozen) continue;
      const Tensor gradient = matrices_of(member.parameter, step.gradients[member.index])[matrix.part];
      update_matrix(matrix, gradient * step.gradient_scale, steps_[matrix.member] - 1, settings);
    }
    rest_.update(step);
  }

  /// Step t of a matrix, counted from 0.
  void update_matrix(const Rotated& matrix, const Tensor& gradient, int64_t t, const ParameterStep& settings) const {
    const double beta1 = options_.adam.beta1, beta2 = options_.adam.beta2;
    if (t == 0) {
      if (matrix.left.mean.defined()) matrix.left.begin(times_transposed(gradient, gradient), beta2);
      if (matrix.right.mean.defined()) matrix.right.begin(transposed_times(gradient, gradient), beta2);
      return;
    }
    const auto count = static_cast<double>(t);
    const Tensor rotated = matrix.to_basis(gradient);
    matrix.m.lerp_(gradient, 1 - beta1);
    matrix.v.mul_(beta2).addcmul_(rotated, rotated, 1 - beta2);
    const Tensor divisor = (matrix.v / (1 - std::pow(beta2, count))).sqrt_().add_(options_.adam.eps);
    const Tensor direction =
        matrix.from_basis(matrix.to_basis(matrix.m).div_(divisor)).div_(1 - std::pow(beta1, count));
    matrix.weight.sub_(at::add(direction, matrix.weight, settings.weight_decay), settings.learning_rate);
    if (matrix.left.mean.defined()) matrix.left.mean.lerp_(times_transposed(gradient, gradient), 1 - beta2);
    if (matrix.right.mean.defined()) matrix.right.mean.lerp_(transposed_times(gradient, gradient), 1 - beta2);
    if (t % options_.every != 0) return;
    if (matrix.left.mean.defined()) matrix.left.improve(matrix.v, 0);
    if (matrix.right.mean.defined()) matrix.right.improve(matrix.v, 1);
  }

  SoapOptions options_;
  ParameterSet set_;
  Tensor m_, v_;  // M and V
  StepCounts steps_;
  std::vector<Rotated> matrices_;
  AdamMoments rest_;
};

const bool kSoapRegistered = add_optimizer<Soap, SoapOptions>(
    "soap",
    "for matrices: G′ = Pᵀ·G·Q, P and Q the eigenvectors of running means of G·Gᵀ and Gᵀ·G; `adam`'s step from the "
    "running means of G, rotated, and G′², rotated back; the first step only sets P and Q; for the rest: `adam`",
    "Vyas et al. 2024, arXiv 2409.11321");

}  // namespace
}  // namespace plumb
