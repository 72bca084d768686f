// Fine-tuning: initial weights, which parameters are trained when, and errors.
#include "plumb/train/finetune.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "moments.h"
#include "plumb/base/error.h"
#include "plumb/base/progress.h"
#include "plumb/base/random.h"
#include "plumb/data/prepare_labels.h"
#include "plumb/io/safetensors.h"
#include "plumb/optim/groups.h"
#include "plumb/run/directory.h"
#include "plumb/run/initial_weights.h"
#include "plumb/task/direction.h"
#include "plumb/train/run_training.h"
#include "run_contents.h"
#include "support/errors.h"
#include "support/fast_directory.h"
#include "support/small_model.h"
#include "support/text_lines.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

class Finetuning : public ::testing::Test {
 protected:
  Finetuning() {
    test::prepare_lines(folder_ / "text", test::in_turn(60, {"a small cat sees the dog", "a big cat sees the dog"}),
                        {"the cat sees a dog"}, 12, 24, true);
    prepare(folder_ / "labels", folder_ / "text");
  }

  /// Prepares data whose label is the subject of the sentence; trains a new tokenizer if `from` is empty.
  void prepare(const fs::path& out, const fs::path& from, const std::string& label = "cat") const {
    const fs::path file = folder_ / "labels.tsv";
    std::ofstream lines(file);
    for (int i = 0; i < 80; ++i) {
      const bool cat = i % 2 == 0;
      lines << (cat ? label : "dog") << "\tthe " << (i % 3 == 0 ? "big " : "small ") << (cat ? "cat" : "dog")
            << " sees a " << (cat ? "dog" : "cat") << '\n';
    }
    lines.close();
    LabelOptions options;
    options.train = file;
    options.valid = file;
    options.tokenizer_from = from;
    options.tokenizer.vocabulary = 26;
    prepare_labels(options, out);
  }

  /// Trains for a few steps on the text; returns the run.
  fs::path pretrained(const std::string& kind, const std::string& name = "pretrained",
                      const std::string& task = "") const {
    RunConfig run;
    run.data = (folder_ / "text").string();
    run.model = test::small_learner(kind, 2, kind == "encoder" ? "none" : "first");
    Config::from_string(task, "test").read("task", run.task);
    run.train.steps = 4;
    run.train.batch_tokens = 200;
    run.train.learning_rate = 1e-2;
    run.train.warm_up = 0;
    run.train.decay_start = 1;
    run_training(run, folder_ / name);
    return folder_ / name;
  }

  [[nodiscard]] RunConfig requested(const std::string& toml, const fs::path& from) const {
    return finetuning_run(Config::from_string("[train]\nbatch_tokens = 100\n" + toml, "test"), from.string(),
                          (folder_ / "labels").string());
  }

  static NamedTensors weights_of(const fs::path& run) {
    return load_safetensors(latest_checkpoint(run) / "model.safetensors");
  }

  /// The names of the parameters that are in both sets of weights with different values.
  static std::set<std::string> changed(const NamedTensors& before, const NamedTensors& after) {
    std::set<std::string> names;
    for (const auto& [name, value] : before) {
      for (const auto& [other, now] : after) {
        if (name == other && (!value.sizes().equals(now.sizes()) || !at::equal(value, now))) names.insert(name);
      }
    }
    return names;
  }

  test::FastDirectory folder_;
};

TEST_F(Finetuning, BeginsWithThePretrainedBodyAndAFreshHead) {
  for (const std::string kind : {"encoder", "decoder"}) {
    const fs::path from = pretrained(kind, kind);
    const RunConfig config = requested("learning_rate = 0\nsteps = 1\n", from);
    EXPECT_EQ(config.model.pooling, kind == "encoder" ? "first" : "last");
    EXPECT_EQ(config.train.optimizer, "adamw");
    EXPECT_EQ(config.train.best_metric, "accuracy");
    const fs::path out = folder_ / (kind + "-finetuned");
    const TrainResult result = run_training(config, out);
    const NamedTensors before = weights_of(from), after = weights_of(out);
    // The head of a masked or causal language model has no parameters except those it shares with the embedding.
    EXPECT_EQ(changed(before, after), std::set<std::string>());
    ModelConfig complete = load_run_config(out).model;
    EXPECT_EQ(complete.labels, 2);
    const auto fresh = make_model(complete);
    fresh->initialize(static_cast<uint64_t>(config.train.seed));
    EXPECT_EQ(after.size(), named_values(fresh->parameters()).size());
    for (const auto& [name, value] : after) {
      if (name.starts_with("output.")) {
        EXPECT_TRUE(at::equal(value, fresh->parameters().at(name).value)) << name;
      }
    }
    for (const std::string metric : {"accuracy", "f1", "mcc"}) {
      ASSERT_TRUE(result.metrics.get(metric).has_value()) << metric;
      EXPECT_LE(*result.metrics.get(metric + "_low"), *result.metrics.get(metric + "_high"));
    }
    EXPECT_EQ(load_run_config(out).initial_weights, latest_checkpoint(from).string());
  }
}

