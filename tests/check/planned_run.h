// A planned run of a small model on synthetic data, and what the alarms see of it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "plumb/analysis/critical_rate.h"
#include "plumb/analysis/curvature/hessian.h"
#include "plumb/base/contains.h"
#include "plumb/base/progress.h"
#include "plumb/check/schedule.h"
#include "plumb/check/subject.h"
#include "plumb/data/prepare.h"
#include "plumb/data/prepare_labels.h"
#include "plumb/data/prepare_synthetic.h"
#include "plumb/task/baseline.h"
#include "plumb/train/alarm.h"
#include "support/paths.h"
#include "support/text_lines.h"

namespace plumb::test {

/// Small data of each kind, made when first asked for: "pairs", "text", "masked" (text with a token for masks) and
/// "labels". Faulty ones: "shuffled" pairs, of which each target belongs to another source; "repeated" text, each line
/// of which occurs three times; "known" text, which is validated on lines that it is trained on; "foreign" text with
/// the tokenizer of another language.
class SyntheticData {
 public:
  static std::string of(const std::string& kind) {
    static const SyntheticData data;
    const std::filesystem::path out = data.folder_ / kind;
    if (!std::filesystem::exists(out)) make(kind, out);
    return out.string();
  }

 private:
  static void make(const std::string& kind, const std::filesystem::path& out) {
    if (kind == "pairs") {
      SyntheticOptions options{.pairs = kPairs};
      options.tokenizer.vocabulary = 300;
      prepare_synthetic(options, out);
    } else if (kind == "shuffled") {
      const auto [sources, targets] = raw_text(out);
      PrepareOptions options;
      options.tokenizer.vocabulary = 300;
      Corpora corpora;
      for (size_t i = 0; i < sources.size(); ++i)
        corpora.train.append(sources[i], targets[(7 * i + 1) % targets.size()]);
      corpora.valid = ParallelText{{sources[0]}, {targets[0]}};
      prepare_corpora(corpora, options, out);
    } else if (kind == "labels") {
      make_labels(out);
    } else {
      make_text(kind, out);
    }
  }

  static void make_text(const std::string& kind, const std::filesystem::path& out) {
    TextOptions options;
    options.block = kind == "text" || kind == "masked" ? 24 : 0;
    options.tokenizer.vocabulary = 300;
    options.tokenizer.mask = kind == "masked";
    if (options.block > 0) {
      prepare_synthetic_text(kPairs, 1, options, out);
      return;
    }
    TextCorpora corpora;
    corpora.train = raw_text(out).second;
    corpora.valid = std::vector<std::string>(corpora.train.end() - 50, corpora.train.end());
    if (kind != "known") corpora.train.resize(corpora.train.size() - 50);
    if (kind == "repeated") {
      const std::vector<std::string> once = corpora.train;
      for (int times = 1; times < 3; ++times) corpora.train.insert(corpora.train.end(), once.begin(), once.end());
    }
    if (kind == "foreign") options.tokenizer_from = foreign_tokenizer(out);
    prepare_text_lines(corpora, options, out);
  }

  static void make_labels(const std::filesystem::path& out) {
    LabelOptions options;
    options.train = out.string() + ".tsv";
    options.valid = out.string() + ".valid.tsv";
    for (const auto& [file, first, last] : {std::tuple(options.train, 0, 300), std::tuple(*options.valid, 300, 330)}) {
      std::ofstream lines(file);
      for (int i = first; i < last; ++i)
        lines << (i % 2 == 0 ? "cat\tthe small cat" : "dog\tthe big dog") << " sees house number " << i << '\n';
    }
    options.tokenizer.vocabulary = 60;
    prepare_labels(options, out);
  }

  /// The German and the English lines of the corpus.
  static std::pair<std::vector<std::string>, std::vector<std::string>> raw_text(const std::filesystem::path& out) {
    const std::string prefix = out.string() + ".raw";
    write_synthetic_text(kPairs, 1, prefix);
    const ParallelText text = read_parallel_text({prefix + ".de", prefix + ".en"});
    return {text.sources, text.targets};
  }

