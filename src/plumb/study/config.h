// A study as described by a TOML file: schemes, data, measurements and training runs.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "plumb/base/config.h"
#include "plumb/model/config.h"
#include "plumb/run/config.h"

namespace plumb {

/// [study]
struct StudyHead {
  std::string title = "A study";
  std::string subtitle;
  std::vector<std::string> schemes = {"post-ln", "pre-ln"};
  int64_t seed = 1;
};

/// [data]: a data directory, raw text files, or the embedded corpus.
struct StudyData {
  std::string directory;           // made by `plumb data`; if empty, made from the keys below
  std::vector<std::string> train;  // two files or one TSV file; empty: the embedded corpus
  std::vector<std::string> valid;
  std::vector<std::string> test;
  int64_t pairs = 20000;  // of the embedded corpus
  int64_t block = 0;      // for language models: tokens per block of running text; 0: pairs
  int64_t vocabulary = 2000;
  std::string measured_split = "valid";
};

/// [gradients]: gradient norms by layer at initialization, on the first `pairs` measured pairs (0: all).
struct GradientStudy {
  int64_t layers = 6;
  int64_t seeds = 5;
  int64_t pairs = 200;
};

/// [depth]: the gradient of the last feed-forward layer as a function of depth.
struct DepthStudy {
  std::vector<int64_t> layers = {6, 8, 10, 12, 14};
  int64_t seeds = 5;
  int64_t pairs = 100;
};

/// [signal]: activations and gradients in the theory's setting, compared with Lemma 2 and Theorem 1.
struct SignalStudy {
  int64_t layers = 6;
  std::vector<int64_t> widths = {32, 64, 128};
  int64_t seeds = 5;
  int64_t pairs = 100;
};

/// [spectrum]: Hessian spectra at initialization.
struct SpectrumStudy {
  int64_t layers = 6;
  int64_t pairs = 100;
  int64_t steps = 40;
  int64_t probes = 1;
  int64_t batch_tokens = 1024;
  double graph_memory_gib = 6.0;
  int64_t layer_steps = 0;  // for the spectrum of each layer's block; 0: not measured
  int64_t seeds = 3;        // of the initialization, for λ_max; the whole spectrum is measured for the first
  int64_t seed_steps = 20;  // Lanczos steps for the others
};

/// [[training.arm]]: an optimizer with its own sweep.
struct TrainingArm {
  std::string optimizer = "adam";
  std::vector<double> learning_rates = {1e-3};
  double clip_norm = 0;                // as train.clip_norm
  std::vector<std::string> schemes{};  // among study.schemes; empty: all

