// Modified Hugging Face folders: errors name what is unknown or missing, and older formats are read.
#include "plumb/interop/import.h"
#include "plumb/base/input.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>

#include "golden_folder.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/json.h"
#include "plumb/model/capabilities.h"
#include "plumb/model/model.h"
#include "plumb/run/directory.h"
#include "plumb/train/run_training.h"
#include "support/errors.h"
#include "support/paths.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

using test::folder_of;
using test::model_in;

/// A copy of a folder to modify.
class ChangedFolder : public ::testing::Test {
 protected:
  void copy(const std::string& name) {
    fs::remove_all(folder_);
    fs::copy(folder_of(name), folder_);
  }
  /// Changes values in config.json; null counts as a missing key.
  void configure(const Json& changes) {
    Json config = read_json(folder_ / "config.json");
    for (const auto& [key, value] : changes.items()) config[key] = value;
    write_json(folder_ / "config.json", config);
  }
  void expect_error(const std::string& part) const {
    test::expect_error([&] { read_model_folder(folder_); }, part);
  }
  void expect_refused(const std::string& name, const Json& changes, const std::string& part) {
    copy(name);
    configure(changes);
    expect_error(part);
  }

  const test::TemporaryDirectory scratch_;
  const fs::path folder_ = scratch_ / "model";
};

TEST_F(ChangedFolder, UnknownArchitecturesAreNamed) {
  expect_refused("gpt2", {{"model_type", "mamba"}}, "model_type = \"mamba\" is not supported");
  expect_refused("gpt2", {{"architectures", {"GPT2ForTokenClassification"}}}, "GPT2ForTokenClassification");
  expect_refused("gpt2", {{"architectures", nullptr}}, "architectures is missing");
  copy("gpt2");
  fs::remove(folder_ / "config.json");
  expect_error("there is no such file");
  write_file_atomic(folder_ / "config.json", "[1]");
  expect_error("not an object");
}

TEST_F(ChangedFolder, UnknownSettingsAreNamed) {
  expect_refused("gpt2", {{"activation_function", "quick_gelu"}}, "activation_function = \"quick_gelu\"");
  expect_refused("gpt2", {{"scale_attn_by_inverse_layer_idx", true}}, "scale_attn_by_inverse_layer_idx = true");
  expect_refused("gpt2", {{"quantization_config", {{"bits", 4}}}}, "quantization_config = {\"bits\":4} is unknown");
  expect_refused("gpt2", {{"n_layer", "two"}}, "n_layer = \"two\" is not an integer");
  expect_refused("gpt2", {{"n_layer", 1e300}}, "n_layer = 1e+300 is not an integer");
  expect_refused("gpt2", {{"n_head", 0}}, "model.heads = 0");
  expect_refused("gpt2", {{"layer_norm_epsilon", true}}, "layer_norm_epsilon = true is not a number");
}

TEST_F(ChangedFolder, TensorsAreAllAccountedFor) {
  copy("gpt2");
  const fs::path file = folder_ / "model.safetensors";
  const NamedTensors whole = load_safetensors(file);
  const auto find = [](NamedTensors& tensors, const std::string& name) {
    return std::find_if(tensors.begin(), tensors.end(), [&](const auto& item) { return item.first == name; });
  };
  NamedTensors fewer = whole;
  fewer.erase(find(fewer, "transformer.h.1.ln_2.bias"));
  save_safetensors(file, fewer);
  expect_error("tensor 'transformer.h.1.ln_2.bias' of shape (16) is missing");

  NamedTensors more = whole;
  more.emplace_back("transformer.h.2.ln_1.bias", at::zeros({16}));
  save_safetensors(file, more);
  expect_error("the model has no tensor 'transformer.h.2.ln_1.bias' of shape (16)");

  NamedTensors other = whole;
  find(other, "transformer.h.0.attn.c_attn.weight")->second = at::zeros({48, 16});
  save_safetensors(file, other);
  expect_error("tensor 'transformer.h.0.attn.c_attn.weight' has shape (48, 16), but config.json implies (16, 48)");

  // As in published files: without the prefix, with masks, and with a copy of the embedding.
  NamedTensors published;
  for (const auto& [name, tensor] : whole)
    published.emplace_back(name.substr(std::string("transformer.").size()), tensor);
  published.emplace_back("h.0.attn.bias", at::ones({1, 1, 80, 80}, at::kBool));
  const Tensor embedding = find(published, "wte.weight")->second;
  published.emplace_back("lm_head.weight", embedding);
  save_safetensors(file, published);
  const ImportedModel found = read_model_folder(folder_), expected = read_model_folder(folder_of("gpt2"));
  ASSERT_EQ(found.tensors.size(), expected.tensors.size());
  for (size_t i = 0; i < found.tensors.size(); ++i) {
    EXPECT_EQ(found.tensors[i].first, expected.tensors[i].first);
    EXPECT_TRUE(at::equal(found.tensors[i].second, expected.tensors[i].second));
  }

  fs::remove(file);
  expect_error("contains neither model.safetensors nor");
}

