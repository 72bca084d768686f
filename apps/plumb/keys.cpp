#include "keys.h"

#include <algorithm>
#include <map>

#include "plumb/base/key_list.h"
#include "plumb/nn/norm/norm.h"
#include "plumb/run/watch.h"
#include "plumb/study/config.h"
#include "plumb/train/finetune.h"

namespace plumb::app {
namespace {

/// Keys with a few possible values that are not names of variants.
std::map<std::string, std::vector<std::string>> fixed_values() {
  std::vector<std::string> qk_norms = norms().names();
  qk_norms.emplace_back("none");
  return {{"model.kind", {"encoder-decoder", "decoder", "encoder", "awd-lstm"}},
          {"model.attention_bias", {"all", "qkv", "none"}},
          {"model.awd-lstm.cell", {"lstm", "qrnn"}},
          {"model.qk_norm", qk_norms},
          {"model.rotary.scaling", {"none", "linear", "ntk", "llama3"}},
          {"model.share_embeddings", {"none", "target", "all"}},
          {"task.classification.direction", {"forward", "backward"}},
          {"task.language-modeling.direction", {"forward", "backward"}},
          {"train.exchange_precision", {"float32", "bf16"}},
          {"train.muon.scale", {"jordan", "moonlight"}},
          {"train.one_cycle.shape", {"cosine", "line"}},
          {"train.parameters", {"float32", "bf16", "bf16-copy"}},
          {"train.precision", {"float32", "bf16"}},
          {"train.stable_decay.shape", {"root", "line"}},
          {"train.trouble.on_nonfinite", {"stop", "skip", "rollback"}},
          {"train.trouble.on_spike", {"report", "skip", "rollback"}}};
}

class Keys {
 public:
  template <typename T>
  void add_section(const std::string& section, const T& defaults) {
    for (const KeyList::Key& key : list_keys(defaults)) {
      const bool boolean = key.value == "true" || key.value == "false";
      add(section + '.' + key.name, boolean ? std::vector<std::string>{"true", "false"} : std::vector<std::string>{});
    }
  }
  void add(const std::string& name, const std::vector<std::string>& values) {
    std::vector<std::string>& known = keys_[name];
    if (known.empty()) known = values;
  }

  /// All keys, sorted, including the names of variants and the fixed values.
  std::vector<ConfigurationKey> finish() {
    for (const ChoiceKey& choice : choice_keys()) {
      add(choice.name, choice.names);
      for (const std::string& option : choice.options) add(option, {});
    }
    for (const auto& [name, values] : fixed_values()) add(name, values);
    std::vector<ConfigurationKey> all;
    for (const auto& [name, values] : keys_) all.push_back({name, values});
    return all;
  }

 private:
  std::map<std::string, std::vector<std::string>> keys_;
};

void add_run(Keys& keys) {
  keys.add_section("model", ModelConfig());
  keys.add_section("train", TrainConfig());
  keys.add_section("task", TaskConfig());
}

}  // namespace

std::vector<ConfigurationKey> run_keys() {
  Keys keys;
  add_run(keys);
  keys.add_section("watch", WatchConfig());
  keys.add_section("finetune", FinetuneConfig());
  keys.add("finetune.unfreeze", {"all", "gradual", "chain-thaw", "last"});
  keys.add("data.directory", {});
  keys.add("initial.weights", {});
  return keys.finish();
}

std::vector<ConfigurationKey> study_keys() {
  Keys keys;
  add_run(keys);
  keys.add_section("study", StudyHead());
  keys.add_section("data", StudyData());
  StudyConfig study;
  for_each_part(study, [&](const std::string& name, const auto& part) {
    keys.add_section(name, typename std::decay_t<decltype(part)>::value_type());
  });
  return keys.finish();
}

std::vector<ConfigurationKey> keys_with_values() {
  std::map<std::string, ConfigurationKey> all;
  for (const auto& keys : {run_keys(), study_keys()}) {
    for (const ConfigurationKey& key : keys)
      if (!key.values.empty()) all.emplace(key.name, key);
  }
  std::vector<ConfigurationKey> list;
  for (const auto& [name, key] : all) list.push_back(key);
  return list;
}

}  // namespace plumb::app
