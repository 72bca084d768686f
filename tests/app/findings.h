// The results that docs/findings quotes, and how it writes numbers.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "plumb/analysis/sweep.h"
#include "plumb/base/input.h"
#include "plumb/base/json.h"
#include "support/entries.h"
#include "support/paths.h"

namespace plumb::findings {

using test::with_id;

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// The entropy of the validation labels (task/baseline.h) of the studies' data, of which the files have two decimals at
/// most: a run that ends no lower has failed, and none counts with more (docs/verdicts.md). Of WikiText-2 they are
/// those of valid.txt as `plumb data text --block 128` cuts it into 1,000 and 2,000 pieces. That of BERT's masked
/// tokens is approximate; no verdict depends on it between 6.1 and 6.3.
inline constexpr double kMulti30k = 5.632934602716145, kThousandPieces = 5.728911845270898,
                        kTwoThousandPieces = 6.0787049151940264;
inline const std::map<std::string, double> kLabelEntropy = {{"multi30k_warmup", kMulti30k},
                                                            {"bert_warmup", 6.2},
                                                            {"post_ln_memory", kMulti30k},
                                                            {"translation_warm_up", kMulti30k},
                                                            {"translation_lengths", kMulti30k},
                                                            {"update_size", kMulti30k},
                                                            {"inner_rates", kMulti30k},
                                                            {"muon_schemes", kMulti30k},
                                                            {"post_ln_first_steps", kThousandPieces},
                                                            {"warm_up_length", kThousandPieces},
                                                            {"second_moment", kThousandPieces},
                                                            {"depth_or_width", kTwoThousandPieces},
                                                            {"scale", kTwoThousandPieces},
                                                            {"scale_quick", kTwoThousandPieces}};

inline Json results_of(const std::string& name) {
  return read_json(test::source_directory() / "docs" / "findings" / (name + ".json"));
}

/// docs/findings.md and all pages in docs/findings.
inline std::string all_pages() {
  const std::filesystem::path docs = test::source_directory() / "docs";
  std::string text = read_file(docs / "findings.md");
  for (const auto& entry : std::filesystem::directory_iterator(docs / "findings")) {
    if (entry.path().extension() == ".md") text += read_file(entry.path());
  }
  return text;
}

inline std::string rounded(double number, int decimals = 2) {
  const std::string text = fmt::format("{:.{}f}", number, decimals);
  if (!text.starts_with('-')) return text;
  const std::string size = text.substr(1);
  return size.find_first_not_of("0.") == std::string::npos ? size : "−" + size;
}

/// "0.16 (−0.05 to 0.38", without the closing parenthesis.
inline std::string with_limits(double mean, double low, double high) {
  return fmt::format("{} ({} to {}", rounded(mean), rounded(low), rounded(high));
}
inline std::string with_limits(const Interval& interval) {
  return with_limits(interval.mean, interval.low, interval.high);
}
inline std::string with_limits(const Json& mean, const Json& low, const Json& high) {
  return with_limits(mean.get<double>(), low.get<double>(), high.get<double>());
}

inline double number_or_infinity(const Json& cell) { return cell.is_null() ? kInfinity : cell.get<double>(); }

/// The runs of an arm as a sweep, from a table of runs whose columns `key` identify the arm.
class Arms {
 public:
  Arms(const Json& table, const std::vector<size_t>& key, size_t rate, size_t loss, double failed_at) {
    for (const Json& row : table["rows"]) {
      std::string name;
      for (const size_t column : key)
        name += (name.empty() ? "" : "; ") +
                (row[column].is_string() ? row[column].get<std::string>() : row[column].dump());
      Sweep& sweep = arms_[name];
      sweep.failed_at = failed_at;
      const auto learning_rate = row[rate].get<double>();
      if (sweep.points.empty() || sweep.points.back().learning_rate != learning_rate)
        sweep.points.push_back({learning_rate, {}});
      sweep.points.back().losses.push_back(number_or_infinity(row[loss]));
    }
  }
  [[nodiscard]] const Sweep& at(const std::string& name) const { return arms_.at(name); }
  [[nodiscard]] const std::vector<double>& at(const std::string& name, double rate) const {
    for (const Sweep::Point& point : at(name).points) {
      if (point.learning_rate == rate) return point.losses;
    }
    throw std::out_of_range(name);
  }
  [[nodiscard]] const std::map<std::string, Sweep>& all() const { return arms_; }

