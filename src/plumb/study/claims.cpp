#include "plumb/study/claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "plumb/analysis/holm.h"
#include "plumb/base/error.h"
#include "plumb/base/text.h"
#include "plumb/report/display_name.h"

namespace plumb {
namespace {

std::pair<std::string, std::string> key_and_value(const std::string& setting) {
  const size_t equals = setting.find('=');
  return {setting.substr(0, equals), equals == std::string::npos ? "" : setting.substr(equals + 1)};
}

bool has_settings(const StudyArm& arm, const std::vector<std::string>& settings) {
  return std::all_of(settings.begin(), settings.end(), [&](const std::string& setting) {
    const auto [key, value] = key_and_value(setting);
    const auto found = arm.settings.find(key);
    return found != arm.settings.end() && found->second == value;
  });
}

/// Whether the arms have the same values of all axes but these.
bool differ_only_in(const std::set<std::string>& axes, const StudyArm& a, const StudyArm& b) {
  return std::all_of(a.axes.begin(), a.axes.end(), [&](const auto& axis) {
    return axes.contains(axis.first) || b.axes.at(axis.first) == axis.second;
  });
}

/// The axes that set the keys of these settings.
std::set<std::string> axes_of(const StudyArm& arm, const std::vector<std::string>& settings) {
  std::set<std::string> axes;
  for (const std::string& setting : settings) {
    const std::string key = key_and_value(setting).first;
    axes.insert(arm.axes.contains(key) ? key : kPairingAxis);
  }
  return axes;
}

/// Whether two arms whose pairings differ agree in what these set, but for the keys of `against`; comparing whole
/// pairings, "arm=NAME", is comparing all that they set.
bool pairings_agree(const std::vector<std::string>& against, const StudyArm& a, const StudyArm& b) {
  std::set<std::string> compared;
  for (const std::string& setting : against) compared.insert(key_and_value(setting).first);
  if (compared.contains(kPairingAxis)) return true;
  const auto within = [&](const StudyArm& one, const StudyArm& other) {
    return std::all_of(one.settings.begin(), one.settings.end(), [&](const auto& setting) {
      if (compared.contains(setting.first) || setting.first == kPairingAxis || one.axes.contains(setting.first))
        return true;
      const auto found = other.settings.find(setting.first);
      return found != other.settings.end() && found->second == setting.second;
    });
  };
  return within(a, b) && within(b, a);
}

/// An arm, and the one that it is compared with, or null.
struct Pair {
  const StudyArm* of;
  const StudyArm* against;
};

std::vector<Pair> pairs_of(const StudyClaim& claim, const std::vector<StudyArm>& arms) {
  std::vector<Pair> pairs;
  for (const StudyArm& arm : arms) {
    if (!has_settings(arm, claim.of)) continue;
    if (claim.against.empty()) {
      pairs.push_back({&arm, nullptr});
      continue;
    }
    const std::set<std::string> varied = axes_of(arm, claim.against);
    for (const StudyArm& other : arms) {
      const bool compared = &other != &arm && has_settings(other, claim.against) &&
                            differ_only_in(varied, arm, other) && pairings_agree(claim.against, arm, other);
      if (compared) pairs.push_back({&arm, &other});
    }
  }
  return pairs;
}

const std::vector<StudyArm>& arms_of(const Quantity& quantity, const std::vector<StudyArm>& arms) {
  return quantity.arms ? *quantity.arms : arms;
}

std::string in_quotes(const StudyClaim& claim) { return fmt::format("[[study.claim]] \"{}\"", claim.text); }

/// The values of one arm, or how they differ from those of the other, by seed; unknown if every run of both failed.
std::vector<double> values_of(const Quantity& quantity, const Pair& pair) {
  const double most = quantity.failed_at();
  std::vector<double> values = quantity.of_arm.at(pair.of->name)();
  std::vector<double> others = pair.against == nullptr ? values : quantity.of_arm.at(pair.against->name)();
  double least = std::numeric_limits<double>::infinity();
  for (std::vector<double>* each : {&values, &others}) {
    for (double& value : *each) least = std::min(least, value = std::min(value, most));
  }
  if (pair.against == nullptr) return values;
  for (size_t seed = 0; seed < values.size(); ++seed)
    values[seed] = least == most                     ? std::nan("")
                   : quantity.scale == Scale::linear ? values[seed] - others[seed]
                                                     : values[seed] / others[seed];
  return values;
}

bool measures(const Quantity& quantity, const Pair& pair) {
  return quantity.of_arm.contains(pair.of->name) &&
         (pair.against == nullptr || quantity.of_arm.contains(pair.against->name));
}

/// Why the pair decides nothing; "" if it does.
std::string doubt_about(const Quantity& quantity, const Pair& pair, const Region& region, double confidence) {
  const std::string against = pair.against == nullptr ? "" : pair.against->name;
  return quantity.doubt ? quantity.doubt(pair.of->name, against, region, confidence) : "";
}

/// The value of a comparison without an effect.
double no_effect(Scale scale) { return scale == Scale::linear ? 0 : 1; }

Region region_of(const StudyClaim& claim, Scale scale) {
  const double infinity = std::numeric_limits<double>::infinity();
  Region region{claim.above.value_or(-infinity), claim.below.value_or(infinity)};
  if (claim.within) {
    const double middle = claim.around.value_or(no_effect(scale)), ratio = 1 + *claim.within;
    region = scale == Scale::linear ? Region::around(middle, *claim.within) : Region{middle / ratio, middle * ratio};
  }
  region.null = claim.no_effect.value_or(region.null);
  return region;
}

/// A claim of an effect is not contradicted by one that is only smaller.
Region with_null(Region region, Scale scale) {
  const double null = no_effect(scale);
  const bool one_sided = std::isinf(region.low) != std::isinf(region.high);
  if (one_sided && (null < region.low || null > region.high)) region.null = null;
  return region;
}

/// "Post-LN, rmsnorm and Post-LN, layernorm: 2 and 0 of 3 runs failed", of every pair in which any did; "" if none.
std::string failures_in(const Quantity& quantity, const std::vector<Pair>& pairs) {
  std::vector<std::string> found;
  const double most = quantity.failed_at();
  for (const Pair& pair : pairs) {
    std::vector<std::string> names, counts;
    bool any = false;
    size_t runs = 0;
    for (const StudyArm* arm : {pair.of, pair.against}) {
      if (arm == nullptr) continue;
      const std::vector<double> values = quantity.of_arm.at(arm->name)();
      const auto failed = std::count_if(values.begin(), values.end(), [&](double value) { return value >= most; });
      names.push_back(display_name(arm->name));
      counts.push_back(std::to_string(failed));
      any |= failed > 0;
      runs = values.size();
    }
    if (any)
      found.push_back(fmt::format("{}: {} of {} runs failed", join(names, " and "), join(counts, " and "), runs));
  }
  return join(found, "; ");
}

/// Says how many runs failed, if any did: not their missing numbers, but they are why nothing is decided.
Judgment with_failures(Judgment judgment, const Quantity& quantity, const std::vector<Pair>& pairs) {
  const std::string failures = failures_in(quantity, pairs);
  if (failures.empty()) return judgment;
  judgment.reason = failures;
  judgment.rule += std::isinf(quantity.failed_at())
                       ? "; runs that failed decide nothing"
                       : fmt::format("; no run counts with more than {:.2f}", quantity.failed_at());
  return judgment;
}

/// The quantity of this name; those that begin with it, if the name ends in "*".
std::vector<const Quantity*> named(const std::string& name, const std::vector<Quantity>& quantities) {
  std::vector<const Quantity*> found;
  for (const Quantity& quantity : quantities) {
    const bool fits =
        name.ends_with('*') ? quantity.name.starts_with(name.substr(0, name.size() - 1)) : quantity.name == name;
    if (fits) found.push_back(&quantity);
  }
  return found;
}

std::vector<const Quantity*> require_named(const StudyClaim& claim, const std::string& name,
                                           const std::vector<Quantity>& quantities) {
  std::vector<const Quantity*> found = named(name, quantities);
  if (!found.empty()) return found;
  std::vector<std::string> names;
  for (const Quantity& quantity : quantities) names.push_back(quantity.name);
  throw Error(fmt::format("{}: the study does not measure '{}'", in_quotes(claim), name),
              names.empty() ? "its parts have no quantities that claims can be about" : "measured: " + join(names));
}

/// What a claim is about: the quantity, or each of several, and further readings of it.
struct Judged {
  std::vector<const Quantity*> each;
  std::vector<const Quantity*> readings{};