  /// "sgd", or "sgd, clipped at 1".
  [[nodiscard]] std::string name() const;
};

/// [training]: runs over schemes × depths × arms × warm-ups × learning rates × seeds; everything else is in [train].
struct TrainingStudy {
  std::vector<Duration> warm_ups = {0, 400};
  std::vector<double> learning_rates = {1e-3, 3e-3};  // of [train]'s optimizer, unless there are arms
  std::vector<int64_t> layers = {6};
  int64_t seeds = 1;
  int64_t bleu_pairs = 0;  // 0: no BLEU
  std::string bleu_split = "test";
  int64_t beam = 1;
  std::vector<TrainingArm> arms{};
};

/// [fast_weights]: attention as fast weights, and how many associations each kind can store.
struct FastWeightsStudy {
  std::vector<std::string> kinds = {"softmax", "linear", "favor", "dpfp", "delta"};
  int64_t size = 16;  // of keys and values
  std::vector<int64_t> keys = {4, 8, 16, 32, 64};
  int64_t seeds = 3;
  int64_t steps = 300;
};

/// [attention_cost]: time and memory by length.
struct AttentionCostStudy {
  std::vector<std::string> kinds = {"softmax", "linear", "favor", "delta"};
  std::vector<int64_t> lengths = {256, 1024, 4096, 16384, 65536};
  int64_t d_model = 64;
  int64_t heads = 2;
  int64_t runs = 1;
};

/// [language_model]: a decoder with each kind of attention, trained with [train]'s settings.
struct LanguageModelStudy {
  std::vector<std::string> kinds = {"softmax", "linear", "favor", "dpfp", "delta"};
  int64_t layers = 3;
  int64_t seeds = 1;
};

/// [collapse]: how much the representation changes from one sub-layer to the next.
struct CollapseStudy {
  int64_t layers = 12;
  int64_t seeds = 3;
  int64_t pairs = 50;
  int64_t steps = 0;  // training steps before a second measurement; 0: only at initialization
};

/// [tricks]: Adam, residual connections, norms and warm-up, removed one at a time and in pairs.
struct TricksStudy {
  int64_t layers = 3;
  double sgd_learning_rate = 0.1;
  int64_t seeds = 1;
};

/// [norms]: training with each norm at different batch sizes, and with different numbers of processes.
struct NormsStudy {
  std::vector<std::string> norms = {"layernorm", "rmsnorm", "batchnorm"};
  int64_t layers = 3;
  int64_t tokens = 300000;                              // per run
  std::vector<int64_t> batch_tokens = {64, 256, 1024};  // the learning rate scales with its square root
  int64_t seeds = 2;
  int64_t shared_batch_tokens = 256;  // for multi-process runs
  std::vector<int64_t> processes = {1, 2, 4};
};

/// [backward_gain]: how much of the gradient each sub-layer passes back at initialization.
struct BackwardGainStudy {
  int64_t layers = 6;
  int64_t seeds = 5;
  int64_t pairs = 100;
};

/// [first_step]: how an optimizer's first step changes the logits, and the learning rate above which it raises the
/// loss.
struct FirstStepStudy {
  int64_t layers = 6;
  int64_t seeds = 5;
  int64_t pairs = 100;
  std::vector<std::string> optimizers = {"adam", "sgd"};
};

/// [curvature]: extreme eigenvalues of the Hessian, its Gauss–Newton part and the rest, over seeds.
struct CurvatureStudy {
  int64_t layers = 6;
  int64_t seeds = 3;
  int64_t pairs = 50;
  int64_t steps = 40;
  int64_t layer_steps = 0;  // for each layer's block; 0: not measured
  int64_t batch_tokens = 1024;
  double graph_memory_gib = 4.0;
};

/// [coordinate_check]: how activations and their updates scale with width, depth and batch size.
struct CoordinateCheckStudy {
  std::vector<int64_t> widths = {32, 64, 128};  // fewer than two: not varied
  std::vector<int64_t> depths = {2, 4, 8};
  std::vector<int64_t> batch_tokens = {256, 512, 1024};
  int64_t layers = 2;  // unless depth is varied
  int64_t seeds = 5;
  int64_t steps = 3;
  double learning_rate = 1e-3;
  double margin = 0.1;  // "constant": the exponent's interval is within ± this
  int64_t pairs = 50;
};

/// [along_training]: curvature, gradient noise, updates and attention along training, with and without warm-up.
struct AlongTrainingStudy {
  int64_t layers = 3;
  std::vector<Duration> warm_ups = {0, 400};
  Duration every = 50;             // between measurements
  int64_t examples = 64;           // the first of the training set
  int64_t reference_products = 0;  // of a second search per eigenvalue, from a random vector; 0: none
};

/// [scale]: models of growing size, trained alike, and a power law fitted to their losses.
struct ScaleStudy {
  std::vector<int64_t> widths = {32, 64, 96, 128, 192, 256};  // of each model, growing; the last is held out
  std::vector<int64_t> layers = {2, 2, 3, 4, 4, 6};           // of each model
  std::string parametrization = "standard";                   // or "mup"
  int64_t seeds = 3;
  /// Swept at each of `rate_widths` with both parametrizations; empty: no sweeps.
  std::vector<double> learning_rates;
  std::vector<int64_t> rate_widths = {32, 64, 128};
  int64_t rate_layers = 2;
  int64_t rate_seeds = 3;
  /// Evaluation tasks for the models of the first scheme, as in `plumb evaluate --tasks`; empty: none.
  std::vector<std::string> tasks;
  std::string benchmarks = ".";  // directory of the tasks' files
  int64_t items = 200;           // the first items of each task; 0: all
};

/// [[transfer.model]]: a kind of model and the learning rates of its stages.
struct TransferModel {
  std::string kind = "awd-lstm";
  std::string initialization;                                // empty: model.initialization
  double pretraining_rate = 0;                               // 0: train.learning_rate
  double text_rate = 0.004;                                  // of the language model on the task's text
  std::vector<double> learning_rates = {0.003, 0.01, 0.03};  // of the classifier: each arm is swept over them
};

/// [transfer]: pretraining, then fine-tuning on the task's text and its labels, by recipes that each change one thing.
struct TransferStudy {
  std::string labels;  // data directory of labeled text, which is re-encoded; empty: the next two files
  std::string train;   // lines of label, TAB, text
  std::string valid;   // empty: held out from train
  int64_t length_limit = 256;
  std::vector<std::string> arms = {"scratch",       "complete",   "no-text",    "no-discriminative",
                                   "no-unfreezing", "no-slanted", "last-layer", "all-at-once"};
  std::vector<int64_t> examples;  // numbers of training examples, in addition to all
  int64_t seeds = 3;
  double rate_divisor = 2.6;
  int64_t text_epochs = 1;
  int64_t epochs = 6;       // with all examples
  int64_t few_epochs = 12;  // with fewer
  int64_t batch_tokens = 1024;
  std::vector<TransferModel> models;
};

struct StudyConfig {
  StudyHead study;
  StudyData data;
  ModelConfig model;
  TrainConfig train;
  TaskConfig task;
  std::optional<GradientStudy> gradients;
  std::optional<DepthStudy> depth;
  std::optional<SignalStudy> signal;
  std::optional<SpectrumStudy> spectrum;
  std::optional<TrainingStudy> training;
  std::optional<FastWeightsStudy> fast_weights;
  std::optional<AttentionCostStudy> attention_cost;
  std::optional<LanguageModelStudy> language_model;
  std::optional<CollapseStudy> collapse;
  std::optional<TricksStudy> tricks;
  std::optional<NormsStudy> norms;
  std::optional<BackwardGainStudy> backward_gain;
  std::optional<FirstStepStudy> first_step;
  std::optional<CurvatureStudy> curvature;
  std::optional<CoordinateCheckStudy> coordinate_check;
  std::optional<AlongTrainingStudy> along_training;
  std::optional<ScaleStudy> scale;
  std::optional<TransferStudy> transfer;