 private:
  std::map<std::string, Sweep> arms_;  // by "pre-ln; adam; 100" or "encoder; from scratch; 300"
};

inline Arms training_arms(const std::string& file) {
  return {with_id(results_of(file)["tables"], "runs"), {0, 2, 3}, 4, 8, kLabelEntropy.at(file)};
}
inline Arms transfer_arms(const std::string& file) {
  return {with_id(results_of(file)["tables"], "transfer_runs"), {0, 1, 2}, 3, 7, kInfinity};
}

/// The arms of a study at one rate, by name.
inline Arms arms_at_one_rate(const std::string& study) {
  return {with_id(results_of(study)["tables"], "runs"), {0}, 4, 8, kLabelEntropy.at(study)};
}

/// Losses as they count: at most `most`.
inline std::vector<double> counted(std::vector<double> losses, double most) {
  for (double& loss : losses) loss = std::min(loss, most);
  return losses;
}

inline size_t failures(const std::vector<double>& losses, double most) {
  return static_cast<size_t>(std::count_if(losses.begin(), losses.end(), [&](double loss) { return loss >= most; }));
}

/// "5.39 (5.15 to 5.63)", or "5.73, all failed".
inline std::string as_counted(const std::vector<double>& losses, double most) {
  if (failures(losses, most) == losses.size()) return rounded(most) + ", all failed";
  return with_limits(confidence_interval(counted(losses, most))) + ")";
}

inline std::vector<double> minus(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> difference;
  for (size_t i = 0; i < a.size(); ++i) difference.push_back(a[i] - b[i]);
  return difference;
}

/// The same as losses count; none if every run of both failed.
inline std::vector<double> counted_minus(const std::vector<double>& a, const std::vector<double>& b, double most) {
  if (failures(a, most) + failures(b, most) == a.size() + b.size()) return {};
  return minus(counted(a, most), counted(b, most));
}

/// Post-LN's or another scheme's losses minus Pre-LN's in a study of sizes, as they count, by size, smallest first.
inline std::vector<std::vector<double>> behind_pre_ln(const std::string& study, const std::string& scheme) {
  std::map<std::string, std::map<int64_t, std::vector<double>>> losses;  // by scheme and width
  const Json results = results_of(study);
  for (const Json& row : with_id(results["tables"], "scale_models")["rows"])
    losses[row[0].get<std::string>()][row[1].get<int64_t>()].push_back(number_or_infinity(row[8]));
  std::vector<std::vector<double>> differences;
  for (const auto& [width, of_width] : losses[scheme])
    differences.push_back(counted_minus(of_width, losses.at("pre-ln").at(width), kLabelEntropy.at(study)));
  return differences;
}

inline std::vector<double> over(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> ratio;
  for (size_t i = 0; i < a.size(); ++i) ratio.push_back(a[i] / b[i]);
  return ratio;
}

/// How far Adam with β₁ = 0.9 can move a parameter in one step, in multiples of the rate, by the Cauchy–Schwarz
/// inequality: (1 − β₁)/√(1 − β₂)/√(1 − β₁²/β₂).
inline double largest_step(double beta2) { return 0.1 / std::sqrt(1 - beta2) / std::sqrt(1 - 0.81 / beta2); }

inline std::vector<double> numbers(const Json& list) { return list.get<std::vector<double>>(); }

/// [seed]: the gradient norm of W₂ in a decoder layer, from 1.
inline std::vector<double> gradients(const Json& results, const std::string& scheme, int layer) {
  return numbers(
      results["measurements"]["gradients"][scheme][fmt::format("decoder.layers.{}.linear2.weight", layer - 1)]);
}

/// The readings of residual_dual_bounded: layer 1 by itself, and relative to layer 6.
inline std::vector<QuantityReading> first_layers(const Json& results) {
  const auto of = [&](const char* scheme, int layer) { return gradients(results, scheme, layer); };
  const std::vector<double> first = over(of("residual-dual", 1), of("pre-ln", 1));
  return {{"by itself", first}, {"relative to layer 6", over(first, over(of("residual-dual", 6), of("pre-ln", 6)))}};
}

}  // namespace plumb::findings