  [[nodiscard]] const Quantity& first() const { return *each.front(); }
  [[nodiscard]] bool is_measured_for(const Pair& pair) const {
    const auto has = [&](const Quantity* quantity) { return measures(*quantity, pair); };
    return std::all_of(each.begin(), each.end(), has) && std::all_of(readings.begin(), readings.end(), has);
  }
};

Judged require_quantities(const StudyClaim& claim, const std::vector<Quantity>& quantities) {
  Judged judged{require_named(claim, claim.quantity, quantities)};
  for (const std::string& name : claim.readings)
    judged.readings.push_back(require_named(claim, name, quantities).front());
  return judged;
}

Judgment judged(const StudyClaim& claim, const Judged& about, const std::vector<Pair>& pairs, double confidence) {
  const Quantity& quantity = about.first();
  const Pair& pair = pairs.front();  // all of them compare two arms, or none does
  Region region = region_of(claim, quantity.scale);
  if (pair.against != nullptr) region = with_null(region, quantity.scale);
  if (!about.readings.empty()) {
    std::vector<QuantityReading> readings = {{quantity.meaning, values_of(quantity, pair)}};
    for (const Quantity* other : about.readings) readings.push_back({other->meaning, values_of(*other, pair)});
    return with_failures(judge_readings(readings, region, quantity.scale, confidence), quantity, pairs);
  }
  if (pairs.size() * about.each.size() > 1) {
    std::vector<Condition> conditions;
    for (const Quantity* one : about.each) {
      for (const Pair& each : pairs) conditions.push_back({values_of(*one, each), region});
    }
    return with_failures(judge_each(conditions, quantity.scale, confidence), quantity, pairs);
  }
  if (pair.against == nullptr || quantity.scale == Scale::logarithmic)
    return with_failures(judge(values_of(quantity, pair), region, quantity.scale, confidence), quantity, pairs);
  return judge_difference(quantity.of_arm.at(pair.of->name)(), quantity.of_arm.at(pair.against->name)(), region,
                          confidence, quantity.failed_at());
}

/// "Post-LN, rmsnorm"; "model.norm=rmsnorm" for several arms.
std::string arms_in_words(const std::vector<std::string>& settings, const StudyArm& arm, size_t pairs) {
  if (pairs == 1) return display_name(arm.name);
  return settings.empty() ? "each arm" : join(settings);
}

/// "final validation loss (nats per token), model.norm=rmsnorm minus model.norm=layernorm, in each of 4 pairs".
std::string what_is_judged(const StudyClaim& claim, const Judged& about, const std::vector<Pair>& pairs) {
  const Quantity& quantity = about.first();
  const Pair& pair = pairs.front();
  std::string text = quantity.meaning + ", " + arms_in_words(claim.of, *pair.of, pairs.size());
  if (pair.against != nullptr)
    text += (quantity.scale == Scale::linear ? " minus " : " / ") +
            arms_in_words(claim.against, *pair.against, pairs.size());
  if (pairs.size() > 1)
    text += fmt::format(", in each of {} {}", pairs.size(), pair.against == nullptr ? "arms" : "pairs of arms");
  if (about.each.size() > 1)
    text += fmt::format("; each of {} quantities up to {}", about.each.size(), about.each.back()->meaning);
  return text;
}

}  // namespace

void describe(Fields& field, StudyClaim& claim) {
  field("text", claim.text, "the claim in words");
  field("source", claim.source,
        "where the literature claims it, which is then judged by itself, and only in studies that have its arms and "
        "measure its quantity; empty: the study claims it");
  field("quantity", claim.quantity,
        "what it is about, such as `validation_loss`, or with a `*` at its end each that begins so; an unknown name "
        "lists those measured");
  field("of", claim.of, "settings of the arms that it is about, such as `model.norm=rmsnorm`; empty: all arms");
  field("against", claim.against,
        "settings of the arms that they are compared with, which are the same otherwise: by the difference of losses, "
        "and the ratio of other quantities; empty: the quantity itself is judged");
  field("above", claim.above, "what is judged is more than this");
  field("below", claim.below, "what is judged is less than this");
  field("within", claim.within, "the difference is at most this either way; of a ratio, it is at most 1 + `within`",
        plumb::above(0));
  field("around", claim.around, "the value from which `within` counts; by default 0, and 1 for ratios");
  field("no_effect", claim.no_effect,
        "without `against`: the value without the effect that is claimed; an effect that is only smaller then "
        "contradicts nothing");
  field("readings", claim.readings,
        "other quantities that express the same; the claim is decided only if all of them give the same outcome");
}

void check_claims(const std::vector<StudyClaim>& claims, const std::vector<StudyArm>& arms) {
  for (const StudyClaim& claim : claims) {
    if (claim.text.empty()) throw Error("[[study.claim]]: a claim has no text", "say in words what is claimed");
    const int ends = (claim.above ? 1 : 0) + (claim.below ? 1 : 0);
    if (claim.within ? ends > 0 : ends == 0)
      throw Error(in_quotes(claim) + " does not say what it expects", "set above, below, or both; or within alone");
    if (claim.above && claim.below && *claim.above >= *claim.below)
      throw Error(
          fmt::format("{} expects more than {:g} and less than {:g}", in_quotes(claim), *claim.above, *claim.below),
          "set above to the smaller number");
    if (claim.within && claim.against.empty() && !claim.around)
      throw Error(in_quotes(claim) + " has a margin but no comparison", "set against, around, or above and below");
    if (claim.around && !claim.within)
      throw Error(in_quotes(claim) + " says around what, but not how far from it", "set within");
    if (claim.no_effect && !claim.against.empty())
      throw Error(in_quotes(claim) + " compares arms, whose no_effect is known", "leave out no_effect");
    if (!claim.source.empty()) continue;  // of the literature: judged in the studies that have its arms
    if (!claim.readings.empty() && (pairs_of(claim, arms).size() > 1 || claim.quantity.ends_with('*')))
      throw Error(in_quotes(claim) + " has readings and several arms or quantities",
                  "make it a claim about one quantity of one arm, or one pair");
    std::vector<std::string> settings = claim.of;
    settings.insert(settings.end(), claim.against.begin(), claim.against.end());
    for (const std::string& setting : settings) {
      if (std::none_of(arms.begin(), arms.end(), [&](const auto& arm) { return has_settings(arm, {setting}); })) {
        std::set<std::string> known;
        for (const StudyArm& arm : arms) {
          for (const auto& [key, value] : arm.settings) known.insert(key + "=" + value);
        }
        throw Error(fmt::format("{}: no arm has '{}'", in_quotes(claim), setting),
                    "settings of arms: " + join({known.begin(), known.end()}));
      }
    }
    if (pairs_of(claim, arms).empty())
      throw Error(
          in_quotes(claim) + " compares no two arms",
          "`against` says what differs, and everything else is the same: of = [\"model.norm=rmsnorm\"], against = "
          "[\"model.norm=layernorm\"]");
  }
}

std::vector<std::string> compared_by(const StudyClaim& claim, const std::vector<StudyArm>& arms,
                                     const std::vector<Quantity>& quantities) {
  const std::vector<const Quantity*> about = named(claim.quantity, quantities);
  std::vector<std::string> names;
  for (const Pair& pair : pairs_of(claim, about.empty() ? arms : arms_of(*about.front(), arms)))
    names.push_back(pair.of->name + (pair.against == nullptr ? "" : " against " + pair.against->name));
  return names;
}

void check_quantity(const StudyClaim& claim, const std::vector<StudyArm>& arms,
                    const std::vector<Quantity>& quantities) {
  (void)require_quantities(claim, quantities);
  if (!can_be_judged(claim, arms, quantities))
    throw Error(fmt::format("{}: '{}' is not measured for the arms that it is about", in_quotes(claim), claim.quantity),
                "warm-ups of [training] make arms for what is trained alone, and some parts measure only some schemes");
}

bool can_be_judged(const StudyClaim& claim, const std::vector<StudyArm>& arms,
                   const std::vector<Quantity>& quantities) {
  std::vector<std::string> names = claim.readings;
  names.push_back(claim.quantity);
  const bool known = std::none_of(names.begin(), names.end(),
                                  [&](const std::string& name) { return named(name, quantities).empty(); });
  if (!known) return false;
  const Judged about = require_quantities(claim, quantities);
  const std::vector<Pair> pairs = pairs_of(claim, arms_of(about.first(), arms));
  if (!about.readings.empty() && pairs.size() * about.each.size() > 1) return false;
  return std::any_of(pairs.begin(), pairs.end(), [&](const Pair& pair) { return about.is_measured_for(pair); });
}

Verdict judge_claim(const StudyClaim& claim, const std::vector<StudyArm>& arms, const std::vector<Quantity>& quantities,
                    double confidence) {
  const Judged about = require_quantities(claim, quantities);
  const Quantity& quantity = about.first();
  std::vector<Pair> pairs = pairs_of(claim, arms_of(quantity, arms));
  const size_t all = pairs.size();
  std::erase_if(pairs, [&](const Pair& pair) { return !about.is_measured_for(pair); });
  Verdict verdict;
  verdict.claim = claim.text;
  if (pairs.empty()) {
    verdict.quantity = quantity.meaning;
    verdict.judgment.reason = "the quantity was not measured for these arms";
    return verdict;
  }
  verdict.quantity = what_is_judged(claim, about, pairs);
  verdict.figure = quantity.figure;
  const auto drawn = [&](const StudyArm& arm) { return differ_only_in({}, arm, *pairs.front().of); };
  verdict.scheme = std::find_if(arms.begin(), arms.end(), drawn)->name;
  if (!claim.source.empty() && quantity.setting) verdict.setting = quantity.setting(verdict.scheme);
  if (!claim.source.empty() && quantity.evidence) verdict.evidence = quantity.evidence(verdict.scheme);
  verdict.told = claim.against.empty() && pairs.size() * about.each.size() == 1 && !quantity.telling.subject.empty();
  verdict.judgment = judged(claim, about, pairs, confidence);
  const Region region = with_null(region_of(claim, quantity.scale), quantity.scale);
  for (const Pair& pair : pairs)
    verdict.judgment = undecided_because(verdict.judgment, doubt_about(quantity, pair, region, confidence));
  if (!claim.source.empty()) verdict.judgment = not_testable_because(verdict.judgment, quantity.untestable());
  if (pairs.size() < all) {
    verdict.judgment = undecided_because(
        verdict.judgment, fmt::format("measured for {} of the {} arms or pairs that it is about", pairs.size(), all));
  }
  return verdict;
}

std::vector<Verdict> judge_claims(const std::vector<StudyClaim>& claims, const std::vector<StudyArm>& arms,
                                  const std::vector<Quantity>& quantities) {
  std::vector<Verdict> verdicts;
  std::vector<size_t> own;
  for (const StudyClaim& claim : claims) {
    if (claim.source.empty()) own.push_back(verdicts.size());
    verdicts.push_back(judge_claim(claim, arms, quantities));
  }
  const auto also = [&](double confidence) {
    return fmt::format("at {:.4g}% confidence, as {} claims together require", 100 * confidence, own.size());
  };
  double confidence = kConfidence;
  const std::vector<bool> stands = holm_standing(own.size(), [&](size_t i, size_t n) {
    Judgment& judgment = verdicts[own[i]].judgment;
    if (!is_decided(judgment.outcome)) return false;
    confidence = 1 - (1 - kConfidence) / static_cast<double>(n);
    const Outcome strict = judge_claim(claims[own[i]], arms, quantities, confidence).judgment.outcome;
    if (!is_decided(strict)) return false;
    judgment.outcome = strict;  // an effect against the claim may become one that is too small
    if (own.size() > 1) judgment.rule += "; " + also(confidence) + ", too";
    return true;
  });
  for (size_t i = 0; i < own.size(); ++i) {
    if (stands[i]) continue;
    Judgment& judgment = verdicts[own[i]].judgment;
    judgment = undecided_because(
        judgment, fmt::format("{} by itself, but not {}", to_string(judgment.outcome), also(confidence)));
  }
  return verdicts;
}

std::string answer_in_words(const Quantity& quantity, const std::vector<StudyArm>& arms) {
  const Telling& telling = quantity.telling;
  if (telling.subject.empty()) return {};
  std::vector<std::pair<std::string, Interval>> named;
  std::vector<Pair> all;
  for (const StudyArm& arm : arms_of(quantity, arms)) {
    const Pair alone{&arm, nullptr};
    if (!measures(quantity, alone)) continue;
    std::vector<double> values = values_of(quantity, alone);
    if (telling.factor) std::transform(values.begin(), values.end(), values.begin(), telling.factor);
    const Scale scale = telling.over.empty() ? quantity.scale : Scale::logarithmic;
    named.emplace_back(display_name(arm.name), judge(values, {}, scale).effect);
    all.push_back(alone);
  }
  return told(telling, named, failures_in(quantity, all));
}

std::vector<Table> comparison_tables(const std::vector<StudyArm>& arms, const std::vector<Quantity>& quantities) {
  Table table{"comparisons",
              "How the arms differ",
              "",
              {"quantity", "arm", "against", "effect", "mean", "low", "high", "seeds", "differs", "note"}};
  for (const Quantity& quantity : quantities) {
    if (!quantity.in_comparison_table) continue;
    const std::vector<StudyArm>& compared = arms_of(quantity, arms);
    for (const auto& [axis, unused] : compared.front().axes) {
      for (const StudyArm& arm : compared) {
        const auto first = std::find_if(compared.begin(), compared.end(), [&, &axis = axis](const auto& other) {
          return differ_only_in({axis}, arm, other);
        });
        const Pair pair{&arm, &*first};
        if (first->name == arm.name || !measures(quantity, pair)) continue;
        const Interval effect = judge(values_of(quantity, pair), Region{}, quantity.scale).effect;
        std::vector<std::string> notes = {failures_in(quantity, {pair})};
        if (effect.count > 0) notes.push_back(doubt_about(quantity, pair, {}, kConfidence));
        std::erase(notes, "");
        const double none = no_effect(quantity.scale);
        const bool known = effect.count > 1;
        table.row(quantity.meaning, display_name(arm.name), display_name(first->name),
                  quantity.scale == Scale::linear ? "difference" : "ratio", effect, effect.count,
                  !known                                    ? "unknown"
                  : none < effect.low || none > effect.high ? "yes"
                                                            : "no",
                  join(notes, "; "));
      }
    }
  }
  if (table.rows.empty()) return {};
  table.caption = fmt::format(
      "Every arm against the first one that differs from it in one setting. Mean over seeds, geometric for ratios, "
      "with its 95% interval, seed by seed. Differs: 0 (for a ratio 1) lies outside the interval, by chance in one of "
      "twenty comparisons; here {} {}.",
      table.rows.size() == 1 ? "is" : "are", table.rows.size());
  return {table};
}

}  // namespace plumb