  /// Whether any part trains or takes optimizer steps with [train]'s settings.
  [[nodiscard]] bool trains() const {
    return training || tricks || norms || language_model || (collapse && collapse->steps > 0) || first_step ||
           coordinate_check || along_training || scale || transfer;
  }
  /// Whether an encoder predicts masked tokens, which requires a mask token in the vocabulary.
  [[nodiscard]] bool masks() const;
};

/// Calls visit(section, part) for each part of a study, in the order of measurement.
template <typename Study, typename Visit>
void for_each_part(Study& study, const Visit& visit) {
  visit("gradients", study.gradients);
  visit("depth", study.depth);
  visit("signal", study.signal);
  visit("spectrum", study.spectrum);
  visit("training", study.training);
  visit("fast_weights", study.fast_weights);
  visit("attention_cost", study.attention_cost);
  visit("language_model", study.language_model);
  visit("collapse", study.collapse);
  visit("tricks", study.tricks);
  visit("norms", study.norms);
  visit("backward_gain", study.backward_gain);
  visit("first_step", study.first_step);
  visit("curvature", study.curvature);
  visit("coordinate_check", study.coordinate_check);
  visit("along_training", study.along_training);
  visit("scale", study.scale);
  visit("transfer", study.transfer);
}

void describe(Fields& field, StudyHead& head);
void describe(Fields& field, StudyData& data);
void describe(Fields& field, GradientStudy& part);
void describe(Fields& field, DepthStudy& part);
void describe(Fields& field, SignalStudy& part);
void describe(Fields& field, SpectrumStudy& part);
void describe(Fields& field, TrainingArm& arm);
void describe(Fields& field, TrainingStudy& part);
void describe(Fields& field, FastWeightsStudy& part);
void describe(Fields& field, AttentionCostStudy& part);
void describe(Fields& field, LanguageModelStudy& part);
void describe(Fields& field, CollapseStudy& part);
void describe(Fields& field, TricksStudy& part);
void describe(Fields& field, NormsStudy& part);
void describe(Fields& field, BackwardGainStudy& part);
void describe(Fields& field, FirstStepStudy& part);
void describe(Fields& field, CurvatureStudy& part);
void describe(Fields& field, CoordinateCheckStudy& part);
void describe(Fields& field, AlongTrainingStudy& part);
void describe(Fields& field, ScaleStudy& part);
void describe(Fields& field, TransferModel& model);
void describe(Fields& field, TransferStudy& part);

/// Reads a study; parts without a section are not measured. Throws Error on unknown keys, values that cannot be
/// measured or an empty study.
StudyConfig read_study(const Config& config);

/// Throws Error on values that cannot be measured, as read_study does.
void check_parts(const StudyConfig& study);

/// [task] as TOML if a study sets it, otherwise empty.
std::string own_task(const TaskConfig& task);

/// The complete study as TOML, with all defaults spelled out.
std::string write_study(const StudyConfig& study);

}  // namespace plumb
