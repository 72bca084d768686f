// Hugging Face models, read from disk, compared with `transformers` on the same weights: logits and hidden states in
// float64 and float32, and greedy continuations; see tests/golden/README.md for the origin of the values.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>

#include "golden_folder.h"
#include "plumb/base/json.h"
#include "plumb/interop/import.h"
#include "plumb/model/capabilities.h"
#include "plumb/model/model.h"
#include "plumb/run/directory.h"

namespace plumb {
namespace {

using test::expect_logits;
using test::folder_of;
using test::IdRows;
using test::matrix_of;
using test::model_in;

class ImportedLanguageModel : public ::testing::TestWithParam<std::string> {
 protected:
  ImportedLanguageModel() : values_(read_json(folder_of(GetParam()) / "values.json")) {}
  Json values_;
};

TEST_P(ImportedLanguageModel, Logits) {
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    const std::unique_ptr<Model> model = model_in(folder_of(GetParam()), type);
    Embeds* embeds = model->embeds();
    ASSERT_NE(embeds, nullptr);
    std::vector<int64_t> tokens;
    Ragged layout;
    for (const auto& row : values_["tokens"].get<IdRows>()) {
      tokens.insert(tokens.end(), row.begin(), row.end());
      layout.append(std::ssize(row));
    }
    const at::NoGradGuard no_graph;
    ForwardContext context;
    expect_logits(model->logits(embeds->hidden(tokens, {}, layout, context)), matrix_of(values_["logits"]));
  }
}

TEST_P(ImportedLanguageModel, GreedyContinuation) {
  const std::unique_ptr<Model> model = model_in(folder_of(GetParam()), at::kDouble);
  Generates* generates = model->generates();
  ASSERT_NE(generates, nullptr);
  const auto prompt = values_["tokens"].get<IdRows>()[0];
  const auto expected = values_["greedy"].get<std::vector<int64_t>>();
  DecoderState state = generates->start(1);
  Ragged layout;
  layout.append(std::ssize(prompt));
  Tensor hidden = generates->read(state, prompt, layout).narrow(0, std::ssize(prompt) - 1, 1);
  std::vector<int64_t> found;
  while (found.size() < expected.size()) {
    found.push_back(generates->logits(hidden).argmax().item<int64_t>());
    hidden = generates->step(state, {found.back()});
  }
  EXPECT_EQ(found, expected);
}

/// The imported run has the same model.
TEST_P(ImportedLanguageModel, AsARun) {
  const test::TemporaryDirectory scratch;
  const std::filesystem::path out = scratch / "run";
  const ImportedModel imported = import_model(folder_of(GetParam()), out);
  EXPECT_FALSE(imported.tokenizer);
  EXPECT_EQ(load_run_config(out).model, imported.config);
  const RunAndCheckpoint place = locate_run(out.string());
  EXPECT_EQ(place.run, place.checkpoint);
  const std::unique_ptr<Model> loaded = load_model(out), direct = model_in(folder_of(GetParam()), at::kFloat);
  EXPECT_TRUE(at::equal(loaded->parameters().flat(), direct->parameters().flat()));
  EXPECT_EQ(loaded->parameters().count(), imported.parameters);
  import_model(folder_of(GetParam()), out);  // again, replacing the earlier one
}

INSTANTIATE_TEST_SUITE_P(Families, ImportedLanguageModel,
                         ::testing::ValuesIn(test::folders_with({"greedy"}, {"sources"})), test::name_of_test);

class ImportedTranslator : public ::testing::TestWithParam<std::string> {
 protected:
  ImportedTranslator() : values_(read_json(folder_of(GetParam()) / "values.json")) {}
  Json values_;
};

void append_rows(const Json& rows, std::vector<int64_t>& tokens, Ragged& layout) {
  for (const auto& row : rows.get<IdRows>()) {
    tokens.insert(tokens.end(), row.begin(), row.end());
    layout.append(std::ssize(row));
  }
}

TEST_P(ImportedTranslator, Logits) {
  Batch batch;
  append_rows(values_["sources"], batch.source, batch.source_layout);
  append_rows(values_["tokens"], batch.target_input, batch.target_layout);
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    const std::unique_ptr<Model> model = model_in(folder_of(GetParam()), type);
    const at::NoGradGuard no_graph;
    ForwardContext context;
    expect_logits(model->logits(model->states(batch, context)), matrix_of(values_["logits"]));
  }
}

TEST_P(ImportedTranslator, GreedyTranslation) {
  const std::unique_ptr<Model> model = model_in(folder_of(GetParam()), at::kDouble);
  Translates* translates = model->translates();
  ASSERT_NE(translates, nullptr);
  const auto source = values_["sources"].get<IdRows>()[0];
  Ragged layout;
  layout.append(std::ssize(source));
  DecoderState state = translates->start(source, layout);
  Tensor hidden = translates->step(state, {values_["start"].get<int64_t>()});
  const auto expected = values_["greedy"].get<std::vector<int64_t>>();
  std::vector<int64_t> found;
  while (found.size() < expected.size()) {
    found.push_back(translates->logits(hidden).argmax().item<int64_t>());
    hidden = translates->step(state, {found.back()});
  }
  EXPECT_EQ(found, expected);
}