TEST_F(ChangedFolder, KindsOfPositionsAndAttentionAreNamed) {
  const auto rope = [](const Json& changes) {
    Json rope = {{"rope_type", "default"}, {"rope_theta", 10000.0}};
    for (const auto& [key, value] : changes.items()) rope[key] = value;
    Json result;
    result["rope_parameters"] = rope;
    return result;
  };
  expect_refused("llama2", rope({{"rope_type", "yarn"}}), "rope_parameters.rope_type = \"yarn\" is not supported");
  expect_refused("llama2", rope({{"rope_type", "linear"}}), "rope_parameters.factor is missing");
  expect_refused("llama2", rope({{"attention_factor", 2.0}}), "rope_parameters.attention_factor = 2.0 is unknown");
  expect_refused("llama2", {{"rope_parameters", nullptr}, {"rope_scaling", {{"type", "dynamic"}, {"factor", 2.0}}}},
                 "rope_scaling.type = \"dynamic\"");
  expect_refused("llama2", {{"hidden_act", "relu"}}, "hidden_act = \"relu\"");
  expect_refused("llama2", {{"num_key_value_heads", 3}}, "model.kv_heads = 3");
  expect_refused("qwen2", {{"use_sliding_window", true}}, "use_sliding_window = true");
  expect_refused("qwen3", {{"layer_types", {"full_attention", "sliding_attention"}}}, "sliding_attention");
  expect_refused("qwen3", {{"layer_types", {"full_attention"}}}, "layer_types");
}

/// `transformers` then follows rope_scaling, but its versions differ in how they read rope_parameters.
TEST_F(ChangedFolder, TwoContradictingScalingsOfPositionsAreRefused) {
  copy("llama3");
  const Json rope = read_json(folder_ / "config.json")["rope_parameters"];
  configure({{"rope_scaling", rope}});
  EXPECT_EQ(read_model_folder(folder_).config, read_model_folder(folder_of("llama3")).config);
  expect_refused("llama3", {{"rope_scaling", {{"rope_type", "yarn"}, {"factor", 4.0}}}},
                 "rope_scaling = {\"rope_type\":\"yarn\",\"factor\":4.0} is not supported");
}

/// Versions 4 and 5 of `transformers` handle these files differently.
TEST_F(ChangedFolder, AnOutputMatrixThatIsNotTheEmbeddingIsRefusedIfTheyAreTied) {
  struct Case {
    std::string folder, embedding, output;
  };
  for (const Case& each :
       {Case{"gpt2", "transformer.wte.weight", "lm_head.weight"},
        Case{"bert_masked", "bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"},
        Case{"t5", "shared.weight", "lm_head.weight"}, Case{"marian", "model.shared.weight", "lm_head.weight"}}) {
    copy(each.folder);
    const fs::path file = folder_ / "model.safetensors";
    NamedTensors tensors = load_safetensors(file);
    std::erase_if(tensors, [&](const auto& entry) { return entry.first == each.output; });
    const auto embedding =
        std::find_if(tensors.begin(), tensors.end(), [&](const auto& entry) { return entry.first == each.embedding; });
    ASSERT_NE(embedding, tensors.end()) << each.folder;
    tensors.emplace_back(each.output, embedding->second.clone());
    save_safetensors(file, tensors);
    EXPECT_NO_THROW(read_model_folder(folder_)) << each.folder;
    tensors.back().second.view(-1)[3] += 1;
    save_safetensors(file, tensors);
    expect_error("tensor '" + each.output + "' differs from the embedding");
  }
}

