// A part of a study: one question, measured and answered with figures and verdicts.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
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
  const DataDirectory& data;
  const Task& task;
  Json data_settings;   // identifies the data in the settings of training runs
  Json batch_settings;  // identifies the batches that are measured in the settings of measurements
  std::filesystem::path out;
  Measurements& measurements;
  RunObserver on_point;
};

/// The study's model with a given scheme and number of layers, and the data's vocabularies. If an initialization has
/// the scheme's name (DeepNorm), the model uses it.
ModelConfig model_for(const StudyContext& context, const std::string& scheme, int64_t layers);

/// The setting of the theory of Xiong et al. 2020: one head, all matrices (width, width), inputs N(0, I) without
/// positions, softmax attention, LayerNorm, ReLU. `initialization`: "theory", with W^Q = W^K = 0, or another.
ModelConfig theory_model(const StudyContext& context, const std::string& scheme, int64_t width,
                         const std::string& initialization, int64_t layers);

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

/// Why this study cannot test a claim about training on real text; "" if its corpus is not synthetic.
std::string training_not_testable(const StudyContext& context);

/// The estimated work of measuring or training on `tokens` tokens, comparable between measurements of a study.
double work_of(const ModelConfig& model, double tokens);

/// The first `pairs` pairs of the measured split (0: all), in batches of at most `batch_tokens` tokens.
std::vector<Batch> measured_batches(const StudyContext& context, int64_t pairs, int64_t batch_tokens = 1024);

/// The [model] section as TOML, for the settings of a measurement.
Json settings_of(const ModelConfig& model);

/// The options of a kind of attention, and options of other kinds that differ from their defaults, as TOML.
std::string options_text(const std::string& attention, const VariantOptions& options);

/// The parts, one file each: what they measure, and their contribution to the report. `measure` makes missing
/// measurements.
std::vector<MeasurementRequest> requests(StudyContext& context, const GradientStudy& part);
PartResult measure(StudyContext& context, const GradientStudy& part);
std::vector<MeasurementRequest> requests(StudyContext& context, const DepthStudy& part);
PartResult measure(StudyContext& context, const DepthStudy& part);
std::vector<MeasurementRequest> requests(StudyContext& context, const SignalStudy& part);
PartResult measure(StudyContext& context, const SignalStudy& part);
std::vector<MeasurementRequest> requests(StudyContext& context, const SpectrumStudy& part);
PartResult measure(StudyContext& context, const SpectrumStudy& part);
std::vector<MeasurementRequest> requests(StudyContext& context, const TrainingStudy& part);
PartResult measure(StudyContext& context, const TrainingStudy& part);
std::vector<MeasurementRequest> requests(StudyContext& context, const FastWeightsStudy& part);
PartResult measure(StudyContext& context, const FastWeightsStudy& part);
std::vector<MeasurementRequest> requests(StudyContext& context, const AttentionCostStudy& part);
PartResult measure(StudyContext& context, const AttentionCostStudy& part);
std::vector<MeasurementRequest> requests(StudyContext& context, const LanguageModelStudy& part);
PartResult measure(StudyContext& context, const LanguageModelStudy& part);
std::vector<MeasurementRequest> requests(StudyContext& context, const CollapseStudy& part);
PartResult measure(StudyContext& context, const CollapseStudy& part);
std::vector<MeasurementRequest> requests(StudyContext& context, const TricksStudy& part);
PartResult measure(StudyContext& context, const TricksStudy& part);
std::vector<MeasurementRequest> requests(StudyContext& context, const NormsStudy& part);
PartResult measure(StudyContext& context, const NormsStudy& part);
std::vector<MeasurementRequest> requests(StudyContext& context, const BackwardGainStudy& part);
PartResult measure(StudyContext& context, const BackwardGainStudy& part);
std::vector<MeasurementRequest> requests(StudyContext& context, const FirstStepStudy& part);
PartResult measure(StudyContext& context, const FirstStepStudy& part);
std::vector<MeasurementRequest> requests(StudyContext& context, const CurvatureStudy& part);
PartResult measure(StudyContext& context, const CurvatureStudy& part);
std::vector<MeasurementRequest> requests(StudyContext& context, const CoordinateCheckStudy& part);
PartResult measure(StudyContext& context, const CoordinateCheckStudy& part);
std::vector<MeasurementRequest> requests(StudyContext& context, const AlongTrainingStudy& part);
PartResult measure(StudyContext& context, const AlongTrainingStudy& part);
std::vector<MeasurementRequest> requests(StudyContext& context, const ScaleStudy& part);
PartResult measure(StudyContext& context, const ScaleStudy& part);
std::vector<MeasurementRequest> requests(StudyContext& context, const TransferStudy& part);
PartResult measure(StudyContext& context, const TransferStudy& part);

}  // namespace plumb
