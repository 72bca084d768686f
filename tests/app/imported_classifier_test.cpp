// Classifiers of Hugging Face, imported or as they are: labels have the names of the model's config.json, whatever the
// order of the data's.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "plumb/base/json.h"
#include "plumb/base/text.h"
#include "plumb/data/sequences.h"
#include "plumb/interop/import.h"
#include "plumb/io/safetensors.h"
#include "plumb/model/capabilities.h"
#include "plumb/model/model.h"
#include "plumb/text/tokenizer.h"
#include "support/gradcheck.h"
#include "support/shared_folder.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

using test::Finished;
using test::run_plumb;

/// The labels of the outputs 0, 1 and 2; in the data, they are sorted.
const std::vector<std::string> kLabelNames = {"positive", "neutral", "negative"};

/// The encoder of tests/golden/sentence_encoder with a random output layer for three labels.
class ImportedClassifierVerb : public test::SharedFolder<ImportedClassifierVerb> {
 protected:
  static void SetUpTestSuite() {
    folder_.emplace();
    make_model("model", {0, 1, 2});
    ASSERT_EQ(run_plumb({"import", path("model"), "--out", path("run"), "-q"}).status, 0);
    std::string labeled, texts;
    for (int i = 0; i < 24; ++i) {
      const std::string text = fmt::format("the {} number {} {} a port", i % 2 == 0 ? "small ship" : "old crew", i * i,
                                           i % 3 == 0 ? "leaves" : "sails to");
      labeled += fmt::format("{}\t{}\n", kLabelNames[static_cast<size_t>(i % 3)], text);
      texts += text + '\n';
    }
    write_file_atomic(path("labeled.tsv"), labeled);
    write_file_atomic(path("texts.txt"), texts);
    prepare("data", "labeled.tsv");
  }

  /// Writes a model whose output i is output order[i] of the original, with its name.
  static void make_model(const std::string& name, const std::vector<int64_t>& order) {
    const fs::path folder = path(name), original = test::source_directory() / "tests/golden/sentence_encoder/model";
    fs::create_directory(folder);
    for (const char* file : {"config.json", "tokenizer.json", "tokenizer_config.json"})
      fs::copy_file(original / file, folder / file);
    NamedTensors tensors = load_safetensors(original / "model.safetensors");
    const Tensor rows = at::tensor(at::ArrayRef<int64_t>(order), at::kLong);
    const auto random = [&](std::initializer_list<int64_t> shape, uint64_t seed) {
      return (testing::random_tensor(shape, seed) * 2).to(at::kFloat).index_select(0, rows);
    };
    tensors.emplace_back("classifier.weight", random({3, 12}, 1));
    tensors.emplace_back("classifier.bias", random({3}, 2));
    save_safetensors(folder / "model.safetensors", tensors);
    Json config = read_json(folder / "config.json");
    config["architectures"] = Json::array({"BertForSequenceClassification"});
    for (size_t i = 0; i < order.size(); ++i)
      config["id2label"][std::to_string(i)] = kLabelNames[static_cast<size_t>(order[i])];
    write_json(folder / "config.json", config);
  }

  static void prepare(const std::string& name, const std::string& file) {
    test::succeeded(run_plumb({"data", "labels", "--train", path(file), "--valid", path(file), "--tokenizer-from",
                               path("model"), "--out", path(name), "-q"}));
  }

  /// `plumb classify` of the texts, or of another file.
  static Finished classify(const std::string& model, const std::string& options = "",
                           const std::string& input = "texts.txt") {
    return test::run_plumb_on(fmt::format("classify '{}' {}", path(model), options), path(input));
  }

  static Json classified(const std::string& model, const std::string& options = "",
                         const std::string& input = "texts.txt") {
    const Finished finished = test::succeeded(classify(model, options + " -q --json -", input));
    return Json::parse(finished.output);
  }

  /// The probabilities of an example by the names of the labels.
  static std::map<std::string, double> by_name(const Json& document, size_t example) {
    std::map<std::string, double> found;
    for (size_t i = 0; i < document["labels"].size(); ++i)
      found[document["labels"][i]] = document["examples"][example]["probabilities"][i];
    return found;
  }
};