/// As in a folder saved first in several files, then again in one.
TEST_F(ChangedFolder, TheWholeFileCountsAndNotAnIndexBesideIt) {
  copy("gpt2");
  write_file_atomic(folder_ / "model.safetensors.index.json", R"({"weight_map": {"lm_head.weight": "gone"}})");
  EXPECT_EQ(read_model_folder(folder_).tensors.size(), read_model_folder(folder_of("gpt2")).tensors.size());
}

TEST_F(ChangedFolder, PipesAreNoFiles) {
  const auto replace_by_pipe = [&](const char* name) {
    fs::remove(folder_ / name);
    ASSERT_EQ(::mkfifo((folder_ / name).c_str(), 0600), 0);
  };
  copy("gpt2");
  replace_by_pipe("model.safetensors");
  expect_error("contains neither model.safetensors nor");
  write_file_atomic(folder_ / "model.safetensors.index.json", R"({"weight_map": {"lm_head.weight": "part"}})");
  replace_by_pipe("part");
  expect_error("part: is a pipe");
  replace_by_pipe("model.safetensors.index.json");
  expect_error("contains neither model.safetensors nor");
  replace_by_pipe("config.json");
  expect_error("there is no such file");
}

/// Keys in published files of these families.
TEST_F(ChangedFolder, KeysOfOlderVersionsThatChangeNothing) {
  struct Case {
    std::string folder;
    Json keys;
  };
  const Json everywhere = {{"output_past", true}, {"pruned_heads", Json::object()}, {"use_bfloat16", false},
                           {"num_beams", 4},      {"repetition_penalty", 1.0},      {"min_length", 0}};
  for (const Case& each : {Case{"gpt2", {{"n_special", 0}, {"predict_special_tokens", true}}},
                           Case{"gpt_neox", {{"attention_probs_dropout_prob", 0}, {"hidden_dropout_prob", 0}}},
                           Case{"marian", {{"_num_labels", 3}}}, Case{"t5", {{"n_positions", 512}}},
                           Case{"roberta", {{"num_labels", 3}}}}) {
    copy(each.folder);
    configure(everywhere);
    configure(each.keys);
    EXPECT_EQ(read_model_folder(folder_).config, read_model_folder(folder_of(each.folder)).config) << each.folder;
  }
  expect_refused("gpt2", {{"repetition_penalty", 1.2}}, "repetition_penalty = 1.2");
  expect_refused("bert", {{"pruned_heads", {{"0", {1}}}}}, "pruned_heads");
  expect_refused("bert", {{"problem_type", "multi_label_classification"}}, "problem_type");
  expect_refused("roberta", {{"problem_type", "regression"}}, "problem_type");
}

TEST_F(ChangedFolder, OlderNamesOfPositionsMeanTheSame) {
  copy("llama3");
  Json rope = read_json(folder_ / "config.json")["rope_parameters"];
  const Json theta = rope["rope_theta"];
  rope.erase("rope_theta");
  rope["type"] = rope["rope_type"];
  rope.erase("rope_type");
  configure({{"rope_parameters", nullptr}, {"rope_scaling", rope}, {"rope_theta", theta}, {"torch_dtype", "float32"}});
  EXPECT_EQ(read_model_folder(folder_).config, read_model_folder(folder_of("llama3")).config);
}

/// As in Pythia's files, which also contain tensors that the model computes from config.json.
TEST_F(ChangedFolder, OlderFilesOfGptNeox) {
  copy("gpt_neox");
  configure({{"rope_parameters", nullptr}, {"rotary_pct", 0.5}, {"rotary_emb_base", 500}, {"dtype", nullptr}});
  const fs::path file = folder_ / "model.safetensors";
  NamedTensors tensors = load_safetensors(file);
  const std::string attention = "gpt_neox.layers.0.attention.";
  tensors.emplace_back(attention + "bias", at::ones({1, 1, 128, 128}, at::kBool));
  tensors.emplace_back(attention + "masked_bias", at::full({}, -1e9));
  tensors.emplace_back(attention + "rotary_emb.inv_freq", at::ones({2}));
  save_safetensors(file, tensors);
  const ImportedModel found = read_model_folder(folder_), expected = read_model_folder(folder_of("gpt_neox"));
  EXPECT_EQ(found.config, expected.config);
  EXPECT_EQ(found.tensors.size(), expected.tensors.size());
  expect_refused("gpt_neox", {{"rope_parameters", {{"partial_rotary_factor", 0.1}}}}, "0.1 of the 8 features");
}

