// [watch] "curvature": the largest eigenvalue of the Hessian and of the preconditioned Hessian, against the optimizer's
// stability threshold. Each search starts from the previous eigenvector.
#include "plumb/analysis/watch/curvature.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "plumb/analysis/curvature/hessian.h"
#include "plumb/analysis/curvature/largest.h"
#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/base/glob.h"
#include "plumb/run/config.h"

namespace plumb {

void describe(Fields& field, CurvatureWatchOptions& options) {
  constexpr double kMostProducts = 100'000;
  field("products", options.products, "Hessian-vector products per eigenvalue, at most", within(1, kMostProducts));
  field("first_products", options.first_products, "the same for the first measurement, which has no eigenvector yet",
        within(1, kMostProducts));
  field("tolerance", options.tolerance, "stop once the residual is below this fraction of the eigenvalue; 0: never",
        at_least(0));
  field("random_share", options.random_share,
        "length of the random vector added to the last eigenvector, so that another one can take its place",
        at_least(0));
  field("reference_products", options.reference_products,
        "products of a second search from a random vector, for comparison; 0: none", within(0, kMostProducts));
  field("leave_out", options.leave_out,
        "patterns of parameters that are held fixed, such as `src_embed.weight`; the curvature is that of the others");
  field("graph_memory_gib", options.graph_memory_gib, "most memory for gradient graphs kept between products",
        at_least(0).in("GiB"));
}

void describe(Fields& field, EigenvalueSearch& search) {
  field("value", search.value);
  field("residual", search.residual);
  field("products", search.products);
}

void describe(Fields& field, Sharpness& sharpness) {
  describe(field, sharpness.found);
  field("parameter", sharpness.parameter);
  field("share", sharpness.share);
  field.section("reference", sharpness.reference);
  field("threshold", sharpness.threshold);
  field("share_at_epsilon", sharpness.share_at_epsilon);
}

void describe(Fields& field, CurvatureMeasurement& measurement) {
  field.section("hessian", measurement.hessian);
  field.section("preconditioned", measurement.preconditioned);
  field("gradients", measurement.gradients);
}

namespace {

/// Length of the second Ritz vector when added to the start of the next search.
constexpr double kShareOfSecond = 0.3;

/// v → S·H·S·v with a diagonal S, (n); undefined: the identity.
LinearOperator scaled_hessian(HessianOperator& hessian, const Tensor& scale) {
  if (!scale.defined()) return [&hessian](const Tensor& v) { return hessian(v); };
  return [&hessian, scale](const Tensor& v) { return hessian(v * scale).mul_(scale); };
}

/// Which parameters the curvature leaves out: frozen ones, and those that match a pattern. Throws Error on a pattern
/// that matches no parameter.
std::vector<bool> held_parameters(const WatchedRun& run, const std::vector<std::string>& leave_out) {
  const std::vector<Parameter>& all = run.model.parameters().all();
  std::vector<bool> held;
  for (const ParameterStep& settings : run.settings) held.push_back(settings.frozen);
  for (const std::string& pattern : leave_out) {
    bool used = false;
    for (size_t i = 0; i < all.size(); ++i) {
      if (!glob_matches(pattern, all[i].name)) continue;
      used = held[i] = true;
    }
    if (!used)
      throw Error(fmt::format("watch.curvature.leave_out: the pattern '{}' matches no parameter", pattern),
                  "* matches any characters");
  }
  return held;
}

/// √(f/P) of each element, where f is the learning rate factor of its group: the S for which η·S·H·S has the
/// eigenvalues of the step's η·f·P⁻¹·H. 0 for parameters that are held, and for those that have taken no step.
/// Undefined if P and f are 1 for all parameters that are not held.
Tensor preconditioner_scale(const WatchedRun& run, const std::vector<Tensor>& preconditioner,
                            const std::vector<bool>& held) {
  const std::vector<Parameter>& all = run.model.parameters().all();
  std::vector<Tensor> pieces;
  bool plain = preconditioner.empty();
  for (size_t i = 0; i < all.size(); ++i) {
    const double factor = run.settings[i].learning_rate / run.learning_rate;
    plain = plain && (held[i] || factor == 1);
    const Tensor zero = at::zeros_like(all[i].value.detach());
    if (held[i]) {
      pieces.push_back(zero);
    } else if (preconditioner.empty()) {
      pieces.push_back(zero + std::sqrt(factor));
    } else {
      pieces.push_back(at::where(preconditioner[i] > 0, preconditioner[i].reciprocal().mul_(factor).sqrt_(), zero));
    }
  }
  return plain ? Tensor() : joined(pieces);
}

/// The share of ‖y‖² in elements with √v̂ < 10·ε, that is, P below 11 times its floor: how far a curvature with this
/// eigenvector y of S·H·S is a property of ε. Elements that are held have y = 0.
double share_at_epsilon(const Parameters& parameters, const Preconditioning& given, const Tensor& y) {
  const std::vector<Tensor> pieces = parameters.split(y);
  double small = 0, all = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Tensor squares = pieces[i].to(at::kDouble).square();
    all += squares.sum().item<double>();
    if (given.floor[i] > 0) small += (squares * (given.diagonal[i] < 11 * given.floor[i])).sum().item<double>();
  }
  return small / all;
}

/// 1 for parameters that move, 0 for those that are held; undefined if none is held.
Tensor moving_parameters(const WatchedRun& run, const std::vector<bool>& held) {
  if (!contains(held, true)) return {};
  const std::vector<Parameter>& all = run.model.parameters().all();
  std::vector<Tensor> pieces;
  for (size_t i = 0; i < all.size(); ++i) pieces.push_back(at::full_like(all[i].value.detach(), held[i] ? 0 : 1));
  return joined(pieces);
}

EigenvalueSearch search_of(const Eigenpair& pair) { return {pair.value, pair.residual, pair.products}; }

class CurvatureWatch final : public Watch {
 public:
  explicit CurvatureWatch(const CurvatureWatchOptions& options) : options_(options) {}

