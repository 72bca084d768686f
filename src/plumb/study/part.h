// What all parts of a study share: their context, models, data and wording.
#pragma once

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "plumb/data/directory.h"
#include "plumb/model/model.h"
#include "plumb/nn/layer_id.h"
#include "plumb/report/report_parts.h"
#include "plumb/study/config.h"
#include "plumb/study/measurements.h"
#include "plumb/train/trainer.h"

namespace plumb {

/// Receives every point of a training run: (run, point). The program connects TensorBoard to it.
using RunObserver = std::function<void(const std::filesystem::path& run, const TrainPoint& point)>;

/// Shared by all parts of a study.
struct StudyContext {
  const StudyConfig& config;
  std::vector<StudyArm> arms;
  const DataDirectory& data;
  const Task& task;
  Json data_settings;   // identifies the data in the settings of training runs
  Json batch_settings;  // identifies the batches that are measured in the settings of measurements
  std::filesystem::path out;
  Measurements& measurements;
  RunObserver on_point;
  mutable std::optional<double> frequencies{};  // label_frequencies, once counted
};

/// The loss of a model that knows only how frequent each label of the validation split is, in nats per label: the most
/// that a run counts with in comparisons. Infinite without that split; counted once.
double label_frequencies(const StudyContext& context);

/// The names of the study's arms.
std::vector<std::string> arm_names(const StudyContext& context);

/// The arm of this name, which is one of arm_names().
const StudyArm& arm_named(const StudyContext& context, const std::string& name);

/// An arm's model with a given number of layers, unless an axis sets that, and the data's vocabularies.
ModelConfig model_for(const StudyContext& context, const std::string& arm, int64_t layers);

/// The setting of the theory of Xiong et al. 2020: one head, all matrices (width, width), inputs N(0, I) without
/// positions, softmax attention, LayerNorm, ReLU. `initialization`: "theory", with W^Q = W^K = 0, or another.
ModelConfig theory_model(const StudyContext& context, const std::string& arm, int64_t width,
                         const std::string& initialization, int64_t layers);

/// make(arm) for each of the study's arms, by name.
template <typename Make>
auto by_arm(const StudyContext& context, const Make& make) {
  std::map<std::string, std::invoke_result_t<Make, const std::string&>> made;
  for (const std::string& arm : arm_names(context)) made.emplace(arm, make(arm));
  return made;
}

/// The stacks of the study's models, from input to output: encoder and decoder, or the only one.
std::vector<StackKind> stacks_of(const StudyContext& context);
inline StackKind first_stack(const StudyContext& context) { return stacks_of(context).front(); }
inline StackKind last_stack(const StudyContext& context) { return stacks_of(context).back(); }

/// A model of `config`, initialized with the study's seed plus `i`.
std::unique_ptr<Model> initialized_model(const StudyContext& context, const ModelConfig& config, int64_t i = 0);

/// "train.de and train.en" for two paths to files or directories.
std::string file_names(const std::vector<std::string>& paths);

/// "text of train.de and train.en", or "synthetic corpus of 20,000 pairs": the study's [data].
std::string corpus_of(const StudyContext& context);

/// "6+6 layers" of an encoder-decoder, "6 layers" of other models.
std::string layers_in_words(const ModelConfig& model);

/// "6+6 layers, d_model 64, 4 heads, initialization xavier-normal; synthetic corpus of 20,000 pairs": for verdicts.
std::string setting_of(const StudyContext& context, const ModelConfig& model);

/// In ascending order.
template <typename T>
std::vector<T> sorted(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  return values;
}

/// The upper median; NaN without values.
inline double median_of(const std::vector<double>& values) {
  return values.empty() ? std::nan("") : sorted(values)[values.size() / 2];
}

/// [seed]: operation(first, second), such as std::minus<>().
template <typename Operation>
std::vector<double> seed_by_seed(std::vector<double> first, const std::vector<double>& second,
                                 const Operation& operation) {
  std::transform(first.begin(), first.end(), second.begin(), first.begin(), operation);
  return first;
}

/// [seed]: p of values[i][seed] ~ sizes[i]^p, from a line fitted to the logarithms. NaN with fewer than two sizes, or
/// if a value is not positive and finite.
std::vector<double> power_exponents(const std::vector<double>& sizes, const std::vector<std::vector<double>>& values);

/// Why this study cannot test a claim about training on real text; "" if its corpus is not synthetic.
std::string training_not_testable(const StudyContext& context);

/// The estimated work of a gradient on `tokens` tokens, comparable between measurements of a study.
double work_of(const ModelConfig& model, double tokens);
/// The same of training on them in steps of `step_tokens`.
double work_of_training(const ModelConfig& model, double tokens, double step_tokens);

/// The first `pairs` pairs of the measured split (0: all), in batches of at most `batch_tokens` tokens.
std::vector<Batch> measured_batches(const StudyContext& context, int64_t pairs, int64_t batch_tokens = 1024);

/// The tokens of the first `pairs` pairs of the measured split (0: all), on the longer side of each; those of more than
/// a thousand are estimated from the first thousand.
double measured_tokens(const StudyContext& context, int64_t pairs);

/// What identifies a model in the settings of a measurement.
Json settings_of(const ModelConfig& model);

/// Throws Error, naming the others, unless the data have this split.
void require_split(const StudyContext& context, const std::string& split);

}  // namespace plumb