/// Norm names as in files converted from TensorFlow, and a list of positions.
TEST_F(ChangedFolder, OlderFilesOfBert) {
  copy("bert");
  const fs::path file = folder_ / "model.safetensors";
  NamedTensors tensors = load_safetensors(file);
  for (auto& [name, tensor] : tensors) {
    const size_t norm = name.find("LayerNorm.");
    if (norm == std::string::npos) continue;
    name = name.substr(0, norm) + (name.ends_with("weight") ? "LayerNorm.gamma" : "LayerNorm.beta");
  }
  tensors.emplace_back("bert.embeddings.position_ids", at::arange(16).view({1, 16}));
  save_safetensors(file, tensors);
  const ImportedModel found = read_model_folder(folder_), expected = read_model_folder(folder_of("bert"));
  ASSERT_EQ(found.tensors.size(), expected.tensors.size());
  for (size_t i = 0; i < found.tensors.size(); ++i)
    EXPECT_TRUE(at::equal(found.tensors[i].second, expected.tensors[i].second)) << found.tensors[i].first;
}

/// Version 5 of `transformers` rotates all features of these families, whatever the key says.
TEST_F(ChangedFolder, AShareOfRotatedFeaturesThatTheFamilyIgnoresIsRefused) {
  for (const char* name : {"llama2", "llama3", "qwen2", "qwen3"}) {
    expect_refused(name, {{"partial_rotary_factor", 0.5}}, "partial_rotary_factor = 0.5 is not supported");
    copy(name);
    Json config = read_json(folder_ / "config.json");
    config["rope_parameters"]["partial_rotary_factor"] = 0.5;
    write_json(folder_ / "config.json", config);
    expect_error("rope_parameters.partial_rotary_factor = 0.5 is not supported");
    config["rope_parameters"]["partial_rotary_factor"] = 1.0;
    write_json(folder_ / "config.json", config);
    EXPECT_EQ(read_model_folder(folder_).config, read_model_folder(folder_of(name)).config);
  }
  // At the top level, GPT-NeoX has other names.
  expect_refused("gpt_neox", {{"partial_rotary_factor", 0.5}}, "partial_rotary_factor = 0.5 is not supported");
  expect_refused("gpt_neox", {{"rope_theta", 500.0}}, "rope_theta = 500.0 is not supported");
}

/// Where two keys say the same, `transformers` takes the second.
TEST_F(ChangedFolder, KeysThatContradictEachOtherAreRefused) {
  expect_refused("t5", {{"dense_act_fn", "gelu_new"}}, "dense_act_fn = \"gelu_new\" is not supported");
  expect_refused("t5_1.1", {{"is_gated_act", false}}, "is_gated_act = false is not supported");
  expect_refused("marian", {{"num_hidden_layers", 1}}, "num_hidden_layers = 1 is not supported");
  expect_refused("gpt2", {{"max_position_embeddings", 40}}, "max_position_embeddings = 40 is unknown");
}

TEST_F(ChangedFolder, LabelsAreNumberedAndDistinct) {
  const auto names = [](const Json& labels) {
    Json changes;
    changes["id2label"] = labels;
    return changes;
  };
  expect_refused("bert", names({{"0", "a"}, {"1", "b"}, {"3", "c"}}), "id2label.2 is missing");
  expect_refused("bert", names({{"0", "a"}, {"1", "b"}, {"2", "a"}}), "id2label = {\"0\":\"a\"");
  expect_refused("bert", names({{"0", "a"}, {"1", "b"}, {"2", 3}}), "id2label.2 = 3 is not a string");
  expect_refused("bert", {{"num_labels", 2}}, "num_labels = 2 is not supported");
  copy("bert");
  configure(names({{"2", "x"}, {"0", "z"}, {"1", "y"}}));
  EXPECT_EQ(stated_labels(folder_), (std::vector<std::string>{"z", "y", "x"}));
  configure({{"id2label", nullptr}, {"num_labels", 3}});
  EXPECT_EQ(stated_labels(folder_), (std::vector<std::string>{"LABEL_0", "LABEL_1", "LABEL_2"}));
  EXPECT_EQ(read_model_folder(folder_).config.labels, 3);
  EXPECT_EQ(stated_labels(folder_of("bert_body")), std::vector<std::string>{});
  EXPECT_EQ(stated_labels(folder_of("gpt2")), std::vector<std::string>{});
}