  /// Of Greek text, none of whose letters occur in English.
  static std::filesystem::path foreign_tokenizer(const std::filesystem::path& out) {
    const std::filesystem::path greek = out.string() + ".greek";
    prepare_lines(greek, in_turn(40, {"η μικρή γάτα βλέπει το σπίτι", "ο μεγάλος σκύλος κοιμάται"}),
                  {"η γάτα κοιμάται"}, 0, 60);
    return greek;
  }

  static constexpr int64_t kPairs = 500;

  TemporaryDirectory folder_;
};

/// The kind of data that a kind of model learns.
inline std::string data_for(const std::string& model_kind) {
  if (model_kind == "encoder-decoder") return "pairs";
  return model_kind == "encoder" ? "masked" : "text";
}

/// A run that trains: Pre-LN, two layers on each side, d_model 64.
inline RunConfig planned(const std::string& model_kind = "decoder") {
  RunConfig run;
  run.data = SyntheticData::of(data_for(model_kind));
  run.model.kind = model_kind;
  if (model_kind == "encoder") run.model.pooling = "none";
  run.model.d_model = 64;
  run.model.feed_forward = 128;
  run.model.heads = 4;
  run.model.encoder_layers = run.model.decoder_layers = 2;
  run.train.learning_rate = 1e-3;
  run.train.batch_tokens = 512;
  run.train.steps = 1000;
  run.train.warm_up = 100;
  return run;
}

/// What a test changes of a planned run before the alarms see it.
struct Changes {
  /// Makes the model; empty: the configured one.
  std::function<std::unique_ptr<Model>(const ModelConfig&)> model;
  /// Changes the weights with which the run begins.
  std::function<void(const Parameters&)> weights;
  /// Wraps the training data.
  std::function<std::unique_ptr<Dataset>(std::unique_ptr<Dataset>)> data;
};

/// What the alarms say of the run.
inline std::vector<Finding> findings_for(const RunConfig& run, const Changes& changes = {}) {
  const ListenToProgress silent([](double) {});
  const check::Subject subject = check::open_subject(run);
  const ModelConfig& config = subject.config.model;
  const TrainConfig& train = subject.config.train;
  const std::unique_ptr<Model> model = changes.model ? changes.model(config) : make_model(config);
  check::set_first_weights(subject, *model, 1);
  {
    const at::NoGradGuard no_graph;
    if (changes.weights) changes.weights(model->parameters());
  }
  std::unique_ptr<Dataset> data = subject.task->dataset("train");
  if (changes.data) data = changes.data(std::move(data));
  const std::vector<Batch> batches = evaluation_batches(*data, train.batch_tokens, 64);
  const check::PlannedSchedule plan = check::planned_schedule(subject);
  Baselines baselines;
  baselines.frequencies = label_baseline(*data).nll();
  baselines.uniform = std::log(static_cast<double>(model->outputs()));
  const MeanLoss mean = mean_loss(*model, batches, train.label_smoothing, loss_of(*subject.task));
  baselines.first = mean.nll;
  return all_findings({.config = train,
                       .task = *subject.task,
                       .model = *model,
                       .train = *data,
                       .batches = batches,
                       .gradient = model->parameters().split(mean.gradient),
                       .baselines = baselines,
                       .peak_rate = plan.peak,
                       .warm_up = plan.warm_up,
                       .steps = plan.steps,
                       .random = check::begins_at_random(subject)});
}

/// The names of the alarms that are raised, each once.
inline std::vector<std::string> raised(const std::vector<Finding>& findings) {
  std::vector<std::string> names;
  for (const Finding& each : findings) {
    if (each.raised && !contains(names, each.alarm)) names.push_back(each.alarm);
  }
  return names;
}

/// The first finding that the alarm gives, restricted to `place` unless that is empty; fails the test without one.
inline Finding finding_of(const std::vector<Finding>& findings, const std::string& alarm,
                          const std::string& place = "") {
  for (const Finding& each : findings) {
    if (each.alarm == alarm && (place.empty() || each.where == place)) return each;
  }
  ADD_FAILURE() << "the alarm " << alarm << " says nothing of " << place;
  return {};
}

}  // namespace plumb::test
