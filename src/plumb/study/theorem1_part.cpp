// The gradient that Theorem 1 bounds, that of one token's loss, by width and depth: Xiong et al. 2020, arXiv
// 2002.04745.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "plumb/analysis/gradient.h"
#include "plumb/analysis/signal.h"
#include "plumb/analysis/theory.h"
#include "plumb/analysis/token_gradient.h"
#include "plumb/base/error.h"
#include "plumb/model/kind.h"
#include "plumb/report/display_name.h"
#include "plumb/study/over_seeds.h"

namespace plumb {
namespace {

struct Theorem1Study {
  std::vector<int64_t> widths = {64, 128, 256};
  std::vector<int64_t> layers = {3, 6, 12};
  int64_t seeds = 5;
  int64_t pairs = 50;
};

void describe(Fields& field, Theorem1Study& part) {
  field("widths", part.widths, "values of `d_model`, each with the first of `layers`", count_from(2).each_once());
  field("layers", part.layers, "layers in each of encoder and decoder, each with the first of `widths`",
        count_from(1).each_once());
  field("seeds", part.seeds, kSeedsMeaning, count_from(1));
  field("pairs", part.pairs, "pairs from the beginning of the measured split, of each of which one token is taken",
        count_from(1));
}

/// Of one model.
struct LastGradient {
  double norm = 0;    // E‖∂L_t/∂W^{2,L}‖_F over tokens t
  double square = 0;  // E‖x‖²/d of what the last norm reads
};

void describe(Fields& field, LastGradient& gradient) {
  field("norm", gradient.norm);
  field("square", gradient.square);
}

struct Size {
  int64_t width = 0;
  int64_t layers = 0;
  Planned<std::vector<LastGradient>> by_seed;

  [[nodiscard]] std::vector<double> norms() const { return numbers_in(*by_seed, &LastGradient::norm); }
  /// One token's gradient is δhᵀ. In the theory's setting the output's rows have a norm of 1, and so has the loss's
  /// gradient with respect to the state, as long as no token is probable; the last norm divides it by √square, and
  /// ‖h‖² = d/2 after ReLU.
  [[nodiscard]] std::vector<double> predicted() const {
    return numbers_in(
        *by_seed, [this](const LastGradient& one) { return std::sqrt(static_cast<double>(width) / 2 / one.square); });
  }
};

/// The sizes of one arm that differ in one thing.
struct Family {
  const char* id;
  const char* words;  // on the axis
  int64_t Size::*size;
  std::vector<Size> sizes;

