// Folders that Plumb exports for `transformers`: those of imported models match the folders that they came from, which
// `transformers` wrote. scripts/search/families.py loads exports with `transformers`.
#include "plumb/interop/export.h"
#include "plumb/base/input.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "golden_folder.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/json.h"
#include "plumb/interop/family.h"
#include "plumb/interop/fit.h"
#include "plumb/interop/import.h"
#include "plumb/io/safetensors.h"
#include "plumb/model/model.h"
#include "plumb/run/directory.h"
#include "support/errors.h"
#include "support/gradcheck.h"
#include "support/paths.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

using test::folder_of;

/// All tensors of a folder by name.
std::map<std::string, Tensor> tensors_in(const fs::path& folder) {
  std::map<std::string, Tensor> all;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".safetensors") continue;
    for (auto& [name, tensor] : load_safetensors(entry.path())) all.emplace(name, tensor);
  }
  return all;
}

void expect_same_tensors(const fs::path& found, const fs::path& expected) {
  const auto ours = tensors_in(found), theirs = tensors_in(expected);
  ASSERT_EQ(ours.size(), theirs.size());
  for (const auto& [name, tensor] : theirs) {
    ASSERT_EQ(ours.count(name), 1U) << name;
    EXPECT_EQ(ours.at(name).scalar_type(), tensor.scalar_type()) << name;
    EXPECT_TRUE(at::equal(ours.at(name), tensor)) << name;
  }
}

TEST(ExportedEncoders, SayWhatIsLeftOut) {
  const test::TemporaryDirectory scratch;
  for (const auto& [name, parts] :
       std::map<std::string, std::vector<std::string>>{{"bert_body", {"pooler"}}, {"roberta_body", {}}, {"bert", {}}}) {
    import_model(folder_of(name), scratch / name);
    EXPECT_EQ(export_model((scratch / name).string(), scratch / (name + "-again")).left_out, parts) << name;
  }
}

/// All tensors that texts use: not the pooler, which is left out, the position embeddings, some of which no text
/// reaches, or RoBERTa's second bias, which its model uses only if the output matrix is the embedding.
TEST(ExportedEncoders, ReturnWhatWasImported) {
  const test::TemporaryDirectory scratch;
  for (const std::string name : {"bert_masked", "roberta_masked", "distilbert_masked"}) {
    SCOPED_TRACE(name);
    const fs::path folder = scratch / (name + "-again");
    import_model(folder_of(name), scratch / name);
    export_model((scratch / name).string(), folder);
    const auto found = tensors_in(folder);
    for (const auto& [key, tensor] : tensors_in(folder_of(name))) {
      if (key.find("pooler") != std::string::npos) continue;
      ASSERT_EQ(found.count(key), 1U) << key;
      if (key.find("position_embeddings") != std::string::npos || key == "lm_head.bias") continue;
      EXPECT_TRUE(at::equal(found.at(key), tensor)) << key;
    }
  }
}

class ExportedFamily : public ::testing::TestWithParam<std::string> {
 protected:
  const test::TemporaryDirectory scratch_;
  const fs::path run_ = scratch_ / "run", folder_ = scratch_ / "folder";
};

TEST_P(ExportedFamily, ReturnsWhatWasImported) {
  import_model(folder_of(GetParam()), run_);
  const ExportedModel exported = export_model(run_.string(), folder_);
  const Json config = read_json(folder_of(GetParam()) / "config.json");
  EXPECT_EQ(exported.family, config["model_type"].get<std::string>());
  EXPECT_EQ(exported.model, config["architectures"][0].get<std::string>());
  EXPECT_EQ(read_json(folder_ / "config.json"), config);
  expect_same_tensors(folder_, folder_of(GetParam()));
  export_model(run_.string(), folder_);  // again, replacing the earlier one
}

/// A trained run has no config.json: the keys follow from its configuration.
TEST_P(ExportedFamily, WritesTheKeysOfTheConfiguration) {
  import_model(folder_of(GetParam()), run_);
  fs::remove(run_ / "config.json");
  export_model(run_.string(), folder_);
  expect_same_tensors(folder_, folder_of(GetParam()));
  const Json expected = read_json(folder_of(GetParam()) / "config.json"), found = read_json(folder_ / "config.json");
  size_t same = 0;
  for (const auto& [key, value] : found.items()) {
    if (!expected.contains(key) || value.is_null()) continue;
    if (key == "tie_word_embeddings" && GetParam() == "t5_1.1")
      continue;  // version 5 has scale_decoder_outputs instead
    EXPECT_EQ(value, expected[key]) << key;
    ++same;
  }
  EXPECT_GE(same, 10U);
  if (expected.contains("rope_parameters") && found.contains("rope_theta")) {
    const Json& rope = expected["rope_parameters"];
    EXPECT_EQ(found["rope_theta"], rope["rope_theta"]);
    if (found.contains("rope_scaling")) {
      for (const auto& [key, value] : found["rope_scaling"].items()) EXPECT_EQ(value, rope[key]) << key;
    }
    EXPECT_EQ(found.contains("rope_scaling"), rope["rope_type"] != "default");
  }
  EXPECT_TRUE(compute_the_same(read_model_folder(folder_).config, read_model_folder(folder_of(GetParam())).config));
}

