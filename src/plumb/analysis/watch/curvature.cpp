// [watch] "curvature": the largest eigenvalue of the Hessian and of the preconditioned Hessian, against the optimizer's
// stability threshold. Each search starts from the previous eigenvector.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "plumb/analysis/curvature/hessian.h"
#include "plumb/analysis/curvature/largest.h"
#include "plumb/base/glob.h"
#include "plumb/optim/checks.h"
#include "plumb/run/config.h"

namespace plumb {
namespace {

/// Length of the second Ritz vector when added to the start of the next search.
constexpr double kShareOfSecond = 0.3;

struct CurvatureWatchOptions {
  int64_t products = 10;
  int64_t first_products = 40;
  double tolerance = 0.01;
  double random_share = 0.1;
  int64_t reference_products = 0;
  std::vector<std::string> leave_out;
  double graph_memory_gib = 2.0;
};
void describe(Fields& field, CurvatureWatchOptions& options) {
  field("products", options.products, "Hessian-vector products per eigenvalue, at most");
  field("first_products", options.first_products, "the same for the first measurement, which has no eigenvector yet");
  field("tolerance", options.tolerance, "stop once the residual is below this fraction of the eigenvalue; 0: never");
  field("random_share", options.random_share,
        "length of the random vector added to the last eigenvector, so that another one can take its place");
  field("reference_products", options.reference_products,
        "products of a second search from a random vector, for comparison; 0: none");
  field("leave_out", options.leave_out,
        "patterns of parameters that are held fixed, such as `src_embed.weight`; the curvature is that of the others");
  field("graph_memory_gib", options.graph_memory_gib, "memory for gradient graphs kept between products");
}

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
  if (std::find(held.begin(), held.end(), true) == held.end()) return {};
  const std::vector<Parameter>& all = run.model.parameters().all();
  std::vector<Tensor> pieces;
  for (size_t i = 0; i < all.size(); ++i) pieces.push_back(at::full_like(all[i].value.detach(), held[i] ? 0 : 1));
  return joined(pieces);
}

constexpr int64_t kMostProducts = 100'000;

class CurvatureWatch final : public Watch {
 public:
  explicit CurvatureWatch(const CurvatureWatchOptions& options) : options_(options) {
    check_within("watch.curvature.products", options.products, int64_t{1}, kMostProducts);
    check_within("watch.curvature.first_products", options.first_products, int64_t{1}, kMostProducts);
    check_at_least("watch.curvature.tolerance", options.tolerance, 0.0);
    check_at_least("watch.curvature.random_share", options.random_share, 0.0);
    check_within("watch.curvature.reference_products", options.reference_products, int64_t{0}, kMostProducts);
    check_at_least("watch.curvature.graph_memory_gib", options.graph_memory_gib, 0.0);
  }

  [[nodiscard]] Json measure(const WatchedRun& run) override {
    const std::vector<bool> held = held_parameters(run, options_.leave_out);
    HessianOptions options;
    options.label_smoothing = run.config.label_smoothing;
    options.graph_memory = static_cast<int64_t>(options_.graph_memory_gib * (int64_t{1} << 30));
    options.loss = [&run](Model& model, const Batch& batch, const LossOptions& loss_options, ForwardContext& context) {
      return run.task.loss(model, batch, loss_options, context);
    };
    HessianOperator hessian(run.model, run.batches, options);
    // A micro-batch whose graph is kept costs one gradient for the graph and two per product; the others cost three per
    // product.
    const double kept = static_cast<double>(hessian.kept()) / static_cast<double>(run.batches.size());
    const double per_product = 3 - kept;
    double gradients = kept;
    int64_t products = 0;
    Json json = Json::object();
    const std::optional<Preconditioning> preconditioning = run.optimizer.preconditioning();
    const auto search = [&](const std::string& name, const Tensor& scale, std::optional<double> stable_product) {
      Tensor vector;
      Json found = largest(name, scaled_hessian(hessian, scale), run, products, vector);
      if (stable_product && run.learning_rate > 0) found["threshold"] = *stable_product / run.learning_rate;
      if (name == "preconditioned" && !preconditioning->floor.empty())
        found["share_at_epsilon"] = share_at_epsilon(run.model.parameters(), *preconditioning, vector);
      json[name] = found;
    };
    const Tensor scale = preconditioning && run.learning_rate > 0
                             ? preconditioner_scale(run, preconditioning->diagonal, held)
                             : Tensor();
    const bool same = preconditioning && !scale.defined();  // P = 1: the threshold is that of H
    search("hessian", moving_parameters(run, held),
           same ? std::optional(preconditioning->stable_product) : std::nullopt);
    if (scale.defined()) search("preconditioned", scale, preconditioning->stable_product);
    gradients += per_product * static_cast<double>(products);
    json["gradients"] = gradients;
    return json;
  }

