// Muon (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon): the momentum of a matrix is orthogonalized, so
// that a step changes all directions equally. It applies to the hidden matrices; embeddings, learned positions, the
// output matrix (also a classifier's), and all parameters that are not matrices use Adam.
//   m ← μm + (1 − μ)g;  u = μm + (1 − μ)g with Nesterov's momentum, else m
//   w ← w − lr·[scale·orthogonal(u) + weight_decay·w],  orthogonal(u) ≈ U·Vᵀ of u = U·S·Vᵀ (newton_schulz.h)
// The scale is √max(1, rows/columns), or with `moonlight` 0.2·√max(rows, columns), which gives the step the root mean
// square of an Adam step, so that Adam's learning rates and weight decay apply (Liu et al. 2025, arXiv 2502.16982).
#include <cmath>

#include "plumb/optim/adam.h"
#include "plumb/optim/newton_schulz.h"

namespace plumb {
namespace {

struct MuonOptions {
  double momentum = 0.95;
  bool nesterov = true;
  int64_t iterations = 5;
  std::string scale = "jordan";
  double adam_rate_factor = 1;
  AdamOptions adam{.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-10};
};
void describe(Fields& field, MuonOptions& options) {
  field("momentum", options.momentum, "μ", below_one());
  field("nesterov", options.nesterov, "whether to use Nesterov momentum");
  field("iterations", options.iterations, "Newton–Schulz iterations", within(1, 1000));
  field("scale", options.scale, "`jordan`: √max(1, rows/columns); `moonlight`: 0.2·√max(rows, columns)",
        one_of({"jordan", "moonlight"}));
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
  Muon(const Parameters& parameters, const MuonOptions& options)
      : Optimizer(parameters),
        options_(options),
        matrices_(parameters, is_hidden_matrix),
        momentum_(matrices_.zeros()),
        rest_(ParameterSet(parameters, [](const Parameter& parameter) { return !is_hidden_matrix(parameter); }),
              options.adam) {}

  /// `momentum.NAME` of the matrices, and Adam's state for the rest.
  [[nodiscard]] NamedTensors state() const override {
    NamedTensors tensors;
    matrices_.append(tensors, "momentum", momentum_);
    rest_.append_state(tensors);
    return tensors;
  }
  void load_state(const NamedTensors& tensors, const std::string& origin) override {
    matrices_.load(tensors, "momentum", momentum_, origin);
    rest_.load_state(tensors, origin);
  }

 private:
  void update(const OptimizerStep& step) override {
    for (const ParameterSet::Member& member : matrices_.members()) {
      const ParameterStep& settings = step.parameters[member.index];
      if (!settings.frozen) update_matrices(member, step.gradients[member.index] * step.gradient_scale, settings);
    }
    std::vector<ParameterStep> settings(step.parameters.begin(), step.parameters.end());
    for (ParameterStep& each : settings) each.learning_rate *= options_.adam_rate_factor;
    rest_.update({step.gradients, settings, step.gradient_scale});
  }

  void update_matrices(const ParameterSet::Member& member, const Tensor& gradient, const ParameterStep& settings) {
    const Tensor m = ParameterSet::piece(member, momentum_);
    m.lerp_(gradient, 1 - options_.momentum);
    const Tensor u = options_.nesterov ? gradient.lerp(m, options_.momentum) : m;
    const std::vector<Tensor> weights = matrices_of(member.parameter, member.parameter.value.detach());
    const std::vector<Tensor> momenta = matrices_of(member.parameter, u);
    for (size_t i = 0; i < weights.size(); ++i) {
      const Tensor direction = newton_schulz(momenta[i], options_.iterations) * scale(weights[i]);
      weights[i].sub_(direction.add_(weights[i], settings.weight_decay), settings.learning_rate);
    }
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

const bool kMuonRegistered = optimizers().add(
    "muon",
    "for matrices within the model: m ← μm + (1 − μ)g; u = μm + (1 − μ)g; w ← w − lr·[scale·U·Vᵀ + weight_decay·w] "
    "with U·S·Vᵀ = u, by Newton–Schulz; for embeddings, the output matrix, biases, norms and so on: `adam`",
    "Jordan et al. 2024; `moonlight`: Liu et al. 2025, arXiv 2502.16982",
    [](const Parameters& parameters, const Options& options) {
      return std::make_unique<Muon>(parameters, options.as<MuonOptions>());
    },
    Options(MuonOptions{}));

}  // namespace
}  // namespace plumb