/// The folders of language models, translators and classifiers whose families can be exported.
std::vector<std::string> exportable_folders() {
  std::vector<std::string> names = test::folders_with({"logits"}, {"hidden"});
  std::erase_if(names, [](const std::string& name) {
    return families().at(read_json(folder_of(name) / "config.json")["model_type"]).make.settings == nullptr;
  });
  return names;
}

INSTANTIATE_TEST_SUITE_P(Families, ExportedFamily, ::testing::ValuesIn(exportable_folders()), test::name_of_test);

TEST(ExportedTranslator, IsATaskOfTranslation) {
  for (const std::string& name : test::folders_with({"sources"}, {})) {
    const test::TemporaryDirectory scratch;
    import_model(folder_of(name), scratch / "run");
    EXPECT_EQ(load_run_config(scratch / "run").task.name, "translation");
  }
}

/// Trained encoders, which have no config.json, are exported as BERT's classes.
TEST(ExportedEncoders, AsTrained) {
  for (const auto& [name, model] : std::map<std::string, std::string>{{"bert_masked", "BertForMaskedLM"},
                                                                      {"bert_body", "BertModel"},
                                                                      {"roberta", "BertForSequenceClassification"}}) {
    SCOPED_TRACE(name);
    const test::TemporaryDirectory scratch;
    import_model(folder_of(name), scratch / "run");
    fs::remove(scratch / "run" / "config.json");
    EXPECT_EQ(export_model((scratch / "run").string(), scratch / "folder").model, model);
    EXPECT_TRUE(compute_the_same(load_run_config(scratch / "run").model, read_model_folder(scratch / "folder").config));
    import_model(scratch / "folder", scratch / "again");
    expect_same_tensors(locate_run((scratch / "again").string()).checkpoint,
                        locate_run((scratch / "run").string()).checkpoint);
  }
}

TEST(ExportedEncoders, AnOutputMatrixThatIsNoEmbeddingIsNamed) {
  const test::TemporaryDirectory scratch;
  import_model(folder_of("bert_body"), scratch / "run");
  fs::remove(scratch / "run" / "config.json");
  RunConfig config = load_run_config(scratch / "run");
  ASSERT_EQ(config.model.pooling, "none");
  config.model.share_embeddings = "none";
  write_file_atomic(scratch / "run" / "config.toml", to_toml(config));
  test::expect_error([&] { export_model((scratch / "run").string(), scratch / "folder"); },
                     "model.share_embeddings = \"none\"");
}

/// A trained run leaves the size of its heads to the model.
TEST(ExportedTranslator, HeadsOfTheDefaultSize) {
  const test::TemporaryDirectory scratch;
  import_model(folder_of("t5"), scratch / "run");
  fs::remove(scratch / "run" / "config.json");
  RunConfig config = load_run_config(scratch / "run");
  config.model.heads = 4;
  config.model.head_size = 0;
  const std::unique_ptr<Model> model = make_model(config.model);
  model->initialize(1);
  write_file_atomic(scratch / "run" / "config.toml", to_toml(config));
  save_safetensors(scratch / "run" / "model.safetensors", named_values(model->parameters()));
  export_model((scratch / "run").string(), scratch / "folder");
  EXPECT_EQ(read_json(scratch / "folder" / "config.json")["d_kv"], 4);
  for (const auto& [name, tensor] : read_model_folder(scratch / "folder").tensors) {
    const Tensor& own = model->parameters().at(name).value;
    EXPECT_LE((tensor - own).abs().max().item<double>(), 1e-6 * own.abs().max().item<double>()) << name;
  }
}

/// T5 has one embedding where Plumb's model without ties has two.
TEST(ExportedTranslator, WhatTheFamilySharesMustBeEqual) {
  const test::TemporaryDirectory scratch;
  import_model(folder_of("t5_1.1"), scratch / "run");
  const fs::path weights = locate_run((scratch / "run").string()).checkpoint / "model.safetensors";
  NamedTensors tensors = load_safetensors(weights);
  for (auto& [name, tensor] : tensors) {
    if (name == "tgt_embed.weight") tensor = tensor + 0.01;
  }
  save_safetensors(weights, tensors);
  test::expect_error([&] { export_model((scratch / "run").string(), scratch / "folder"); }, "differs from the matrix");
  EXPECT_FALSE(fs::exists(scratch / "folder"));
}