  [[nodiscard]] NamedTensors state() const override { return {vectors_.begin(), vectors_.end()}; }
  void load_state(const NamedTensors& tensors) override {
    vectors_.clear();
    for (const auto& [name, tensor] : tensors) vectors_[name] = tensor;
  }

 private:
  /// The largest eigenvalue of an operator, starting from its last vector, which it replaces. Adds to `products`, and
  /// sets `vector` to the eigenvector.
  Json largest(const std::string& name, const LinearOperator& multiply, const WatchedRun& run, int64_t& products,
               Tensor& vector) {
    const Parameters& parameters = run.model.parameters();
    const Tensor probe =
        random_probe(parameters.count(), parameters.options(), static_cast<uint64_t>(run.config.seed), run.step);
    const auto known = vectors_.find(name);
    const bool warm = known != vectors_.end() && known->second.numel() == parameters.count();
    const Tensor start = warm ? known->second.to(parameters.options()) + probe * options_.random_share : probe;
    const Eigenpair pair =
        largest_eigenpair(multiply, start, {warm ? options_.products : options_.first_products, options_.tolerance});
    vectors_[name] = pair.vector + pair.second * kShareOfSecond;
    products += pair.products;
    vector = pair.vector;
    Json json;
    json["value"] = pair.value;
    json["residual"] = pair.residual;
    json["products"] = pair.products;
    add_location(parameters, pair.vector, json);
    if (options_.reference_products > 0) {
      const Eigenpair reference = largest_eigenpair(
          multiply,
          random_probe(parameters.count(), parameters.options(), static_cast<uint64_t>(run.config.seed) + 1, run.step),
          {options_.reference_products, 0});
      json["reference"] = {
          {"value", reference.value}, {"residual", reference.residual}, {"products", reference.products}};
    }
    return json;
  }

  /// The parameter with the largest share of ‖y‖² = 1: the location of the curvature.
  static void add_location(const Parameters& parameters, const Tensor& vector, Json& json) {
    const std::vector<Tensor> pieces = parameters.split(vector);
    double most = -1;
    for (size_t i = 0; i < pieces.size(); ++i) {
      const double share = pieces[i].square().sum(at::kDouble).item<double>();
      if (!(share > most)) continue;
      most = share;
      json["parameter"] = parameters.all()[i].name;
      json["share"] = share;
    }
  }

  CurvatureWatchOptions options_;
  /// (parameters), by operator: the last eigenvector, plus some of the second one, which may overtake it.
  std::map<std::string, Tensor> vectors_;
};

[[maybe_unused]] const bool kCurvatureRegistered = watches().add(
    "curvature",
    "λ_max(H) and, for Adam, λ_max(P⁻¹H), P = (1 − β₁ᵗ)·(√(v/(1 − β₂ᵗ)) + eps); threshold of stability: 2/η for "
    "gradient descent, (2 + 2μ)/η with momentum μ, (2 + 2β₁)/((1 − β₁)η) for Adam",
    "Cohen et al. 2021, arXiv 2103.00065; Cohen et al. 2022, arXiv 2207.14484",
    [](const Options& options) { return std::make_unique<CurvatureWatch>(options.as<CurvatureWatchOptions>()); },
    Options(CurvatureWatchOptions{}));

}  // namespace
}  // namespace plumb