/// From the model's logits: exp(z)/Σ exp(z), the name of output i being id2label[i].
TEST_F(ImportedClassifierVerb, AProbabilityHasTheNameOfItsOutput) {
  const ImportedModel imported = read_model_folder(path("model"));
  const std::unique_ptr<Model> model = plumb::make_model(imported.config);
  load_parameters(model->parameters(), imported.tensors, path("model"));
  const Tokenizer tokenizer = Tokenizer::from_file(path("model"));
  const std::vector<std::string> texts = read_lines(path("texts.txt"));
  Batch batch;
  for (size_t i = 0; i < texts.size(); ++i)
    append_labeled(batch, tokenizer.encode(texts[i]), {}, tokenizer.specials(), 0, static_cast<int64_t>(i));
  const Tensor logits = model->classifies()->class_logits(batch).to(at::kDouble);
  for (const char* name : {"model", "run"}) {
    for (const std::string& options : {std::string(), "--data " + path("data")}) {
      SCOPED_TRACE(name + (' ' + options));
      const Json found = classified(name, options);
      for (size_t i = 0; i < texts.size(); ++i) {
        double sum = 0;
        const auto weight = [&](int64_t k) { return std::exp(logits[static_cast<int64_t>(i)][k].item<double>()); };
        for (int64_t k = 0; k < 3; ++k) sum += weight(k);
        const auto probabilities = by_name(found, i);
        for (int64_t k = 0; k < 3; ++k)
          EXPECT_NEAR(probabilities.at(kLabelNames[static_cast<size_t>(k)]), weight(k) / sum, 1e-6);
        const auto best = static_cast<size_t>(logits[static_cast<int64_t>(i)].argmax().item<int64_t>());
        EXPECT_EQ(found["examples"][i]["label"], kLabelNames[best]);
      }
    }
  }
}

TEST_F(ImportedClassifierVerb, MeasuresASplitByName) {
  const Json found = classified("model");
  const std::vector<std::string> lines = read_lines(path("labeled.tsv"));
  int right = 0;
  for (size_t i = 0; i < lines.size(); ++i)
    right += lines[i].starts_with(found["examples"][i]["label"].get<std::string>() + '\t');
  ASSERT_GT(right, 0);
  ASSERT_LT(right, 24);
  for (const char* name : {"model", "run"}) {
    const Json split = classified(name, "--split valid --data " + path("data"));
    EXPECT_DOUBLE_EQ(split["metrics"]["accuracy"].get<double>(), right / 24.0) << name;
  }
}

/// Outputs that change places together with their names are the same model to everybody who reads names.
TEST_F(ImportedClassifierVerb, TheOrderOfItsOutputsMakesNoDifference) {
  const Json expected = classified("model");
  const auto loss_of = [&](const std::string& model) {
    const Finished probed = run_plumb(
        {"probe", path(model), "--data", path("data"), "--dtype", "float64", "--json", path("probe.json"), "-q"});
    EXPECT_EQ(probed.status, 0) << probed.errors;
    return read_json(path("probe.json"))["loss"].get<double>();
  };
  const double loss = loss_of("model");
  double by_hand = 0;  // the data's own labels have these probabilities
  const std::vector<std::string> lines = read_lines(path("labeled.tsv"));
  for (size_t i = 0; i < lines.size(); ++i)
    by_hand -= std::log(by_name(expected, i).at(split(lines[i], '\t')[0])) / static_cast<double>(lines.size());
  EXPECT_NEAR(loss, by_hand, 1e-5);
  std::vector<int64_t> order = {0, 1, 2};
  while (std::next_permutation(order.begin(), order.end())) {
    const std::string name = fmt::format("model-{}{}{}", order[0], order[1], order[2]);
    SCOPED_TRACE(name);
    make_model(name, order);
    for (const std::string& options : {std::string(), "--data " + path("data"), path("model")}) {
      const Json found = classified(name, options);
      for (size_t i = 0; i < 24; ++i) {
        EXPECT_EQ(found["examples"][i]["label"], expected["examples"][i]["label"]) << options;
        for (const auto& [label, probability] : by_name(expected, i))
          EXPECT_NEAR(by_name(found, i).at(label), probability, 1e-6) << options;
      }
    }
    EXPECT_NEAR(loss_of(name), loss, 1e-9);
  }
}

TEST_F(ImportedClassifierVerb, OtherLabelsAreRefused) {
  std::string two, others;
  for (const std::string& line : read_lines(path("labeled.tsv"))) {
    if (!line.starts_with("neutral")) two += line + '\n';
    others += line.starts_with("neutral") ? "mixed" + line.substr(7) + '\n' : line + '\n';
  }
  write_file_atomic(path("two.tsv"), two);
  write_file_atomic(path("others.tsv"), others);
  for (const std::string name : {"two", "others"}) {
    prepare(name + "-data", name + ".tsv");
    for (const Finished& refused :
         {classify("model", "-q --split valid --data " + path(name + "-data")),
          classify("run", "-q --data " + path(name + "-data")),
          run_plumb({"probe", path("model"), "--set", "model.labels=0", "--data", path(name + "-data"), "-q"})}) {
      EXPECT_EQ(refused.status, 1);
      EXPECT_CONTAINS(refused.errors, "but those of the model are positive, neutral, negative\nhint: ");
    }
  }
  const Finished split = classify("run", "-q --split valid");
  EXPECT_EQ(split.status, 2);
  EXPECT_CONTAINS(split.errors, "--split: no data directory given");
}