  [[nodiscard]] Described measure(const WatchedRun& run) override {
    const std::vector<bool> held = held_parameters(run, options_.leave_out);
    HessianOptions options;
    options.label_smoothing = run.config.label_smoothing;
    options.graph_memory = static_cast<int64_t>(options_.graph_memory_gib * (int64_t{1} << 30));
    options.loss = loss_of(run.task);
    HessianOperator hessian(run.model, run.batches, options);
    // A micro-batch whose graph is kept costs one gradient for the graph and two per product; the others cost three per
    // product.
    const double kept = static_cast<double>(hessian.kept()) / static_cast<double>(run.batches.size());
    const std::optional<Preconditioning> preconditioning = run.optimizer.preconditioning();
    const Tensor scale = preconditioning && run.learning_rate > 0
                             ? preconditioner_scale(run, preconditioning->diagonal, held)
                             : Tensor();
    std::optional<double> threshold;
    if (preconditioning && run.learning_rate > 0) threshold = preconditioning->stable_product / run.learning_rate;
    CurvatureMeasurement found;
    found.hessian = largest("hessian", scaled_hessian(hessian, moving_parameters(run, held)), run).sharpness;
    int64_t products = found.hessian.found.products;
    if (scale.defined()) {
      const Largest search = largest("preconditioned", scaled_hessian(hessian, scale), run);
      found.preconditioned = search.sharpness;
      found.preconditioned->threshold = threshold;
      if (!preconditioning->floor.empty())
        found.preconditioned->share_at_epsilon =
            share_at_epsilon(run.model.parameters(), *preconditioning, search.vector);
      products += search.sharpness.found.products;
    } else {
      found.hessian.threshold = threshold;  // P = 1
    }
    found.gradients = kept + (3 - kept) * static_cast<double>(products);
    return Described(std::move(found));
  }

  [[nodiscard]] NamedTensors state() const override { return {vectors_.begin(), vectors_.end()}; }
  void load_state(const NamedTensors& tensors) override {
    vectors_.clear();
    for (const auto& [name, tensor] : tensors) vectors_[name] = tensor;
  }

 private:
  struct Largest {
    Sharpness sharpness;
    Tensor vector;  // (parameters), the eigenvector
  };

  /// The largest eigenvalue of an operator, starting from its last vector, which it replaces.
  Largest largest(const std::string& name, const LinearOperator& multiply, const WatchedRun& run) {
    const Parameters& parameters = run.model.parameters();
    const auto random_start = [&](uint64_t stream) {
      return random_probe(parameters.count(), parameters.options(), static_cast<uint64_t>(run.config.seed) + stream,
                          run.step);
    };
    const auto known = vectors_.find(name);
    const bool warm = known != vectors_.end() && known->second.numel() == parameters.count();
    const Tensor probe = random_start(0);
    const Tensor start = warm ? known->second.to(parameters.options()) + probe * options_.random_share : probe;
    const Eigenpair pair =
        largest_eigenpair(multiply, start, {warm ? options_.products : options_.first_products, options_.tolerance});
    vectors_[name] = pair.vector + pair.second * kShareOfSecond;
    Largest found{{search_of(pair)}, pair.vector};
    locate(parameters, pair.vector, found.sharpness);
    if (options_.reference_products > 0)
      found.sharpness.reference =
          search_of(largest_eigenpair(multiply, random_start(1), {options_.reference_products, 0}));
    return found;
  }

  /// The parameter with the largest share of ‖y‖² = 1: the location of the curvature.
  static void locate(const Parameters& parameters, const Tensor& vector, Sharpness& sharpness) {
    const std::vector<Tensor> pieces = parameters.split(vector);
    for (size_t i = 0; i < pieces.size(); ++i) {
      const double share = pieces[i].square().sum(at::kDouble).item<double>();
      if (!(share > sharpness.share)) continue;
      sharpness.share = share;
      sharpness.parameter = parameters.all()[i].name;
    }
  }

  CurvatureWatchOptions options_;
  /// (parameters), by operator: the last eigenvector, plus some of the second one, which may overtake it.
  std::map<std::string, Tensor> vectors_;
};

[[maybe_unused]] const bool kCurvatureRegistered = watches().add(
    CurvatureMeasurement::kWatch,
    "λ_max(H) and, for Adam, λ_max(P⁻¹H), P = (1 − β₁ᵗ)·(√(v/(1 − β₂ᵗ)) + eps); threshold of stability: 2/η for "
    "gradient descent, (2 + 2μ)/η with momentum μ, (2 + 2β₁)/((1 − β₁)η) for Adam",
    "Cohen et al. 2021, arXiv 2103.00065; Cohen et al. 2022, arXiv 2207.14484",
    watch_factory<CurvatureWatch, CurvatureWatchOptions>(), Options(CurvatureWatchOptions{}));

}  // namespace
}  // namespace plumb