TEST_F(Finetuning, AClassifierOfTheSameLabelsKeepsItsHead) {
  for (const std::string pooler : {"false", "true"}) {
    const std::string still = "learning_rate = 0\nseed = 7\nsteps = 1\n", kind = "pooler = " + pooler + "\n";
    const fs::path first = folder_ / ("first-" + pooler);
    run_training(requested("learning_rate = 0.01\nsteps = 5\n[model]\n" + kind, pretrained("encoder")), first);
    const NamedTensors before = weights_of(first);
    const auto said = [&](const RunConfig& run, const fs::path& out) {
      set_verbosity(Verbosity::normal);
      ::testing::internal::CaptureStderr();
      run_training(run, out);
      set_verbosity(Verbosity::quiet);
      return ::testing::internal::GetCapturedStderr();
    };
    const fs::path same = folder_ / ("same-" + pooler), other = folder_ / ("other-" + pooler);
    EXPECT_CONTAINS(said(requested(still, first), same), "the output layer is that of " + first.string());
    EXPECT_EQ(changed(before, weights_of(same)), std::set<std::string>());
    EXPECT_EQ(weights_of(same).size(), before.size());
    // Also with new adapters, and if the configuration is made otherwise.
    run_training(requested(still + "[finetune.lora]\nrank = 2\n", first), folder_ / ("lora-" + pooler));
    EXPECT_EQ(changed(before, weights_of(folder_ / ("lora-" + pooler))), std::set<std::string>());
    // Other labels, or another place from which they are read, need another one.
    prepare(folder_ / "tigers", folder_ / "text", "tiger");
    const RunConfig tigers = finetuning_run(Config::from_string("[train]\nbatch_tokens = 100\n" + still, "test"),
                                            first.string(), (folder_ / "tigers").string());
    EXPECT_CONTAINS(said(tigers, other), "the output layer is new, not that of " + first.string());
    EXPECT_TRUE(changed(before, weights_of(other)).contains("output.weight"));
    EXPECT_CONTAINS(
        said(requested(still + "[model]\npooling = \"mean\"\npooler = false\n", first), folder_ / ("mean-" + pooler)),
        "the output layer is new");
  }
}

TEST_F(Finetuning, WeightsOtherThanTheCheckpointListsAreRefused) {
  const fs::path from = pretrained("encoder"), file = latest_checkpoint(from) / "model.safetensors";
  NamedTensors edited = load_safetensors(file);
  edited.front().second = edited.front().second + 1;
  save_safetensors(file, edited);  // with the checksum of each tensor
  const auto begin = [&] { run_training(requested("steps = 1\n", from), folder_ / "run"); };
  const Error error = test::expect_error(begin, "model.safetensors has changed: its checksum is wrong");
  EXPECT_CONTAINS(std::string(error.what()), latest_checkpoint(from).string());
  EXPECT_CONTAINS(error.hint(), "remove state.json");
  EXPECT_FALSE(fs::exists(folder_ / "run"));
  fs::remove(latest_checkpoint(from) / "state.json");
  begin();
}

TEST_F(Finetuning, GoesOnWhenThePretrainedModelHasMoved) {
  const std::string settings = "learning_rate = 0.01\nsteps = 8\n";
  const fs::path from = pretrained("encoder"), moved = folder_ / "moved", out = folder_ / "run";
  run_training(requested(settings, from), out, test::stop_after(4));
  fs::rename(from, moved);
  const auto refused = [&](const fs::path& weights) {
    RunConfig run = requested(settings, moved);
    run.initial_weights = weights.string();
    const std::string error = test::error_of([&] { run_training(run, out); }).what();
    return error.find("different configuration: initial.weights") != std::string::npos;
  };
  const fs::path checkpoint = latest_checkpoint(moved);
  EXPECT_TRUE(refused(folder_ / "nowhere"));
  fs::copy(checkpoint, moved / "checkpoints" / "step-000009");  // not the step that the run began with
  EXPECT_TRUE(refused(moved / "checkpoints" / "step-000009"));
  fs::remove_all(moved / "checkpoints" / "step-000009");
  EXPECT_EQ(run_training(requested(settings, moved), out).outcome, RunOutcome::finished);
  EXPECT_EQ(load_run_config(out).initial_weights, checkpoint.string());
  EXPECT_TRUE(refused(pretrained("encoder", "other")));  // the weights the run began with still exist
}

