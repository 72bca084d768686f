#include "plumb/train/agreement.h"

#include <fmt/format.h>
#include <torch/version.h>

#include <string>

#include "plumb/base/toml_text.h"

namespace plumb {

Facts facts_of(const RunConfig& config, const Json& fingerprint) {
  Facts facts = {{"the version of LibTorch", TORCH_VERSION}};
  for (const auto& [key, value] : key_values(to_toml(config))) {
    if (key != "data.directory" && !key.starts_with("watch.") && !key.starts_with("plan."))
      facts.emplace_back(key, value);
  }
  const auto add = [&facts](const std::string& folder, const Json& files) {
    for (const auto& [file, mark] : files.items()) {
      if (!file.ends_with(".source") && !file.ends_with(".target"))  // raw text, which training does not read
        facts.emplace_back(fmt::format("the checksum of the data's {}{}", folder, file), mark.at("crc32"));
    }
  };
  add("", fingerprint.at("tokenizer"));
  const Json corpora = fingerprint.value("corpora", Json::object());
  for (const auto& [corpus, mark] : corpora.items())
    facts.emplace_back(fmt::format("the size of the data's corpus '{}'", corpus), mark.at("pairs").dump());
  for (const char* name : {"train", "valid"}) {
    if (fingerprint.at("splits").contains(name)) add("splits/", fingerprint.at("splits").at(name));
  }
  return facts;
}

}  // namespace plumb
