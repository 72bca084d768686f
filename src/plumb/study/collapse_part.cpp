// Representation collapse: how much each sub-layer still changes the representation; Xie et al. 2023, arXiv 2304.14802.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "plumb/analysis/collapse.h"
#include "plumb/analysis/statistics.h"
#include "plumb/base/progress.h"
#include "plumb/base/text.h"
#include "plumb/study/trained_run.h"

namespace plumb {
namespace {

/// The measurements of one stack of one scheme: [depth − 1][seed].
struct Curves {
  using Curve = std::vector<std::vector<double>>;
  Curve change, effective_rank, mean_square, similarity;
};

struct Profile {
  Curves decoder, encoder;

  [[nodiscard]] const Curves& of(StackKind stack) const { return stack == StackKind::encoder ? encoder : decoder; }
};

/// Calls visit(name, curve) for each quantity of a stack.
template <typename SomeCurves, typename Visit>
void for_each_curve(SomeCurves& curves, const Visit& visit) {
  visit("change", curves.change);
  visit("effective_rank", curves.effective_rank);
  visit("mean_square", curves.mean_square);
  visit("similarity", curves.similarity);
}

Json to_json(const Curves& curves) {
  Json json;
  for_each_curve(curves, [&](const char* name, const Curves::Curve& curve) { json[name] = curve; });
  return json;
}

void from_json(const Json& json, Curves& curves) {
  for_each_curve(curves, [&](const char* name, Curves::Curve& curve) {
    for (const Json& seeds : json.at(name)) curve.push_back(numbers_of(seeds));
  });
}

Json to_json(const Profile& profile) {
  return {{"decoder", to_json(profile.decoder)}, {"encoder", to_json(profile.encoder)}};
}

void from_json(const Json& json, Profile& profile) {
  from_json(json.at("decoder"), profile.decoder);
  from_json(json.at("encoder"), profile.encoder);
}

void add(Curves& curves, const std::vector<CollapsePoint>& points) {
  for_each_curve(curves, [&](const char*, Curves::Curve& curve) { curve.resize(points.size()); });
  for (size_t k = 0; k < points.size(); ++k) {
    curves.change[k].push_back(points[k].change);
    curves.effective_rank[k].push_back(points[k].effective_rank);
    curves.mean_square[k].push_back(points[k].mean_square);
    curves.similarity[k].push_back(points[k].similarity);
  }
}

void add(Profile& profile, const CollapseProfile& measured) {
  add(profile.encoder, measured.encoder);
  add(profile.decoder, measured.decoder);
}

MeasurementRequest collapse_request(StudyContext& context, const std::string& scheme, const CollapseStudy& part) {
  const ModelConfig config = model_for(context, scheme, part.layers);
  MeasurementRequest request;
  request.name = "collapse-" + file_name(scheme);
  request.label = "collapse, " + display_name(scheme);
  request.settings = {{"data", context.batch_settings},
                      {"model", settings_of(config)},
                      {"seeds", part.seeds},
                      {"pairs", part.pairs},
                      {"first_seed", context.config.study.seed},
                      {"representation", 2}};  // 1: always the stream
  request.work = work_of(config, static_cast<double>(part.seeds * part.pairs * 20));
  request.measure = [&context, config, part, label = request.label] {
    const std::vector<Batch> batches = measured_batches(context, part.pairs);
    Progress progress(label, part.seeds);
    Profile profile;
    for (int64_t i = 0; i < part.seeds; ++i) {
      add(profile, measure_collapse(*initialized_model(context, config, i), batches));
      progress.update(i + 1);
    }
    return to_json(profile);
  };
  return request;
}

RunRequest collapse_run(const StudyContext& context, const std::string& scheme, const CollapseStudy& part) {
  RunRequest request;
  request.name = "collapse-trained-" + file_name(scheme);
  request.label = display_name(scheme);
  request.config = run_config(context, model_for(context, scheme, part.layers));
  request.config.train.steps = part.steps;
  return request;
}

RunQuestion collapse_question(const StudyContext& context, const CollapseStudy& part) {
  return {"collapse-after", {{"pairs", part.pairs}, {"representation", 2}}, [&context, part](Model& model) {
            Profile profile;
            add(profile, measure_collapse(model, measured_batches(context, part.pairs)));
            return to_json(profile);
          }};
}

/// After training; empty if the run diverged.
std::optional<Profile> after_training(StudyContext& context, const std::string& scheme, const CollapseStudy& part) {
  const Json answer = answer_of(context, collapse_run(context, scheme, part), collapse_question(context, part));
  return answer.is_null() ? std::nullopt : std::optional(answer.get<Profile>());
}

struct Quantity {
  const char* key;
  Curves::Curve Curves::*curve;
  const char* title;
  const char* axis;
  const char* caption;
  bool log;
  double largest = std::numeric_limits<double>::infinity();
};
constexpr Quantity kQuantities[] = {
    {"change", &Curves::change, "Change of the representation by depth", "mean |x_k − x_(k−1)|",
     "Mean absolute change of an element of the normalized representation from one sub-layer to the next, by depth k. "
     "ResiDual's representation is x + norm(r).",
     true},
    {"similarity", &Curves::similarity, "Similarity of neighboring representations", "cosine",
     "Mean over tokens of the cosine between the normalized representation after and before a sub-layer.", false, 1},
    {"effective_rank", &Curves::effective_rank, "Effective rank of the representation", "effective rank",
     "Exponential of the entropy of the normalized singular values of all tokens' representations.", false},
};

/// `largest`: an upper bound of the quantity, to which its interval is clipped.
Series series_of(const std::string& name, const std::string& scheme, const Curves::Curve& curve, double largest) {
  Series series{name, scheme};
  for (size_t k = 0; k < curve.size(); ++k) {
    const Interval interval = confidence_interval(curve[k]);
    interval.count > 1
        ? series.point(k + 1, interval.mean, std::max(interval.low, 0.0), std::min(interval.high, largest))
        : series.point(k + 1, interval.mean);
  }
  return series;
}

/// [seed]: the exponent p of change ~ (k + offset)^p over the sub-layers k. Not finite where a sub-layer changes
/// nothing, as with ReZero at initialization.
std::vector<double> change_exponents(const Curves::Curve& change, const std::vector<double>& offsets) {
  std::vector<double> exponents;
  for (size_t seed = 0; seed < change.front().size(); ++seed) {
    std::vector<double> x;
    std::vector<double> y;
    for (size_t k = 0; k < change.size(); ++k) {
      x.push_back(std::log(static_cast<double>(k + 1) + offsets[seed]));
      y.push_back(std::log(change[k][seed]));
    }
    exponents.push_back(change.size() > 1 && std::all_of(y.begin(), y.end(), [](double v) { return std::isfinite(v); })
                            ? fit_line(x, y).slope
                            : std::nan(""));
  }
  return exponents;
}

std::vector<double> change_exponents(const Curves::Curve& change) {
  return change_exponents(change, std::vector<double>(change.front().size(), 0.0));
}

/// [seed]: the mean square of a stack's input relative to what each sub-layer adds, from a line fitted over k. The
/// theory gives the input the weight of one sub-layer; a larger weight delays the decrease.
std::vector<double> weights_of_input(const Curves::Curve& mean_square) {
  std::vector<double> weights;
  for (size_t seed = 0; seed < mean_square.front().size(); ++seed) {
    std::vector<double> x;
    std::vector<double> y;
    for (size_t k = 0; k < mean_square.size(); ++k) {
      x.push_back(static_cast<double>(k + 1));
      y.push_back(mean_square[k][seed]);
    }
    const LineFit fit = fit_line(x, y);
    weights.push_back(fit.slope > 0 ? std::max(0.0, fit.intercept / fit.slope) : 0);
  }
  return weights;
}

struct CollapseClaim {
  const char* scheme;
  double exponent;
  const char* claim;
};
constexpr CollapseClaim kCollapseClaims[] = {
    {"pre-ln", -0.5, "Pre-LN: the change of the representation decreases with depth as 1/√k"},
    {"residual-dual", 0, "ResiDual: the change of the representation does not depend on depth"},
    {"post-ln", 0, "Post-LN: the change of the representation does not depend on depth"},
};

}  // namespace

std::vector<MeasurementRequest> requests(StudyContext& context, const CollapseStudy& part) {
  std::vector<MeasurementRequest> list;
  for (const std::string& scheme : context.config.study.schemes) {
    list.push_back(collapse_request(context, scheme, part));
    if (part.steps > 0)
      list.push_back(
          question_measurement(context, collapse_run(context, scheme, part), collapse_question(context, part)));
  }
  return list;
}

PartResult measure(StudyContext& context, const CollapseStudy& part) {
  std::map<std::string, Profile> start;
  std::map<std::string, std::optional<Profile>> trained;
  for (const std::string& scheme : context.config.study.schemes) {
    start[scheme] = context.measurements.get(collapse_request(context, scheme, part)).get<Profile>();
    if (part.steps > 0) trained[scheme] = after_training(context, scheme, part);
  }

  PartResult result;
  for (const StackKind stack : stacks_of(context)) {
    for (const Quantity& quantity : kQuantities) {
      Figure figure;
      figure.id = fmt::format("collapse_{}_{}", quantity.key, to_string(stack));
      figure.title = fmt::format("{}, {}", quantity.title, to_string(stack));
      figure.caption = fmt::format(
          "{} Solid: at initialization, mean over seeds ({}){}.", quantity.caption, seeds_in_words(part.seeds),
          part.steps > 0 ? fmt::format("; dashed: after {} training steps, one run each", part.steps) : "");
      figure.kind = "line";
      figure.x = {"sub-layer k", quantity.log};
      figure.y = {quantity.axis, quantity.log};
      for (const std::string& scheme : context.config.study.schemes) {
        figure.series.push_back(
            series_of(display_name(scheme), scheme, start[scheme].of(stack).*quantity.curve, quantity.largest));
        if (!trained[scheme]) continue;
        Series after = series_of(display_name(scheme) + ", trained", scheme, trained[scheme]->of(stack).*quantity.curve,
                                 quantity.largest);
        after.style = "dashed";
        figure.series.push_back(after);
      }
      if (quantity.curve == &Curves::change && start.count("pre-ln") != 0) {
        Series theory{"predicted, Pre-LN", "theory"};
        theory.style = "dashed";
        for (size_t k = 1; k <= start["pre-ln"].of(stack).change.size(); ++k)
          theory.point(k, predicted_pre_ln_change(static_cast<int64_t>(k)));
        figure.series.push_back(theory);
      }
      result.figures.push_back(figure);
    }
  }

  Table table{
      "collapse",
      "How the change decreases with depth",
      "The exponent p of change ~ k^p, fitted over the sub-layers of a stack for each seed; mean and 95% interval "
      "over seeds; after training, one run each. The last sub-layer's change, similarity to the previous one, and "
      "effective rank.",
      {"scheme", "stack", "when", "exponent", "low", "high", "last change", "last similarity", "last effective rank"}};
  const auto add_row = [&](const std::string& scheme, StackKind stack, const char* when, const Curves& curves) {
    const Interval exponent = judge(change_exponents(curves.change), {}).effect;
    const auto last = [](const Curves::Curve& curve) { return confidence_interval(curve.back()).mean; };
    table.rows.push_back({scheme, to_string(stack), when, finite_or_null(exponent.mean), finite_or_null(exponent.low),
                          finite_or_null(exponent.high), last(curves.change), last(curves.similarity),
                          last(curves.effective_rank)});
  };
  for (const std::string& scheme : context.config.study.schemes) {
    for (const StackKind stack : stacks_of(context)) {
      add_row(scheme, stack, "initialization", start[scheme].of(stack));
      if (trained[scheme]) add_row(scheme, stack, "trained", trained[scheme]->of(stack));
    }
  }
  result.tables.push_back(table);

  const StackKind first = first_stack(context);
  std::vector<std::string> powers;
  for (const std::string& scheme : context.config.study.schemes) {
    const Interval exponent = judge(change_exponents(start[scheme].of(first).change), {}).effect;
    powers.push_back(exponent.count > 0
                         ? fmt::format("{} with {}", with_interval(exponent, 2), display_name(scheme))
                         : fmt::format("none with {}, where sub-layers change nothing", display_name(scheme)));
  }
  result.summary.push_back(fmt::format(
      "At initialization, the change of the representation from sub-layer to sub-layer, fitted as a power of "
      "depth, has the exponent {} ({}, {} layers; {}).",
      join(powers, ", "), to_string(first), part.layers, seeds_in_words(part.seeds)));

  for (const CollapseClaim& claim : kCollapseClaims) {
    if (start.count(claim.scheme) == 0) continue;
    const Curves& curves = start[claim.scheme].of(first);
    std::string evidence;
    if (claim.exponent < 0) {
      const std::vector<double> input = weights_of_input(curves.mean_square);
      const Interval shifted = judge(change_exponents(curves.change, input), {}).effect;
      evidence = fmt::format(
          "The claim holds for large k, and its prediction gives the stack's input the weight of one sub-layer; here "
          "it has that of {0:.1f}. As a power of k + {0:.1f} the exponent is {1}.",
          confidence_interval(input).mean, with_interval(shifted, 2));
    }
    std::string id = fmt::format("{}_collapse", claim.scheme);
    std::replace(id.begin(), id.end(), '-', '_');
    result.verdicts.push_back(
        {id, claim.claim, "Xie et al. 2023, arXiv 2304.14802, section 3",
         setting_of(context, model_for(context, claim.scheme, part.layers)),
         fmt::format("exponent p of the change of the representation as k^p over {} sub-layers, {}",
                     curves.change.size(), to_string(first)),
         judge(change_exponents(curves.change), Region::around(claim.exponent, 0.1)), evidence,
         "collapse_change_" + to_string(first)});
  }
  return result;
}

}  // namespace plumb