TEST_F(ChangedFolder, DamagedFilesHaveHints) {
  const auto expect_hint = [&](const std::string& part) {
    EXPECT_NE(test::expect_error([&] { read_model_folder(folder_); }, part).hint(), "");
  };
  copy("llama2");
  for (const char* key : {"vocab_size", "max_position_embeddings", "num_attention_heads"}) {
    for (const Json& value : {Json(0), Json(-1), Json("many")}) {
      copy("llama2");
      configure({{key, value}});
      expect_hint("config.json");
    }
  }
  for (const std::string& place : {std::string(".."), std::string("."), std::string("model\0", 6), std::string()}) {
    copy("llama2");
    Json index = read_json(folder_ / "model.safetensors.index.json");
    index["weight_map"]["lm_head.weight"] = place;
    write_json(folder_ / "model.safetensors.index.json", index);
    expect_hint("which is not the name of a file beside it");
  }
  for (const std::string name : {"config.json", "model.safetensors"}) {
    copy("gpt2");
    fs::remove(folder_ / name);
    fs::create_symlink(name, folder_ / name);  // to itself
    expect_hint(name);
  }
  EXPECT_FALSE(is_model_folder(scratch_ / "nowhere"));
  fs::create_symlink("loop", scratch_ / "loop");
  EXPECT_FALSE(is_model_folder(scratch_ / "loop"));
  EXPECT_NE(test::error_of([&] { locate_run((scratch_ / "loop").string()); }).hint(), "");
}

TEST_F(ChangedFolder, PartsThatAClassifierDoesNotHave) {
  expect_refused("bert", {{"architectures", {"BertForQuestionAnswering"}}}, "BertForQuestionAnswering");
  expect_refused("bert_masked", {{"hidden_act", "relu"}}, "hidden_act = \"relu\"");
  expect_refused("bert_masked", {{"architectures", {"BertModel"}}}, "'cls.predictions.bias'");
  expect_refused("roberta_body", {{"architectures", {"RobertaForMaskedLM"}}}, "'lm_head.dense.weight'");
  expect_refused("distilbert_masked", {{"architectures", {"DistilBertForSequenceClassification"}}},
                 "DistilBertForSequenceClassification");
  expect_refused("bert", {{"position_embedding_type", "relative_key"}}, "position_embedding_type = \"relative_key\"");
  expect_refused("bert", {{"is_decoder", true}}, "is_decoder = true");
  expect_refused("bert", {{"id2label", {{"0", "no"}, {"1", "yes"}}}},
                 "tensor 'classifier.weight' has shape (3, 16), but config.json implies (2, 16)");
  expect_refused("roberta", {{"pad_token_id", 0}}, "pad_token_id = 0");
}

TEST_F(ChangedFolder, TheIndexSaysWhereTensorsAre) {
  const auto index = [&](const std::string& tensor, const Json& place) {
    copy("llama2");
    Json document = read_json(folder_ / "model.safetensors.index.json");
    document["weight_map"][tensor] = place;
    if (place.is_null()) document["weight_map"].erase(tensor);
    write_json(folder_ / "model.safetensors.index.json", document);
  };
  index("lm_head.weight", "model-00001-of-00004.safetensors");
  expect_error("tensor 'lm_head.weight' is in model-00004-of-00004.safetensors, but the index says it is in");
  index("lm_head.weight", nullptr);
  expect_error("tensor 'lm_head.weight' is in model-00004-of-00004.safetensors, but the index says nothing about it");
  index("other.weight", "model-00001-of-00004.safetensors");
  expect_error("tensor 'other.weight' is not in model-00001-of-00004.safetensors");
  index("lm_head.weight", "../model-00004-of-00004.safetensors");
  expect_error("which is not the name of a file beside it");
  index("lm_head.weight", 4);
  expect_error("which is not the name of a file beside it");
  write_file_atomic(folder_ / "model.safetensors.index.json", "{}");
  expect_error("has no weight_map");
}

TEST_F(ChangedFolder, ATokenizerMustBeKnownAsAWhole) {
  const auto refused = [&](const std::string& name, const std::string& content, const std::string& part) {
    copy("gpt2");
    write_file_atomic(folder_ / name, content);
    test::expect_error([&] { import_model(folder_, scratch_ / "run"); }, part);
    EXPECT_FALSE(fs::exists(scratch_ / "run"));
  };
  refused("tokenizer.model", "\n", "a SentencePiece model alone");
  refused("tokenizer.json", R"({"model": {"type": "Morse"}})", "Morse");
}