/// An imported run with changed settings.
class ChangedRun : public ::testing::Test {
 protected:
  ChangedRun() {
    import_model(folder_of("llama3"), run_);
    fs::remove(run_ / "config.json");
  }
  void expect_refused(const std::string& assignment, const std::string& part) {
    Config config = Config::from_file(run_ / "config.toml");
    config.set(assignment);
    const std::string stored = read_file(run_ / "config.toml");
    write_file_atomic(run_ / "config.toml", to_toml(read_run_config(config)));
    test::expect_error([&] { export_model(run_.string(), folder_); }, part);
    EXPECT_FALSE(fs::exists(folder_));
    write_file_atomic(run_ / "config.toml", stored);
  }

  const test::TemporaryDirectory scratch_;
  const fs::path run_ = scratch_ / "run", folder_ = scratch_ / "folder";
};

TEST_F(ChangedRun, WhatNoFamilyHasIsNamed) {
  expect_refused("model.residual=post-ln", R"(model.residual = "post-ln" instead of "pre-ln")");
  expect_refused("model.norm=scalenorm", R"(model.norm = "scalenorm" instead of "rmsnorm")");
  expect_refused("model.rotary.interleaved=true", "model.rotary.interleaved = true instead of false");
  expect_refused("model.embedding_factor=0", "model.embedding_factor = 4.0 instead of 1.0");
  expect_refused("model.attention=favor", R"(model.attention = "favor" instead of "softmax")");
  expect_refused("model.output_bias=true", "model.output_bias = true instead of false");
}

TEST_F(ChangedRun, SettingsOfTrainingMakeNoDifference) {
  Config config = Config::from_file(run_ / "config.toml");
  for (const char* assignment :
       {"model.dropout=0.3", "model.initialization=he", "model.encoder_layers=9", "model.max_positions=77"})
    config.set(assignment);
  write_file_atomic(run_ / "config.toml", to_toml(read_run_config(config)));
  EXPECT_EQ(export_model(run_.string(), folder_).model, "LlamaForCausalLM");
  expect_same_tensors(folder_, folder_of("llama3"));
}

TEST_F(ChangedRun, AdaptersAreMergedIntoTheirMatrices) {
  const std::string attention = "decoder.layers.0.self_attn", theirs = "model.layers.0.self_attn.v_proj.weight";
  const auto exact = tensors_in(folder_of("llama3"));
  const Tensor& value = exact.at(theirs);
  const Tensor a = testing::random_tensor({2, value.size(1)}, 1).to(value.scalar_type());
  const Tensor b = testing::random_tensor({value.size(0), 2}, 2).to(value.scalar_type());
  NamedTensors tensors = load_safetensors(run_ / "model.safetensors");
  tensors.emplace_back(attention + ".v_lora.a", a);
  tensors.emplace_back(attention + ".v_lora.b", b);
  save_safetensors(run_ / "model.safetensors", tensors);
  Config config = Config::from_file(run_ / "config.toml");
  config.set("model.lora.rank=2");
  config.set("model.lora.alpha=3");
  write_file_atomic(run_ / "config.toml", to_toml(read_run_config(config)));
  export_model(run_.string(), folder_);
  const auto merged = tensors_in(folder_);
  ASSERT_EQ(merged.size(), exact.size());
  for (const auto& [name, tensor] : exact) {
    const Tensor expected = name == theirs ? tensor + 1.5 * at::mm(b, a) : tensor;
    EXPECT_LT((merged.at(name) - expected).abs().max().item<double>(), name == theirs ? 1e-5 : 1e-300) << name;
  }
}

TEST_F(ChangedRun, WeightsMustBeThoseOfTheConfiguration) {
  NamedTensors tensors = load_safetensors(run_ / "model.safetensors");
  tensors.emplace_back("other", at::zeros({2}));
  save_safetensors(run_ / "model.safetensors", tensors);
  expect_refused("model.dropout=0.5", "has no tensor 'other'");
  tensors.pop_back();
  tensors.pop_back();
  save_safetensors(run_ / "model.safetensors", tensors);
  expect_refused("model.dropout=0.5", "is missing");
}

TEST_F(ChangedRun, AnotherFolderIsNotReplaced) {
  fs::create_directory(folder_);
  write_file_atomic(folder_ / "mine.txt", "1");
  EXPECT_THROW(export_model(run_.string(), folder_), Error);
  EXPECT_EQ(read_file(folder_ / "mine.txt"), "1");
  EXPECT_FALSE(fs::exists(folder_ / "config.json"));
}

TEST_F(ChangedRun, ElementTypesAreKept) {
  NamedTensors tensors = load_safetensors(run_ / "model.safetensors");
  for (auto& [name, tensor] : tensors) tensor = tensor.to(at::kBFloat16);
  save_safetensors(run_ / "model.safetensors", tensors);
  export_model(run_.string(), folder_);
  const auto exact = tensors_in(folder_of("llama3"));
  for (const auto& [name, tensor] : tensors_in(folder_)) {
    EXPECT_EQ(tensor.scalar_type(), at::kBFloat16) << name;
    EXPECT_TRUE(at::equal(tensor, exact.at(name).to(at::kBFloat16))) << name;
  }
}

}  // namespace
}  // namespace plumb