TEST_F(Finetuning, UnfreezesOneMoreLayerEachEpoch) {
  const fs::path from = pretrained("encoder");
  const NamedTensors before = weights_of(from);
  for (int epochs = 1; epochs <= 4; ++epochs) {
    const fs::path out = folder_ / fmt::format("run{}", epochs);
    run_training(
        requested(fmt::format("learning_rate = 0.01\nsteps = \"{}e\"\n[finetune]\nunfreeze = \"gradual\"\n", epochs),
                  from),
        out);
    std::set<std::string> expected;
    for (const auto& [name, value] : before) {
      int group = 1;  // the norm after the last layer
      if (name.find(".layers.0.") != std::string::npos) group = 2;
      if (name.find("_embed") != std::string::npos) group = 3;
      if (group < epochs) expected.insert(name);
    }
    EXPECT_EQ(changed(before, weights_of(out)), expected) << epochs;
  }
  EXPECT_EQ(requested("[finetune]\nunfreeze = \"gradual\"\n", from).train.steps, Duration::parse("5e"));
}

TEST_F(Finetuning, LearnsItsLabels) {
  const RunConfig config = requested("learning_rate = 0.005\nsteps = \"30e\"\n", pretrained("encoder"));
  EXPECT_GT(*run_training(config, folder_ / "run").metrics.get("accuracy"), 0.95);
}

TEST_F(Finetuning, TrainsAdaptersAndTheHeadAlone) {
  const fs::path from = pretrained("encoder");
  const RunConfig config = requested("learning_rate = 0.01\nsteps = 5\n[finetune.lora]\nrank = 3\n", from);
  run_training(config, folder_ / "run");
  const NamedTensors before = weights_of(from), after = weights_of(folder_ / "run");
  EXPECT_EQ(changed(before, after), std::set<std::string>{});
  const auto fresh = load_model(folder_ / "run");
  EXPECT_EQ(fresh->config().lora, config.model.lora);
  fresh->initialize(static_cast<uint64_t>(config.train.seed));
  std::set<std::string> expected;
  for (const Parameter& parameter : fresh->parameters().all()) {
    if (is_of_adapter(parameter.name) || is_of_head(parameter.name)) expected.insert(parameter.name);
  }
  EXPECT_EQ(expected.size(), 2U * 2 * 2 + 2);  // A and B for query and value in two layers, and the output layer
  NamedTensors initial;
  for (const auto& [name, value] : named_values(fresh->parameters())) {
    if (expected.count(name) > 0) initial.emplace_back(name, value);
  }
  EXPECT_EQ(changed(initial, after), expected);
}

TEST_F(Finetuning, AdaptersLearnTheirLabels) {
  const fs::path from = pretrained("encoder");
  const RunConfig config = requested("learning_rate = 0.01\nsteps = \"60e\"\n[finetune.lora]\nrank = 4\n", from);
  EXPECT_GT(*run_training(config, folder_ / "run").metrics.get("accuracy"), 0.95);
  EXPECT_EQ(requested("[finetune.lora]\nrank = 4\n", from).train.learning_rate, 4e-4);
  EXPECT_THROW((void)requested("[finetune]\nunfreeze = \"gradual\"\n[finetune.lora]\nrank = 4\n", from), Error);
}

TEST_F(Finetuning, AnInterruptedRunNoLongerNeedsThePretrainedOne) {
  for (const std::string recipe : {"[finetune]\nunfreeze = \"gradual\"\n", "[finetune.lora]\nrank = 3\n"}) {
    SCOPED_TRACE(recipe);
    const fs::path from = pretrained("encoder");
    const RunConfig config = requested("steps = 9\nlog_every = 1\ncheckpoint_every = 4\n" + recipe, from);
    const fs::path whole = folder_ / "whole", killed = folder_ / "killed";
    run_training(config, whole);
    struct Kill {};
    test::Moments moments;
    moments.point = [](const TrainPoint& point) {
      if (point.step == 6) throw Kill();
    };
    EXPECT_THROW(run_training(config, killed, moments), Kill);
    fs::remove_all(from);
    EXPECT_EQ(run_training(load_run_config(killed), killed).outcome, RunOutcome::finished);
    EXPECT_EQ(test::contents_of_run(killed), test::contents_of_run(whole));
    for (const fs::path& run : {whole, killed}) fs::remove_all(run);
  }
}

