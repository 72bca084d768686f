// Which keys of config.json may matter: only those that the family's class in `transformers` has. The golden folders,
// which `transformers` wrote, have all of them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "golden_folder.h"
#include "plumb/base/error.h"
#include "plumb/base/json.h"
#include "plumb/interop/export.h"
#include "plumb/interop/family.h"
#include "plumb/interop/fit.h"
#include "support/errors.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

using Keys = std::set<std::string>;

constexpr const char* kRope = "rope_parameters";

/// The keys of version 4, which version 5 reads as well.
const std::map<std::string, Keys>& older_keys() {
  static const Keys rotary = {"rope_theta", "rope_scaling"};
  static const std::map<std::string, Keys> all = {
      {"llama", rotary},
      {"qwen2", {"rope_theta", "rope_scaling", "head_dim"}},  // no key of its configuration, but read where it is there
      {"qwen3", rotary},
      {"stablelm", {"rope_theta", "rope_scaling", "partial_rotary_factor"}},
      {"gpt_neox", {"rotary_emb_base", "rotary_pct", "rope_scaling"}},
      {"t5", {"tie_word_embeddings"}},  // of T5 1.1; version 5 has scale_decoder_outputs
      {"marian", {"num_hidden_layers"}},
      {"bert", {"num_labels", "id2label", "label2id"}},
      {"roberta", {"num_labels", "id2label", "label2id"}},
      {"xlm-roberta", {"num_labels", "id2label", "label2id"}}};
  return all;
}

/// The config.json of every golden folder, by the folder's name.
std::map<std::string, Json> golden_settings() {
  std::map<std::string, Json> all;
  for (const auto& entry : fs::directory_iterator(test::folder_of("")))
    all[entry.path().filename().string()] = read_json(entry.path() / "config.json");
  return all;
}

/// The keys of each family, and those within rope_parameters.
struct FamilyKeys {
  Keys top, rope;
};

std::map<std::string, FamilyKeys> known_keys() {
  std::map<std::string, FamilyKeys> known;
  for (const auto& [name, settings] : golden_settings()) {
    FamilyKeys& keys = known[settings["model_type"].get<std::string>()];
    const Json rope = settings.value(kRope, Json::object());
    for (const auto& [key, value] : settings.items()) keys.top.insert(key);
    for (const auto& [key, value] : rope.items()) keys.rope.insert(key);
  }
  for (const auto& [family, keys] : older_keys()) known[family].top.insert(keys.begin(), keys.end());
  return known;
}

/// Other values of a key that any model might have.
std::vector<Json> values_like(const Json& value) {
  if (value.is_boolean()) return {true, false};
  if (value.is_number_integer()) return {value, value.get<int64_t>() * 2, 1};
  if (value.is_number()) return {value, value.get<double>() / 2, 0.5};
  return {value};
}

