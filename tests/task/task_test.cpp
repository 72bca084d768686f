// Tasks: the contents of batches, losses, and metrics.
#include "plumb/task/task.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "plumb/base/error.h"
#include "plumb/base/random.h"
#include "plumb/data/prepare_labels.h"
#include "plumb/decode/translate.h"
#include "plumb/metrics/bleu.h"
#include "plumb/model/capabilities.h"
#include "plumb/train/trainer.h"
#include "support/paths.h"
#include "support/small_model.h"
#include "support/text_lines.h"
#include "train/copy_task.h"

namespace plumb {
namespace {

using Ids = std::vector<int64_t>;

class Tasks : public ::testing::Test {
 protected:
  /// Sentences of two to six words; the label says whether the first is "yes" or "no".
  std::filesystem::path labeled_file(const std::string& name, int64_t lines, uint64_t seed) const {
    Random random(seed, "labels");
    std::ofstream out(folder_ / name);
    for (int64_t i = 0; i < lines; ++i) {
      const bool yes = random.below(2) == 0;
      out << (yes ? "good" : "bad") << '\t' << (yes ? "yes" : "no");
      for (uint64_t n = 1 + random.below(5); n > 0; --n) out << ' ' << static_cast<char>('a' + random.below(6));
      out << '\n';
    }
    return folder_ / name;
  }

  DataDirectory labeled_data() const {
    LabelOptions options;
    options.train = labeled_file("train.tsv", 200, 1);
    options.valid = labeled_file("valid.tsv", 40, 2);
    options.tokenizer.vocabulary = 24;
    prepare_labels(options, folder_ / "labels");
    return DataDirectory::open(folder_ / "labels");
  }

  DataDirectory text_data(int64_t block) const {
    return test::prepare_lines(folder_ / "text",
                               test::in_turn(60, {"a big cat sees the dog", "a small cat sees the dog"}),
                               {"the cat sees a dog", "a dog"}, block);
  }