/// Without data, the limit is what the model has positions for: 48, of which [CLS] and one or two [SEP] take some.
TEST_F(ImportedClassifierVerb, LongTextsAreTruncatedToItsPositions) {
  std::string words = "ship";
  for (int i = 0; i < 100; ++i) words += " ship";
  write_file_atomic(path("long.txt"), words + '\n');
  const Finished one = test::succeeded(classify("model", "", "long.txt"));
  EXPECT_CONTAINS(one.errors, "1 of 1 texts were truncated to 46 tokens");
  write_file_atomic(path("long-pair.txt"), words + '\t' + words + '\n');
  const Finished pair = test::succeeded(classify("model", "--pair", "long-pair.txt"));
  EXPECT_CONTAINS(pair.errors, "1 of 1 texts were truncated to 45 tokens");
}

/// A run that begins with the folder equals one that begins with its import.
TEST_F(ImportedClassifierVerb, AFolderIsFineTuned) {
  for (const std::string from : {"model", "run"}) {
    const Finished trained =
        run_plumb({"finetune", "--from", path(from), "--data", path("data"), "--out", path("from-" + from), "--set",
                   "model.pooler=true", "--set", "train.batch_tokens=128"});
    ASSERT_EQ(trained.status, 0) << trained.errors;
    EXPECT_LACKS(trained.errors, "`plumb export` cannot");
  }
  EXPECT_EQ(read_file(path("from-model/best/model.safetensors")), read_file(path("from-run/best/model.safetensors")));
  const Finished again =
      run_plumb({"finetune", "--from", path("model"), "--data", path("data"), "--out", path("from-model"), "--set",
                 "model.pooler=true", "--set", "train.batch_tokens=128"});
  EXPECT_CONTAINS(again.errors, "already finished");
  // And back to a folder, whose labels have the names of the data.
  ASSERT_EQ(run_plumb({"export", path("from-model"), path("exported"), "-q"}).status, 0);
  const Json expected = classified("from-model"), found = classified("exported");
  EXPECT_EQ(found["labels"], Json({"negative", "neutral", "positive"}));
  for (size_t i = 0; i < 24; ++i)
    for (const auto& [label, probability] : by_name(expected, i))
      EXPECT_NEAR(by_name(found, i).at(label), probability, 1e-6);

  // Another vocabulary, and what cannot be exported, are named before training.
  ASSERT_EQ(run_plumb({"data", "labels", "--train", path("labeled.tsv"), "--valid", path("labeled.tsv"), "--vocabulary",
                       "60", "--out", path("other"), "-q"})
                .status,
            0);
  const Finished refused =
      run_plumb({"finetune", "--from", path("model"), "--data", path("other"), "--out", path("none"), "-q"});
  EXPECT_EQ(refused.status, 1);
  EXPECT_CONTAINS(refused.errors, "its vocabulary is not the one");
  EXPECT_CONTAINS(classify("model", "-q --data " + path("other")).errors, "its vocabulary is not the one");
  const Finished mean = run_plumb({"finetune", "--from", path("model"), "--data", path("data"), "--out", path("mean"),
                                   "--set", "model.pooling=mean", "--set", "train.steps=1"});
  ASSERT_EQ(mean.status, 0) << mean.errors;
  const size_t said = mean.errors.find("`plumb export` cannot write this classifier: ");
  EXPECT_LT(said, mean.errors.find("weight decay")) << mean.errors;
  EXPECT_NE(mean.errors.find("it can with --set model.pooling=first --set model.pooler=true", said), std::string::npos)
      << mean.errors;
  EXPECT_EQ(run_plumb({"export", path("mean"), path("none"), "-q"}).status, 1);
}

TEST_F(ImportedClassifierVerb, NoWeightsThatAreNoNumbers) {
  fs::copy(path("model"), path("broken"));
  NamedTensors tensors = load_safetensors(path("broken/model.safetensors"));
  const auto set_last = [&](double value) {
    tensors.back().second = tensors.back().second.clone();
    tensors.back().second.view({-1})[0] = value;
    save_safetensors(path("broken/model.safetensors"), tensors);
  };
  set_last(std::nan(""));
  for (const Finished& refused :
       {run_plumb({"import", path("broken"), "--out", path("none"), "-q"}), classify("broken", "-q")}) {
    EXPECT_EQ(refused.status, 1);
    EXPECT_CONTAINS(refused.errors, "contains NaN\nhint: ");
  }
  set_last(-std::numeric_limits<double>::infinity());
  const Finished warned = test::succeeded(run_plumb({"import", path("broken"), "--out", path("infinite"), "-q"}));
  EXPECT_CONTAINS(warned.errors, "contains infinite weights");
}

}  // namespace
}  // namespace plumb