/// The model is read or Error is thrown; nothing else.
TEST_F(ChangedFolder, EverySettingMayBeAnything) {
  const std::vector<Json> values = {
      nullptr, -1,  0,   1,     1e308, -1e308,           "x", Json::array(), Json::object(),
      true,    2.5, 1e6, 1e-30, false, INT64_C(1) << 62, "",  {1, "x"}};
  size_t refused = 0;
  for (const std::string name :
       {"gpt2", "llama3", "qwen2", "qwen3", "gpt_neox", "stablelm", "t5", "marian", "bert", "roberta"}) {
    copy(name);
    const Json whole = read_json(folder_ / "config.json");
    const auto read = [&](const Json& config) {
      std::ofstream(folder_ / "config.json") << config;  // not synced, for speed: there are thousands
      try {
        read_model_folder(folder_);
      } catch (const Error& error) {
        EXPECT_FALSE(std::string(error.what()).empty());
        ++refused;
      }
    };
    for (const auto& [key, old] : whole.items()) {
      for (const Json& value : values) {
        Json config = whole;
        config[key] = value;
        read(config);
      }
    }
    if (!whole.contains("rope_parameters")) continue;
    for (const auto& [key, old] : whole["rope_parameters"].items()) {
      for (const Json& value : values) {
        Json config = whole;
        config["rope_parameters"][key] = value;
        read(config);
      }
    }
  }
  EXPECT_GT(refused, 500U);
}

TEST_F(ChangedFolder, SaysHowManyTokensItReads) {
  copy("llama2");
  EXPECT_TRUE(is_model_folder(folder_));
  configure({{"max_position_embeddings", 96}, {"n_ctx", 7}});
  EXPECT_EQ(stated_positions(folder_), 96);
  import_model(folder_of("gpt2"), scratch_ / "run");
  EXPECT_FALSE(is_model_folder(scratch_ / "run"));
  EXPECT_EQ(stated_positions(scratch_ / "run"), read_json(folder_of("gpt2") / "config.json")["n_positions"]);
  configure({{"max_position_embeddings", 0}});
  EXPECT_THROW((void)stated_positions(folder_), Error);
  configure({{"max_position_embeddings", nullptr}, {"n_ctx", nullptr}});
  EXPECT_EQ(stated_positions(folder_), std::nullopt);
  EXPECT_FALSE(is_model_folder(scratch_ / "nowhere"));
  EXPECT_EQ(stated_positions(scratch_ / "nowhere"), std::nullopt);
}

TEST_F(ChangedFolder, ElementTypesAreKept) {
  copy("llama2");
  for (const auto& entry : fs::directory_iterator(folder_)) {
    if (entry.path().extension() != ".safetensors") continue;
    NamedTensors tensors = load_safetensors(entry.path());
    for (auto& [name, tensor] : tensors) tensor = tensor.to(at::kBFloat16);
    save_safetensors(entry.path(), tensors);
  }
  const fs::path out = scratch_ / "run";
  import_model(folder_, out);
  for (const auto& [name, tensor] : load_safetensors(out / "model.safetensors"))
    EXPECT_EQ(tensor.scalar_type(), at::kBFloat16) << name;
  const Tensor exact = model_in(folder_of("llama2"), at::kFloat)->parameters().flat();
  EXPECT_TRUE(at::equal(load_model(out)->parameters().flat(), exact.to(at::kBFloat16).to(at::kFloat)));
}

TEST_F(ChangedFolder, IsNotTrainedInItsPlace) {
  const fs::path out = scratch_ / "imported";
  import_model(folder_of("gpt2"), out);
  RunConfig config = load_run_config(out);
  const std::string before = read_file(out / "config.toml");
  test::expect_error([&] { run_training(config, out); }, "cannot be trained further");
  EXPECT_EQ(read_file(out / "config.toml"), before);
}

TEST_F(ChangedFolder, AnotherRunIsNotReplaced) {
  const fs::path out = scratch_ / "run";
  claim_output_directory(out, "run");
  write_file_atomic(out / "config.toml", "[model]\n");
  EXPECT_THROW(import_model(folder_of("gpt2"), out), Error);
  EXPECT_EQ(read_file(out / "config.toml"), "[model]\n");
}

}  // namespace
}  // namespace plumb
