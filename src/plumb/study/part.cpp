#include "plumb/study/part.h"

#include <fmt/format.h>

#include "plumb/analysis/statistics.h"
#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/base/text.h"
#include "plumb/data/batches.h"
#include "plumb/study/changed_keys.h"
#include "plumb/task/baseline.h"

namespace plumb {

double label_frequencies(const StudyContext& context) {
  std::optional<double>& nll = context.frequencies;
  if (!nll) nll = context.data.has_split("valid") ? label_baseline(*context.task.dataset("valid")).nll() : kNoLimit;
  return *nll;
}

std::vector<std::string> arm_names(const StudyContext& context) {
  std::vector<std::string> names;
  for (const StudyArm& arm : context.arms) names.push_back(arm.name);
  return names;
}

const StudyArm& arm_named(const StudyContext& context, const std::string& name) {
  return *find_by(context.arms, &StudyArm::name, name);
}

ModelConfig model_for(const StudyContext& context, const std::string& arm, int64_t layers) {
  const StudyArm& found = arm_named(context, arm);
  ModelConfig model = found.model;
  if (!found.sets_depth) model.encoder_layers = model.decoder_layers = layers;
  context.task.complete(model);
  return model;
}

ModelConfig theory_model(const StudyContext& context, const std::string& arm, int64_t width,
                         const std::string& initialization, int64_t layers) {
  ModelConfig standard;  // defaults rather than the study's model
  standard.kind = context.config.model.kind;
  standard.pooling = context.config.model.pooling;
  standard.residual = arm_named(context, arm).model.residual;
  standard.initialization = initialization;
  standard.d_model = standard.feed_forward = width;
  standard.heads = 1;
  standard.positions = "none";
  standard.norm = "layernorm";
  standard.activation = "relu";
  standard.share_embeddings = context.config.model.share_embeddings;
  standard.encoder_layers = standard.decoder_layers = layers;
  context.task.complete(standard);
  return standard;
}

std::vector<StackKind> stacks_of(const StudyContext& context) {
  const ModelDepth depth = depth_of(context.config.model);
  std::vector<StackKind> stacks;
  if (depth.encoder_layers > 0) stacks.push_back(StackKind::encoder);
  if (depth.decoder_layers > 0) stacks.push_back(StackKind::decoder);
  return stacks;
}

std::unique_ptr<Model> initialized_model(const StudyContext& context, const ModelConfig& config, int64_t i) {
  std::unique_ptr<Model> model = make_model(config);
  model->initialize(static_cast<uint64_t>(context.config.study.seed + i));
  return model;
}

std::vector<Batch> measured_batches(const StudyContext& context, int64_t pairs, int64_t batch_tokens) {
  return evaluation_batches(*context.task.dataset(context.config.data.measured_split), batch_tokens, pairs);
}

double measured_tokens(const StudyContext& context, int64_t pairs) {
  constexpr int64_t kCounted = 1000;
  const std::unique_ptr<Dataset> dataset = context.task.dataset(context.config.data.measured_split);
  const int64_t all = pairs > 0 ? std::min(pairs, dataset->size()) : dataset->size();
  const int64_t counted = std::min(all, kCounted);
  double tokens = 0;
  for (int64_t i = 0; i < counted; ++i) tokens += static_cast<double>(dataset->cost(i).larger());
  return counted > 0 ? tokens * static_cast<double>(all) / static_cast<double>(counted) : 0;
}

std::string file_names(const std::vector<std::string>& paths) {
  std::vector<std::string> names;
  for (const std::string& path : paths) {
    const std::filesystem::path normal = std::filesystem::path(path).lexically_normal();
    names.push_back((normal.has_filename() ? normal : normal.parent_path()).filename().string());
  }
  return join(names, " and ");
}

std::string corpus_of(const StudyContext& context) {
  const StudyData& data = context.config.data;
  return data.directory.empty() && data.train.empty()
             ? fmt::format("synthetic corpus of {} pairs", with_thousands(data.pairs))
             : "text of " + file_names(data.directory.empty() ? data.train : std::vector{data.directory});
}

std::string layers_in_words(const ModelConfig& model) {
  const ModelDepth depth = depth_of(model);
  if (depth.encoder_layers > 0 && depth.decoder_layers > 0)
    return fmt::format("{}+{} layers", depth.encoder_layers, depth.decoder_layers);
  const int64_t layers = std::max(depth.encoder_layers, depth.decoder_layers);
  return fmt::format("{} layer{}", layers, layers == 1 ? "" : "s");
}

std::string setting_of(const StudyContext& context, const ModelConfig& model) {
  return fmt::format("{}, d_model {}, {} head{}, initialization {}; {}", layers_in_words(model), model.d_model,
                     model.heads, model.heads == 1 ? "" : "s", model.initialization, corpus_of(context));
}

std::vector<double> power_exponents(const std::vector<double>& sizes, const std::vector<std::vector<double>>& values) {
  const auto logarithms = [](std::vector<double> all) {
    for (double& each : all) each = std::log(each);
    return all;
  };
  std::vector<double> exponents;
  for (size_t seed = 0; seed < values.front().size(); ++seed) {
    std::vector<double> of_seed;
    for (const std::vector<double>& at_size : values) of_seed.push_back(at_size[seed]);
    const std::vector<double> y = logarithms(of_seed);
    const bool fitted = y.size() > 1 && std::all_of(y.begin(), y.end(), [](double v) { return std::isfinite(v); });
    exponents.push_back(fitted ? fit_line(logarithms(sizes), y).slope : std::nan(""));
  }
  return exponents;
}

std::string training_not_testable(const StudyContext& context) {
  const StudyData& data = context.config.data;
  if (!data.directory.empty() || !data.train.empty()) return {};
  return fmt::format("the claim is about real text; this study uses {} generated sentence pairs and a width of {}",
                     with_thousands(data.pairs), context.config.model.d_model);
}

double work_of(const ModelConfig& model, double tokens) {
  const ModelDepth depth = depth_of(model);
  const auto d = static_cast<double>(model.d_model);
  const auto layers = static_cast<double>(depth.encoder_layers + depth.decoder_layers);
  const double layer = d * (4 * d + 2 * static_cast<double>(model.feed_forward));
  // Small models spend their time on elementwise operations rather than matrix products: hence d² + 64·d.
  return tokens * (layers * (layer + 256 * d) + d * static_cast<double>(model.target_vocabulary)) * 1e-9;
}

double work_of_training(const ModelConfig& model, double tokens, double step_tokens) {
  // Timed, relative to measurements: three quarters of their time per token, and a step costs as much as 300 tokens
  // besides.
  return work_of(model, 0.75 * tokens * (1 + 300 / step_tokens));
}

Json settings_of(const ModelConfig& model) { return changed_keys(model); }

void require_split(const StudyContext& context, const std::string& split) {
  if (context.data.has_split(split)) return;
  throw Error(fmt::format("the data has no split '{}'", split), "splits: " + join(context.data.split_names()));
}

}  // namespace plumb