  /// [seed]: the exponent p of the gradient as size^p.
  [[nodiscard]] std::vector<double> exponents() const {
    std::vector<double> values;
    std::vector<std::vector<double>> norms;
    for (const Size& one : sizes) {
      values.push_back(static_cast<double>(one.*size));
      norms.push_back(one.norms());
    }
    return power_exponents(values, norms);
  }
};

using ByArm = std::map<std::string, std::vector<Family>>;  // the families of widths and of depths

/// Each once, though the two families share one.
std::vector<Size> all_sizes(const std::vector<Family>& families) {
  std::vector<Size> sizes = families[0].sizes;
  for (const Size& size : families[1].sizes) {
    if (size.layers != sizes.front().layers) sizes.push_back(size);
  }
  return sizes;
}

/// [seed]: the measured gradient over the predicted one, the geometric mean over all sizes.
std::vector<double> mean_ratios(const std::vector<Family>& families, int64_t seeds) {
  std::vector<double> logarithms(static_cast<size_t>(seeds), 0.0);
  const std::vector<Size> sizes = all_sizes(families);
  for (const Size& size : sizes) {
    const std::vector<double> ratios = seed_by_seed(size.norms(), size.predicted(), std::divides<>());
    for (size_t i = 0; i < ratios.size(); ++i) logarithms[i] += std::log(ratios[i]);
  }
  return numbers_in(logarithms, [&sizes](double sum) { return std::exp(sum / static_cast<double>(sizes.size())); });
}

double bound_of(const std::string& arm, const Size& size) {
  return arm == "post-ln" ? theory::theorem1_post_ln(size.width) : theory::theorem1_pre_ln(size.width, size.layers);
}

PartResult report(const Theorem1Study& part, const ByArm& measured) {
  PartResult result;
  Table table{"theorem1",
              "Theorem 1: the gradient of one token's loss",
              fmt::format("Frobenius norm of the gradient of the last layer's W₂ in the theory's setting, mean over "
                          "tokens and geometric mean over seeds ({}); predicted: √(d/2)/√(E‖x‖²/d), x being what the "
                          "last norm reads; bound: d√ln d "
                          "for Post-LN, d√(ln d / L) for Pre-LN, without its constant.",
                          seeds_in_words(part.seeds)),
              {"arm", "d", "layers", "gradient norm", "low", "high", "predicted", "bound", "norm / bound"}};
  for (const auto& [arm, families] : measured) {
    for (const Size& size : all_sizes(families)) {
      const Interval norm = geometric_interval(size.norms());
      const double bound = bound_of(arm, size);
      table.row(arm, size.width, size.layers, norm, geometric_interval(size.predicted()).mean, bound,
                norm.mean / bound);
    }
  }
  for (size_t k = 0; k < 2; ++k) {
    const Family& first = measured.begin()->second[k];
    Figure figure{
        first.id,
        fmt::format("Gradient of one token's loss by {}", first.words),
        fmt::format("Frobenius norm of the gradient of the last layer's W₂ at initialization, in the theory's "
                    "setting; geometric mean ({}). Dashed: predicted.",
                    seeds_in_words(part.seeds)),
        "line",
        {first.words, true},
        {"gradient norm", true}};
    for (const auto& [arm, families] : measured) {
      Series& points = figure.add(display_name(arm), arm, "points");
      Series& line = figure.add(display_name(arm) + ", predicted", arm, "dashed");
      std::vector<Size> sizes = families[k].sizes;
      std::sort(sizes.begin(), sizes.end(),
                [&first](const Size& a, const Size& b) { return a.*first.size < b.*first.size; });
      for (const Size& size : sizes) {
        points.point(size.*first.size, geometric_interval(size.norms()));
        line.point(size.*first.size, geometric_interval(size.predicted()).mean);
      }
    }
    result.figures.push_back(figure);
  }
  result.tables.push_back(table);
  return result;
}

PartPlan plan(StudyContext& context, const Theorem1Study& part) {
  PartPlan plan(context);
  ByArm measured;
  for (const std::string& arm : arm_names(context)) {
    if (arm != "post-ln" && arm != "pre-ln") continue;  // not covered by the theory
    const auto planned_size = [&](int64_t width, int64_t layers) {
      const ActivationPoint read = {{last_stack(context), layers - 1, SubLayerKind::feed_forward},
                                    arm == "post-ln" ? Point::sum : Point::stream};
      ModelConfig config = theory_model(context, arm, width, "theory", layers);
      // Of tied matrices, the state would point at the row of the token that was read.
      config.share_embeddings = "none";
      if (kind_of(config).recurrent || config.labels > 0)
        throw Error("[theorem1] is about Transformers that predict tokens", "leave it out, or change model.kind");
      return Size{width, layers,
                  over_seeds(plan, context,
                             {.name = fmt::format("theorem1-{}-{}-{}", arm, width, layers),
                              .label = fmt::format("one token's gradient, {}, width {}, {} layers", display_name(arm),
                                                   width, layers),
                              .model = config,
                              .seeds = part.seeds,
                              .pairs = part.pairs,
                              .batch_tokens = 1},
                             [read](Model& model, const std::vector<Batch>& batches) {
                               const auto width = static_cast<double>(model.config().d_model);
                               const std::string matrix = feed_forward_matrix({read.id.stack, *read.id.layer}, 2);
                               return LastGradient{mean_of(measure_token_gradients(model, batches, matrix)),
                                                   measure_signal(model, batches).at(read).mean_square / width};
                             })};
    };
    std::vector<Family>& families = measured[arm];
    families = {{"token_gradient_width", "width d", &Size::width, {}},
                {"token_gradient_depth", "layers L", &Size::layers, {}}};
    for (const int64_t width : part.widths) families[0].sizes.push_back(planned_size(width, part.layers.front()));
    for (const int64_t layers : part.layers) families[1].sizes.push_back(planned_size(part.widths.front(), layers));
    for (const Family& family : families) {
      if (family.sizes.size() < 2) continue;
      plan.quantity(std::string(family.id) + "_exponent",
                    fmt::format("exponent of one token's gradient of the last W₂ over the {}", family.words),
                    Scale::linear, arm, [family] { return family.exponents(); })
          .figure = family.id;
    }
    Quantity& ratio =
        plan.quantity("token_gradient_over_prediction",
                      "one token's gradient of the last W₂ / √(d/2 / (E‖x‖²/d)), geometric mean over all sizes",
                      Scale::logarithmic, arm, [families, seeds = part.seeds] { return mean_ratios(families, seeds); });
    ratio.figure = families.front().id;
    ratio.telling = {"gradient of one token's loss / what the theory's setting predicts"};
  }
  plan.report = [part, measured] { return measured.empty() ? PartResult{} : report(part, measured); };
  return plan;
}

[[maybe_unused]] const bool kTheorem1 =
    add_part<Theorem1Study>("theorem1", "the gradient of one token's loss, by width and depth in the theory's setting",
                            "Xiong et al. 2020, arXiv 2002.04745, Theorem 1", {.order = 4, .plan = plan});

}  // namespace
}  // namespace plumb