INSTANTIATE_TEST_SUITE_P(Families, ImportedTranslator, ::testing::ValuesIn(test::folders_with({"sources"}, {})),
                         test::name_of_test);

class ImportedClassifier : public ::testing::TestWithParam<std::string> {};

TEST_P(ImportedClassifier, Logits) {
  const Json values = read_json(folder_of(GetParam()) / "values.json");
  Batch batch;
  for (const auto& row : values["tokens"].get<IdRows>()) {
    batch.source.insert(batch.source.end(), row.begin(), row.end());
    batch.source_layout.append(std::ssize(row));
    batch.labels.push_back(0);
  }
  for (const auto& row : values["segments"].get<IdRows>())
    batch.segments.insert(batch.segments.end(), row.begin(), row.end());
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    const std::unique_ptr<Model> model = model_in(folder_of(GetParam()), type);
    Classifies* classifies = model->classifies();
    ASSERT_NE(classifies, nullptr);
    expect_logits(classifies->class_logits(batch), matrix_of(values["logits"]));
  }
}

INSTANTIATE_TEST_SUITE_P(Families, ImportedClassifier,
                         ::testing::ValuesIn(test::folders_with({"segments", "logits"}, {"hidden"})),
                         test::name_of_test);

// RoBERTa has a single segment, which both sentences of a pair share.
TEST(ImportedRoberta, ReadsPairs) {
  const std::unique_ptr<Model> model = model_in(folder_of("roberta"), at::kDouble);
  ASSERT_EQ(model->config().segments, 1);
  Batch pair;
  pair.source = {0, 5, 6, 2, 7, 2};
  pair.source_layout.append(6);
  pair.labels = {0};
  const Tensor expected = model->classifies()->class_logits(pair);
  pair.segments = {0, 0, 0, 0, 1, 1};
  EXPECT_TRUE(at::equal(model->classifies()->class_logits(pair), expected));
}

class ImportedEncoder : public ::testing::TestWithParam<std::string> {};

/// The states of every token, and the logits of a masked language model.
TEST_P(ImportedEncoder, States) {
  const Json values = read_json(folder_of(GetParam()) / "values.json");
  const bool segmented = read_model_folder(folder_of(GetParam())).config.segments > 0;
  Batch batch;
  for (const auto& row : values["tokens"].get<IdRows>()) {
    batch.source.insert(batch.source.end(), row.begin(), row.end());
    batch.source_layout.append(std::ssize(row));
  }
  if (segmented) {
    for (const auto& row : values["segments"].get<IdRows>())
      batch.segments.insert(batch.segments.end(), row.begin(), row.end());
  }
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    const std::unique_ptr<Model> model = model_in(folder_of(GetParam()), type);
    const at::NoGradGuard no_graph;
    ForwardContext context;
    expect_logits(model->embeds()->hidden(batch.source, batch.segments, batch.source_layout, context),
                  matrix_of(values["hidden"]));
    if (values.contains("logits"))
      expect_logits(model->logits(model->states(batch, context)), matrix_of(values["logits"]));
  }
}

INSTANTIATE_TEST_SUITE_P(Families, ImportedEncoder,
                         ::testing::Values("bert_body", "bert_masked", "bert_pretraining", "roberta_body",
                                           "roberta_masked", "xlm_roberta_body", "distilbert_body",
                                           "distilbert_masked"),
                         [](const auto& info) { return info.param; });

TEST(ImportedEncoders, SayWhatIsLeftOut) {
  const auto left_out = [](const char* name) { return read_model_folder(folder_of(name)).left_out; };
  using Parts = std::vector<std::string>;
  EXPECT_EQ(left_out("bert_body"), Parts{"pooler"});
  EXPECT_EQ(left_out("bert_pretraining"), (Parts{"pooler", "next-sentence prediction"}));
  EXPECT_EQ(left_out("roberta_body"), Parts{});
  EXPECT_EQ(left_out("bert"), Parts{});
}

TEST(ImportedEncoders, AreMaskedLanguageModels) {
  const test::TemporaryDirectory scratch;
  import_model(folder_of("bert_pretraining"), scratch / "run");
  EXPECT_EQ(load_run_config(scratch / "run").task.name, "masked-language-modeling");
  const Json imported = read_json(scratch / "run" / "result.json")["imported"];
  EXPECT_EQ(imported["left_out"], Json({"pooler", "next-sentence prediction"}));
  EXPECT_FALSE(imported.contains("sentence_vectors"));
}

}  // namespace
}  // namespace plumb
