// Muon (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon): the momentum of a matrix is orthogonalized, so
// that a step changes all directions equally. It applies to the hidden matrices; embeddings, learned positions, the
// output matrix (also a classifier's), and all parameters that are not matrices use Adam.
//   m ← μm + (1 − μ)g;  u = μm + (1 − μ)g with Nesterov's momentum, else m
//   w ← w − lr·[scale·orthogonal(u) + weight_decay·w],  orthogonal(u) ≈ U·Vᵀ of u = U·S·Vᵀ (newton_schulz.h)
// The scale is √max(1, rows/columns), or with `moonlight` 0.2·√max(rows, columns), which gives the step the root mean
// square of an Adam step, so that Adam's learning rates and weight decay apply (Liu et al. 2025, arXiv 2502.16982).
#include <algorithm>
#include <cmath>

#include "plumb/base/parallel.h"
#include "plumb/ops/precision.h"
#include "plumb/optim/adam.h"
#include "plumb/optim/newton_schulz.h"

namespace plumb {
namespace {

struct MuonOptions {
  double momentum = 0.95;
  bool nesterov = true;
  int64_t iterations = 5;
  std::string scale = "jordan";
  bool bfloat16 = false;
  double adam_rate_factor = 1;
  AdamOptions adam{.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-10};
};
void describe(Fields& field, MuonOptions& options) {
  field("momentum", options.momentum, "μ", below_one());
  field("nesterov", options.nesterov, "whether to use Nesterov momentum");
  field("iterations", options.iterations, "Newton–Schulz iterations", within(1, 1000));
  field("scale", options.scale, "`jordan`: √max(1, rows/columns); `moonlight`: 0.2·√max(rows, columns)",
        one_of({"jordan", "moonlight"}));
  field("bfloat16", options.bfloat16,
        "whether Newton–Schulz rounds the operands of its products to bfloat16 even if `train.precision` is float32");
  field("adam_rate_factor", options.adam_rate_factor, "multiplies lr for the parameters that Adam trains", at_least(0));
  field.section("adam", options.adam);
}

bool is_hidden_matrix(const Parameter& parameter) {
  const Role role = parameter.role;
  return parameter.value.dim() == 2 && role != Role::embedding && role != Role::readout && role != Role::position &&
         role != Role::gain && role != Role::shift && role != Role::bias && role != Role::constant;
}

class Muon final : public Optimizer {
 public:
  /// The state is `momentum.NAME` of the matrices, and Adam's for the rest.
  Muon(const Parameters& parameters, const MuonOptions& options)
      : Optimizer(parameters),
        options_(options),
        matrices_(parameters, is_hidden_matrix),
        momentum_(matrices_.zeros()),
        rest_(ParameterSet(parameters, [](const Parameter& parameter) { return !is_hidden_matrix(parameter); }),
              options.adam) {
    matrices_.append(declared_state(), "momentum", momentum_);
    rest_.append_state(declared_state());
  }

 private:
  /// A matrix to update, with its gradient and momentum (views).
  struct Matrix {
    Tensor weight, gradient, momentum;
    ParameterStep settings;
  };

  void update(const OptimizerStep& step) override {
    std::vector<Matrix> matrices;
    for (const size_t k : matrices_.moving(step)) {
      const ParameterSet::Member& member = matrices_.members()[k];
      const auto parts = [&](const Tensor& whole) { return matrices_of(member.parameter, whole); };
      const std::vector<Tensor> weights = parts(member.parameter.value.detach());
      const std::vector<Tensor> gradients = parts(step.gradients[member.index]);
      const std::vector<Tensor> momenta = parts(ParameterSet::piece(member, momentum_));
      for (size_t i = 0; i < weights.size(); ++i)
        matrices.push_back({weights[i], gradients[i], momenta[i], step.parameters[member.index]});
    }
    update_all(matrices, step.gradient_scale);
    std::vector<ParameterStep> settings(step.parameters.begin(), step.parameters.end());
    for (ParameterStep& each : settings) each.learning_rate *= options_.adam_rate_factor;
    rest_.update({step.gradients, settings, step.gradient_scale});
  }

  /// With enough matrices, each thread takes whole ones: it waits for no other, and finds them in its cache.
  void update_all(std::vector<Matrix>& matrices, double gradient_scale) const {
    const bool bfloat16 = options_.bfloat16 || (!matrices.empty() && ops::rounds_to_bfloat16(matrices[0].weight));
    const auto work = [&](int64_t i) {
      const at::NoGradGuard no_graph;  // grad mode and precision are per thread
      update_matrix(matrices[static_cast<size_t>(i)], gradient_scale, bfloat16);
    };
    const auto count = std::ssize(matrices);
    if (momentum_.device().is_cpu() && count >= 4 * omp_get_max_threads()) {
      std::stable_sort(matrices.begin(), matrices.end(),
                       [](const Matrix& a, const Matrix& b) { return a.weight.numel() > b.weight.numel(); });
      return parallel_items(count, work);
    }
    for (int64_t i = 0; i < count; ++i) work(i);
  }

  void update_matrix(const Matrix& matrix, double gradient_scale, bool bfloat16) const {
    const auto& [w, gradient, m, settings] = matrix;
    const Tensor g = gradient_scale == 1 ? gradient : gradient * gradient_scale;
    m.lerp_(g, 1 - options_.momentum);
    const Tensor u = options_.nesterov ? g.lerp(m, options_.momentum) : m;
    const Tensor direction = newton_schulz(u, options_.iterations, bfloat16) * scale(w);
    w.sub_(direction.add_(w, settings.weight_decay), settings.learning_rate);
  }

  [[nodiscard]] double scale(const Tensor& matrix) const {
    const auto r = static_cast<double>(matrix.size(0)), c = static_cast<double>(matrix.size(1));
    return options_.scale == "moonlight" ? 0.2 * std::sqrt(std::max(r, c)) : std::sqrt(std::max(1.0, r / c));
  }

  MuonOptions options_;
  ParameterSet matrices_;
  Tensor momentum_;  // m
  AdamMoments rest_;
};

const bool kMuonRegistered = add_optimizer<Muon, MuonOptions>(
    "muon",
    "for matrices within the model: m ← μm + (1 − μ)g; u = μm + (1 − μ)g; w ← w − lr·[scale·U·Vᵀ + weight_decay·w] "
    "with U·S·Vᵀ = u, by Newton–Schulz; for embeddings, the output matrix, biases, norms and so on: `adam`",
    "Jordan et al. 2024; `moonlight`: Liu et al. 2025, arXiv 2502.16982");

}  // namespace
}  // namespace plumb