/// A family's models do not have what its class in `transformers` does not know: such a key is refused, or changes
/// nothing. partial_rotary_factor, which Llama's class ignores, must not turn off a part of its rotation.
TEST(FamilyKeys, OfAnotherFamilyHaveNoEffect) {
  const std::map<std::string, Json> golden = golden_settings();
  const std::map<std::string, FamilyKeys> known = known_keys();
  std::map<std::string, Json> top, rope;  // a value of each key
  for (const auto& [name, settings] : golden) {
    for (const auto& [key, value] : settings.items()) {
      if (!value.is_null()) top[key] = value;
    }
    const Json own = settings.value(kRope, Json::object());
    for (const auto& [key, value] : own.items()) top[key] = rope[key] = value;
  }
  top.insert({{"rotary_pct", 0.25}, {"rotary_emb_base", 10000.0}, {"num_labels", 2}});
  size_t tried = 0, refused = 0;
  const auto attempt = [&](const std::string& name, const Json& settings, const std::string& change) {
    ++tried;
    try {
      const ModelConfig changed = described_by(Settings(settings, "config.json")).config;
      EXPECT_TRUE(compute_the_same(changed, described_by(Settings(golden.at(name), "config.json")).config))
          << name << ": " << change;
    } catch (const Error& error) {
      EXPECT_NE(error.hint(), "") << name << ": " << change << ": " << error.what();
      ++refused;
    }
  };
  for (const auto& [name, settings] : golden) {
    const FamilyKeys& own = known.at(settings["model_type"].get<std::string>());
    for (const auto& [key, example] : top) {
      if (own.top.contains(key)) continue;
      for (const Json& value : values_like(example)) {
        Json changed = settings;
        changed[key] = value;
        attempt(name, changed, fmt::format("{} = {}", key, value.dump()));
      }
    }
    if (!settings.contains(kRope)) continue;
    for (const auto& [key, example] : rope) {
      if (own.rope.contains(key)) continue;
      for (const Json& value : values_like(example)) {
        Json changed = settings;
        changed[kRope][key] = value;
        attempt(name, changed, fmt::format("{}.{} = {}", kRope, key, value.dump()));
      }
    }
  }
  EXPECT_GT(tried, 1000U);
  EXPECT_GT(refused, tried / 3);
}

/// A config.json need not have the keys that are as the class has them by default.
TEST(FamilyKeys, ThatAreMissingAreThoseOfTheClass) {
  const std::map<std::string, std::string> expected = {{"gpt2", "target"}, {"gpt_neox", "none"}, {"llama", "none"},
                                                       {"qwen2", "none"},  {"qwen3", "none"},    {"stablelm", "none"}};
  std::set<std::string> tried;
  for (auto& [name, settings] : golden_settings()) {
    const auto found = expected.find(settings["model_type"].get<std::string>());
    if (found == expected.end()) continue;
    settings.erase("tie_word_embeddings");
    EXPECT_EQ(described_by(Settings(settings, "config.json")).config.share_embeddings, found->second) << name;
    tried.insert(found->first);
  }
  EXPECT_EQ(tried.size(), expected.size());
}

/// An export has no key that the class does not have.
TEST(FamilyKeys, OfAnExportAreThoseOfTheClass) {
  const test::TemporaryDirectory scratch;
  const std::map<std::string, FamilyKeys> known = known_keys();
  for (const auto& [name, settings] : golden_settings()) {
    const ModelConfig config = described_by(Settings(settings, "config.json")).config;
    std::vector<ModelConfig> variants = {config};
    if (config.positions == "rotary") {
      for (const int64_t features : {2, 4, 0}) {
        RotaryOptions options = rotary_options_of(config);
        options.features = features;
        variants.push_back(config);
        variants.back().options["rotary"] = Options(options);
      }
    }
    for (const ModelConfig& variant : variants) {
      Json written;
      try {
        written = fitting_settings(variant);
      } catch (const Error&) {
        continue;
      }
      const FamilyKeys& own = known.at(written["model_type"].get<std::string>());
      for (const auto& [key, value] : written.items())
        EXPECT_TRUE(own.top.contains(key)) << name << " as " << written["model_type"] << ": " << key;
    }
  }
}

TEST(FamilyKeys, AModelThatRotatesAPartOfEachHeadIsNoLlama) {
  const ModelConfig llama = described_by(Settings(golden_settings().at("llama2"), "config.json")).config;
  const auto with_features = [&](int64_t features) {
    ModelConfig config = llama;
    RotaryOptions options = rotary_options_of(config);
    options.features = features;
    config.options["rotary"] = Options(options);
    return config;
  };
  EXPECT_EQ(fitting_settings(with_features(0)), fitting_settings(with_features(4)));  // all of a head of size 4
  test::expect_error([&] { (void)fitting_settings(with_features(2)); }, "model.rotary.features = 2 instead of 0");
}

}  // namespace
}  // namespace plumb