  test::TemporaryDirectory folder_;
};

TEST_F(Tasks, TheDataNameTheTask) {
  EXPECT_EQ(make_task({}, labeled_data(), "encoder")->name(), "classification");
  EXPECT_EQ(make_task({}, text_data(8), "decoder")->name(), "language-modeling");
  EXPECT_EQ(make_task({}, text_data(8), "awd-lstm")->name(), "language-modeling");
  TaskConfig wrong;
  wrong.name = "classification";
  EXPECT_THROW(make_task(wrong, text_data(8), "encoder"), Error);
  wrong.name = "clasification";
  EXPECT_THROW(make_task(wrong, labeled_data(), "encoder"), Error);
}

TEST_F(Tasks, RecurrentModelsLearnLanguageModeling) {
  const auto task = make_task({}, text_data(8), "awd-lstm");
  ModelConfig config = test::small_learner("awd-lstm");
  task->complete(config);
  EXPECT_EQ(config.target_vocabulary, task->data().target_vocabulary());
  EXPECT_TRUE(task->learned_by("awd-lstm"));
  EXPECT_FALSE(task->learned_by("encoder"));
  EXPECT_THROW(make_task({}, labeled_data(), "encoder")->complete(config), Error);
}

TEST_F(Tasks, CompleteTheModelOrSayWhyNot) {
  const auto task = make_task({}, labeled_data(), "encoder");
  ModelConfig config = test::small_learner("encoder");
  task->complete(config);
  EXPECT_EQ(config.labels, 2);
  EXPECT_EQ(config.source_vocabulary, task->data().source_vocabulary());
  config.labels = 3;
  EXPECT_THROW(task->complete(config), Error);
  config = test::small_learner("encoder");
  config.source_vocabulary = 5;
  EXPECT_THROW(task->complete(config), Error);  // smaller than that of the data
  config = test::small_learner("decoder");
  EXPECT_THROW(task->complete(config), Error);
}

TEST_F(Tasks, AClassifierReadsTheWholeAndPredictsItsLabel) {
  const auto task = make_task({}, labeled_data(), "encoder");
  const auto train = task->dataset("train");
  const auto labels = task->data().labels_of("train");
  const Batch batch = train->batch(std::vector<int64_t>{3, 0});
  EXPECT_EQ(batch.labels, (Ids{labels[3], labels[0]}));
  EXPECT_EQ(batch.source.front(), 1);  // BOS
  EXPECT_EQ(batch.source.back(), 2);   // EOS
  EXPECT_EQ(batch.source_layout.length(0), train->cost(3).source);
  EXPECT_TRUE(batch.target_input.empty());
  EXPECT_THROW(static_cast<void>(train->batch(std::vector<int64_t>{200})), Error);
}

TEST_F(Tasks, ABlockOfTextPredictsItsTokensAndNoEnd) {
  const auto task = make_task({}, text_data(5), "decoder");
  const Split& split = task->data().split("train");
  const Batch batch = task->dataset("train")->batch(std::vector<int64_t>{2, 4});
  const auto first = split.target(2);
  EXPECT_EQ(batch.target_layout, Ragged({5, 5}));
  EXPECT_EQ(Ids(batch.labels.begin(), batch.labels.begin() + 5), Ids(first.begin(), first.end()));
  EXPECT_EQ(batch.target_input[0], 1);
  EXPECT_EQ(Ids(batch.target_input.begin() + 1, batch.target_input.begin() + 5), Ids(first.begin(), first.end() - 1));
  EXPECT_EQ(batch.target_input[5], 1);
}

TEST_F(Tasks, ABlockWhoseLinesAreApartBeginsAnewAfterEachEnd) {
  TaskConfig config;
  Config::from_string("[task.language-modeling]\napart = true\n", "test").read("task", config);
  const auto task = make_task(config, text_data(40), "decoder");
  const auto train = task->dataset("train");
  std::vector<int64_t> lengths, lines;
  Ids input, labels;
  for (const int64_t i : {0, 3, 4}) {
    const auto block = task->data().split("train").target(i);
    for (size_t t = 0; t < block.size(); ++t) {
      const bool begins = t == 0 || block[t - 1] == 2;
      if (begins) {
        lengths.push_back(0);
        lines.push_back(i);
      }
      ++lengths.back();
      input.push_back(begins ? 1 : block[t - 1]);
      labels.push_back(block[t]);
    }
    EXPECT_EQ(train->cost(i).target, std::ssize(block));
  }
  EXPECT_GT(lengths.size(), 3);  // more sequences than blocks
  const Batch batch = train->batch(std::vector<int64_t>{0, 3, 4});
  EXPECT_EQ(batch.target_layout, Ragged(lengths));
  EXPECT_EQ(batch.target_input, input);
  EXPECT_EQ(batch.labels, labels);
  EXPECT_EQ(batch.examples, lines);  // one for each sequence
}

TEST_F(Tasks, PackedSentencesAreOneSequenceOrApart) {
  const DataDirectory data = text_data(0);
  const Split& split = data.split("train");
  const auto alone = make_task({}, data, "decoder")->dataset("train");
  const int64_t tokens = 3 * alone->cost(0).target + 1;
  for (const bool apart : {false, true}) {
    TaskConfig config;
    Config::from_string(fmt::format("[task.language-modeling]\npack = {}\napart = {}\n", tokens, apart), "test")
        .read("task", config);
    const auto task = make_task(config, data, "decoder");
    const auto packed = task->dataset("train");
    int64_t sentence = 0;
    for (int64_t i = 0; i < packed->size(); ++i) {
      const Batch batch = packed->batch(std::vector<int64_t>{i});
      EXPECT_EQ(packed->cost(i).target, std::ssize(batch.labels));
      EXPECT_LE(std::ssize(batch.labels), tokens);
      Ids labels;
      std::vector<int64_t> lengths;
      while (std::ssize(labels) < std::ssize(batch.labels)) {
        const auto ids = split.target(sentence++);
        labels.insert(labels.end(), ids.begin(), ids.end());
        labels.push_back(2);
        lengths.push_back(std::ssize(ids) + 1);
      }
      EXPECT_EQ(batch.labels, labels);
      EXPECT_EQ(batch.target_layout, apart ? Ragged(lengths) : Ragged({std::ssize(labels)}));
      if (i + 1 < packed->size()) {  // the next sentence would not have fit
        EXPECT_GT(std::ssize(batch.labels) + std::ssize(split.target(sentence)) + 1, tokens);
      }
    }
    EXPECT_EQ(sentence, split.size());
    // Apart, sentences have the same loss as alone.
    ModelConfig small_config = test::small_learner("decoder");
    task->complete(small_config);
    const auto model = make_model(small_config, at::kDouble);
    model->initialize(1);
    const auto nll = [&](const Dataset& set) { return evaluate(*task, *model, set, 200, 0, {}).nll; };
    EXPECT_EQ(std::abs(nll(*packed) / nll(*alone) - 1) < 1e-12, apart);
  }
  TaskConfig config;
  EXPECT_THROW(Config::from_string("[task.language-modeling]\npack = -1\n", "test").read("task", config), Error);
}

// Howard & Ruder 2018: a second language model reads the text backward.
TEST_F(Tasks, ABackwardModelReadsFromTheEnd) {
  const auto backward = [](const DataDirectory& data, const std::string& more) {
    TaskConfig config;
    Config::from_string("[task.language-modeling]\ndirection = \"backward\"\n" + more, "test").read("task", config);
    return make_task(config, data, "decoder");
  };
  const auto reversed = [](auto ids) {
    return Ids(std::make_reverse_iterator(ids.end()), std::make_reverse_iterator(ids.begin()));
  };
  const DataDirectory sentences = text_data(0);
  for (const std::string more : {"", "pack = 25\n", "pack = 25\napart = true\n"}) {
    const auto task = backward(sentences, more);
    const auto set = task->dataset("train");
    int64_t sentence = 0;
    for (int64_t i = 0; i < set->size(); ++i) {
      const Batch batch = set->batch(std::vector<int64_t>{i});
      EXPECT_EQ(set->cost(i).target, std::ssize(batch.labels));
      // The lines of the example from the last to the first, each from its end; apart, from the first to the last.
      Ids labels;
      while (std::ssize(labels) < std::ssize(batch.labels)) {
        Ids line = reversed(sentences.split("train").target(sentence++));
        line.push_back(2);
        labels.insert(more.find("apart") == std::string::npos ? labels.begin() : labels.end(), line.begin(),
                      line.end());
      }
      EXPECT_EQ(batch.labels, labels);
      for (size_t t = 0; t + 1 < labels.size(); ++t) {
        const bool begins = more.find("apart") != std::string::npos && labels[t] == 2;
        EXPECT_EQ(batch.target_input[t + 1], begins ? 1 : labels[t]);
      }
    }
  }
  const DataDirectory blocks = text_data(7);
  const auto set = backward(blocks, "")->dataset("train");
  for (int64_t i = 0; i < set->size(); ++i) {
    const auto ids = blocks.split("train").target(i);
    const bool ends = ids.back() == 2;
    Ids expected = reversed(ends ? ids.first(ids.size() - 1) : ids);
    if (ends) expected.push_back(2);
    EXPECT_EQ(set->batch(std::vector<int64_t>{i}).labels, expected);
  }
  TaskConfig sideways;
  const Config wrong = Config::from_string("[task.language-modeling]\ndirection = \"sideways\"\n", "test");
  EXPECT_THROW(wrong.read("task", sideways), Error);
}

TEST_F(Tasks, BlocksAreNotPacked) {
  TaskConfig config;
  Config::from_string("[task.language-modeling]\npack = 10\n", "test").read("task", config);
  const auto task = make_task(config, text_data(8), "decoder");
  EXPECT_THROW((void)task->dataset("train"), Error);
}

/// Σ weight·(−log p(label)) by log-softmax.
double nll_by_formula(Model& model, const Batch& batch) {
  const at::NoGradGuard no_graph;
  ForwardContext context;
  const Tensor log_p = at::log_softmax(model.logits(model.states(batch, context)), 1);
  double sum = 0;
  for (size_t i = 0; i < batch.labels.size(); ++i) {
    const double weight = batch.weights.empty() ? 1.0 : batch.weights[i];
    sum -= weight * log_p[static_cast<int64_t>(i)][batch.labels[i]].item<double>();
  }
  return sum;
}

TEST_F(Tasks, TheLossIsTheWeightedMeanOfTheLabels) {
  for (const bool classifier : {true, false}) {
    const auto task = classifier ? make_task({}, labeled_data(), "encoder") : make_task({}, text_data(5), "decoder");
    ModelConfig config = test::small_learner(classifier ? "encoder" : "decoder");
    task->complete(config);
    const auto model = make_model(config, at::kDouble);
    model->initialize(3);
    Batch batch = task->dataset("train")->batch(std::vector<int64_t>{0, 1, 2});
    for (size_t i = 0; i < batch.labels.size(); ++i) batch.weights.push_back(0.25 * static_cast<double>(i % 3));
    const double expected = nll_by_formula(*model, batch) / batch.weight();
    for (const bool twice : {false, true}) {
      ForwardContext context;
      LossOptions options;
      options.twice_differentiable = twice;
      const Loss loss = task->loss(*model, batch, options, context);
      EXPECT_NEAR(loss.value.item<double>(), expected, 1e-12) << task->name();
      EXPECT_NEAR(loss.nll, expected * batch.weight(), 1e-12);
      EXPECT_EQ(loss.weight, batch.weight());
    }
  }
}

TEST_F(Tasks, LastTokenLossIsACaseOfWeights) {
  // Only the last position of each sequence counts: the loss equals that of a batch with no other label.
  const auto task = make_task({}, text_data(5), "decoder");
  ModelConfig config = test::small_learner("decoder");
  task->complete(config);
  const auto model = make_model(config, at::kDouble);
  model->initialize(3);
  Batch batch = task->dataset("train")->batch(std::vector<int64_t>{0, 1});
  batch.weights = {0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
  ForwardContext context;
  const Tensor states = model->states(batch, context);
  const Tensor log_p = at::log_softmax(model->logits(states), 1);
  const double expected = -(log_p[4][batch.labels[4]] + log_p[9][batch.labels[9]]).item<double>() / 2;
  EXPECT_NEAR(task->loss(*model, batch, {}, context).value.item<double>(), expected, 1e-12);
}

TEST_F(Tasks, AccuracyAndF1CountWhatIsPredicted) {
  const auto task = make_task({}, labeled_data(), "encoder");
  ModelConfig config = test::small_learner("encoder");
  task->complete(config);
  const auto model = make_model(config, at::kDouble);
  model->initialize(5);
  const auto valid = task->dataset("valid");
  const Metrics metrics = task->metrics(evaluate(*task, *model, *valid, 64, 0, {}));
  std::vector<int64_t> all(static_cast<size_t>(valid->size()));
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  const Batch batch = valid->batch(all);
  ForwardContext context;
  const Tensor logits = model->logits(model->states(batch, context));
  double right = 0;
  double hits[2] = {}, predicted[2] = {}, present[2] = {};
  for (size_t i = 0; i < all.size(); ++i) {
    const auto row = static_cast<int64_t>(i);
    const int64_t best = logits[row][1].item<double>() > logits[row][0].item<double>() ? 1 : 0;
    right += best == batch.labels[i] ? 1 : 0;
    hits[best] += best == batch.labels[i] ? 1 : 0;
    ++predicted[best];
    ++present[batch.labels[i]];
  }
  EXPECT_DOUBLE_EQ(*metrics.get("accuracy"), right / static_cast<double>(all.size()));
  const double f1 = (2 * hits[0] / (predicted[0] + present[0]) + 2 * hits[1] / (predicted[1] + present[1])) / 2;
  EXPECT_DOUBLE_EQ(*metrics.get("f1"), f1);
  EXPECT_NEAR(*metrics.get("nll"), nll_by_formula(*model, batch) / static_cast<double>(all.size()), 1e-12);
}

TrainResult trained_to_classify(const Task& task, const ModelConfig& config) {
  const auto model = make_model(config);
  model->initialize(1);
  TrainConfig training;
  training.steps = 150;
  training.batch_tokens = 128;
  training.learning_rate = 5e-3;
  training.warm_up = 10;
  return train(*model, training, task);
}

TEST_F(Tasks, AClassifierLearnsItsLabels) {
  const auto task = make_task({}, labeled_data(), "encoder");
  ModelConfig config = test::small_learner("encoder");
  task->complete(config);
  const TrainResult result = trained_to_classify(*task, config);
  EXPECT_EQ(result.outcome, RunOutcome::finished);
  EXPECT_GT(*result.metrics.get("accuracy"), 0.95);
}

TEST_F(Tasks, ADecoderClassifiesFromItsLastState) {
  const auto task = make_task({}, labeled_data(), "decoder");
  ModelConfig config = test::small_learner("decoder");
  config.pooling = "first";
  EXPECT_THROW(task->complete(config), Error);
  config.pooling = "last";
  task->complete(config);
  EXPECT_EQ(config.labels, 2);
  EXPECT_EQ(config.target_vocabulary, task->data().source_vocabulary());
  const auto train_set = task->dataset("train");
  const auto encoder_set = make_task({}, task->data(), "encoder")->dataset("train");
  const std::vector<int64_t> examples = {3, 0, 9};
  const Batch batch = train_set->batch(examples), source = encoder_set->batch(examples);
  EXPECT_EQ(batch.target_input, source.source);
  EXPECT_EQ(batch.target_layout, source.source_layout);
  EXPECT_EQ(batch.labels, source.labels);
  EXPECT_TRUE(batch.source.empty() && batch.segments.empty());
  EXPECT_EQ(train_set->cost(3).target, encoder_set->cost(3).source);
  {
    const auto model = make_model(config, at::kDouble);
    model->initialize(3);
    EXPECT_EQ(model->generates(), nullptr);
    ASSERT_NE(model->classifies(), nullptr);
    const at::NoGradGuard no_graph;
    ForwardContext context;
    const Tensor all = model->embeds()->hidden(batch.target_input, {}, batch.target_layout, context);
    const Tensor logits = model->classifies()->class_logits(batch);
    const Parameters& parameters = model->parameters();
    for (int64_t s = 0; s < 3; ++s) {
      const Tensor last = all[batch.target_layout.begin(s + 1) - 1];
      const Tensor expected = at::mv(parameters.at("output.weight").value, last) + parameters.at("output.bias").value;
      EXPECT_LT((logits[s] - expected).abs().max().item<double>(), 1e-12);
    }
  }
  const TrainResult result = trained_to_classify(*task, config);
  EXPECT_GT(*result.metrics.get("accuracy"), 0.9);
  EXPECT_LT(*result.metrics.get("accuracy_low"), *result.metrics.get("accuracy"));
  EXPECT_LE(*result.metrics.get("mcc_low"), *result.metrics.get("mcc"));
}

TEST_F(Tasks, BleuIsThatOfTheSplitTranslated) {
  test::make_copy_task(folder_ / "pairs");
  const DataDirectory data = DataDirectory::open(folder_ / "pairs");
  const auto task = make_task({}, data, "encoder-decoder");
  ModelConfig config = test::small_learner("encoder-decoder");
  task->complete(config);
  const auto model = make_model(config);
  model->initialize(4);
  const std::vector<std::string> found =
      translate(translator_of(*model), data.source_tokenizer(), data.target_tokenizer(), data.raw_source("valid"), {});
  EXPECT_EQ(task->score(*model, "valid").get("bleu"), corpus_bleu(found, {data.raw_target("valid")}).score);
  EXPECT_THROW((void)task->score(*model, "test"), Error);
  TaskConfig silent;
  Config::from_string("[task.translation]\nbeam = 0\n", "test").read("task", silent);
  EXPECT_TRUE(make_task(silent, data, "encoder-decoder")->score(*model, "valid").empty());
}

TEST_F(Tasks, PerplexityIsTheExponentialOfTheLoss) {
  const auto task = make_task({}, text_data(0), "decoder");
  ModelConfig config = test::small_learner("decoder");
  task->complete(config);
  const auto model = make_model(config, at::kDouble);
  model->initialize(2);
  const auto valid = task->dataset("valid");
  const Batch batch = valid->batch(std::vector<int64_t>{0, 1});
  const Metrics metrics = task->metrics(evaluate(*task, *model, *valid, 64, 0, {}));
  const double nll = nll_by_formula(*model, batch) / static_cast<double>(batch.labels.size());
  EXPECT_NEAR(*metrics.get("perplexity"), std::exp(nll), 1e-10);
  EXPECT_EQ(batch.labels.back(), 2);  // a sentence ends
}

}  // namespace
}  // namespace plumb