TEST_F(Finetuning, ShapesThatDoNotFitAreNamed) {
  const fs::path from = pretrained("encoder");
  const RunConfig config = requested("[model]\nfeed_forward = 48\n", from);
  const Error error = test::error_of([&] { run_training(config, folder_ / "run"); });
  const std::string what = error.what();
  EXPECT_CONTAINS(what, "encoder.layers.0.linear1");
  EXPECT_CONTAINS(what, "32");
  EXPECT_CONTAINS(what, "48");
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

TEST_F(Finetuning, UnsuitableRequestsAreErrors) {
  const fs::path from = pretrained("encoder");
  EXPECT_CONTAINS(
      std::string(test::error_of([&] { (void)requested("[finetune]\nunfreeze = \"some\"\n", from); }).what()),
      "finetune.unfreeze");
  EXPECT_THROW((void)requested("[finetune]\nrate_divisor = 0.5\n", from), Error);
  EXPECT_THROW((void)requested("[task]\nname = \"translation\"\n", from), Error);
  EXPECT_THROW((void)requested("", ""), UsageError);
  EXPECT_THROW((void)finetuning_run(Config(), from.string(), ""), UsageError);
  prepare(folder_ / "other", {});
  const Error other =
      test::error_of([&] { (void)finetuning_run(Config(), from.string(), (folder_ / "other").string()); });
  EXPECT_CONTAINS(other.what(), "vocabulary");
  const fs::path classifier = folder_ / "classifier";
  run_training(requested("steps = 1\n", from), classifier);
  const Error unlabeled =
      test::error_of([&] { (void)finetuning_run(Config(), classifier.string(), (folder_ / "text").string()); });
  EXPECT_CONTAINS(unlabeled.what(), "is a classifier");
  EXPECT_CONTAINS(unlabeled.hint(), "plumb data labels");
  EXPECT_THROW((void)requested("[task.classification]\ndirection = \"backward\"\n", from), Error);
  EXPECT_THROW((void)requested("[task.classification]\ndirection = \"sideways\"\n", from), Error);
}

// A pretrained model needs its data as long as it is used.
TEST_F(Finetuning, LabelsDoNotReplaceTheTextOfAnEarlierStage) {
  EXPECT_THROW(prepare(folder_ / "text", folder_ / "text"), Error);
  EXPECT_EQ(DataDirectory::open(folder_ / "text").task(), "language-modeling");
  prepare(folder_ / "labels", folder_ / "text");  // labels may replace labels
}

constexpr const char* kUnregularized =
    "[model.awd-lstm]\nembedding_dropout = 0\ninput_dropout = 0\nhidden_dropout = 0\nweight_drop = 0\n"
    "pooled_dropout = 0\nhead_dropout = 0\nactivation_penalty = 0\ntemporal_penalty = 0\n";

// The two labels are equally frequent: a constant prediction has accuracy 0.5.
TEST_F(Finetuning, ARecurrentModelLearnsItsLabels) {
  const fs::path from = pretrained("awd-lstm", "recurrent", "[task.language-modeling]\nstream = 4\nbptt = 8\n");
  const RunConfig config = requested(
      std::string("steps = \"25e\"\n[finetune]\nrate_divisor = 2.6\nunfreeze = \"gradual\"\n") + kUnregularized, from);
  EXPECT_EQ(config.model.pooling, "concat");
  EXPECT_EQ(config.train.optimizer, "adam");
  EXPECT_EQ(config.train.learning_rate, 0.01);
  EXPECT_EQ(config.train.schedule, "constant * slanted_triangular");
  const fs::path out = folder_ / "run";
  EXPECT_GT(*run_training(config, out).metrics.get("accuracy"), 0.95);
}

TEST_F(Finetuning, ABackwardModelClassifiesBackward) {
  const fs::path from =
      pretrained("awd-lstm", "backward", "[task.language-modeling]\nstream = 4\nbptt = 8\ndirection = \"backward\"\n");
  const RunConfig config = requested(
      std::string("steps = \"25e\"\n[finetune]\nrate_divisor = 2.6\nunfreeze = \"gradual\"\n") + kUnregularized, from);
  EXPECT_TRUE(reads_backward(config.task));
  const fs::path out = folder_ / "run";
  EXPECT_GT(*run_training(config, out).metrics.get("accuracy"), 0.95);
  EXPECT_TRUE(reads_backward(load_run_config(out).task));
  EXPECT_THROW((void)requested("[task.classification]\ndirection = \"forward\"\n", from), Error);
}

/// Fine-tuning on other text, with a different vocabulary.
class FinetuningOnText : public Finetuning {
 protected:
  FinetuningOnText() {
    test::prepare_lines(folder_ / "films", test::in_turn(60, {"a new film shows the cat", "a big film shows the cat"}),
                        {"the cat shows a film"}, 12, 28);
  }
  [[nodiscard]] RunConfig on_films(const std::string& toml, const fs::path& from) const {
    return finetuning_run(Config::from_string("[train]\nbatch_tokens = 100\n" + toml, "test"), from.string(),
                          (folder_ / "films").string());
  }
};

Tensor tensor_named(const NamedTensors& tensors, const std::string& name) {
  for (const auto& [each, value] : tensors) {
    if (each == name) return value;
  }
  ADD_FAILURE() << "no tensor " << name;
  return {};
}

TEST_F(FinetuningOnText, ALanguageModelGoesOnWithTheVocabularyOfTheText) {
  const std::string stream = "[task.language-modeling]\nstream = 4\nbptt = 8\n";
  for (const std::string kind : {"awd-lstm", "decoder"}) {
    const fs::path from = pretrained(kind, kind, kind == "decoder" ? "" : stream);
    const RunConfig config = on_films("learning_rate = 0\nsteps = 1\n", from);
    EXPECT_EQ(config.task.name, "language-modeling");
    EXPECT_EQ(config.task, load_run_config(from).task);
    EXPECT_EQ(config.train.best_metric, "valid_nll");
    const fs::path out = folder_ / (kind + "-films");
    run_training(config, out);
    const NamedTensors before = weights_of(from), after = weights_of(out);
    const Tokenizer old_pieces = DataDirectory::open(folder_ / "text").target_tokenizer(),
                    pieces = DataDirectory::open(folder_ / "films").target_tokenizer();
    for (const std::string name : {kind == "decoder" ? "tgt_embed.weight" : "embedding.weight", "output.bias"}) {
      if (name == "output.bias" && kind == "decoder") continue;
      const Tensor had = tensor_named(before, name), has = tensor_named(after, name);
      ASSERT_EQ(has.size(0), pieces.vocabulary());
      int fresh = 0;
      for (int32_t id = 0; id < pieces.vocabulary(); ++id) {
        const int32_t old_id = old_pieces.find(pieces.piece(id));
        fresh += old_id < 0 ? 1 : 0;
        EXPECT_TRUE(at::allclose(has[id], old_id < 0 ? had.mean(0) : had[old_id], 1e-6, 1e-7)) << pieces.piece(id);
      }
      EXPECT_GT(fresh, 2);
    }
    for (const auto& [name, value] : before) {
      if (name.starts_with("lstm.") || name.starts_with("decoder.")) {
        EXPECT_TRUE(at::equal(value, tensor_named(after, name))) << name;
      }
    }
  }
}

TEST_F(FinetuningOnText, AdaptersNeedTheVocabularyOfTheModel) {
  const fs::path from = pretrained("decoder");
  EXPECT_THROW((void)on_films("[finetune.lora]\nrank = 2\n", from), Error);
  EXPECT_NO_THROW((void)finetuning_run(Config::from_string("[finetune.lora]\nrank = 2\n", "test"), from.string(),
                                       (folder_ / "text").string()));
}

TEST_F(FinetuningOnText, TheSameVocabularyChangesNothing) {
  const fs::path from = pretrained("decoder");
  const RunConfig config = finetuning_run(Config::from_string("[train]\nlearning_rate = 0\nsteps = 1\n", "test"),
                                          from.string(), (folder_ / "text").string());
  run_training(config, folder_ / "again");
  EXPECT_EQ(changed(weights_of(from), weights_of(folder_ / "again")), std::set<std::string>());
}

TEST_F(FinetuningOnText, AVocabularyThatIsGoneIsNamed) {
  const fs::path from = pretrained("decoder");
  fs::rename(folder_ / "text", folder_ / "moved");
  const Error error = test::error_of([&] { run_training(on_films("steps = 1\n", from), folder_ / "run"); });
  EXPECT_CONTAINS(error.what(), (folder_ / "text").string());
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

}  // namespace
}  // namespace plumb
