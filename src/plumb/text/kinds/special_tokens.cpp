#include "plumb/text/kinds/special_tokens.h"

#include <fmt/format.h>

#include <iterator>

#include "plumb/base/contains.h"

namespace plumb {
namespace {

std::filesystem::path settings_path(const std::filesystem::path& tokenizer) {
  const std::string stem = tokenizer.extension() == ".json" ? tokenizer.stem().string() : std::string("tokenizer");
  return tokenizer.parent_path() / (stem + "_config.json");
}

Json settings_of(const SpecialNames& names) {
  Json settings = Json::object();
  const auto write = [&](const char* key, const std::string& name) {
    if (!name.empty()) settings[key] = name;
  };
  write("pad_token", names.pad);
  write("bos_token", names.bos);
  write("eos_token", names.eos);
  write("unk_token", names.unknown);
  write("mask_token", names.mask);
  return settings;
}

}  // namespace

Json object_in(const std::filesystem::path& path) {
  if (!std::filesystem::is_regular_file(path)) return Json::object();
  Json settings = read_json(path);
  if (!settings.is_object()) throw Error(fmt::format("{}: not an object", path.string()));
  return settings;
}

std::string content_of(const Json& token) {
  if (token.is_string()) return token.get<std::string>();
  if (token.is_object() && token.contains("content") && token.at("content").is_string()) {
    return token.at("content").get<std::string>();
  }
  return {};
}

bool is_other_token_key(const std::string& key) { return key.ends_with("_token") && !contains(kUsualTokenKeys, key); }

Json settings_beside(const std::filesystem::path& tokenizer) {
  const std::filesystem::path path = settings_path(tokenizer);
  Json settings = object_in(path);
  if (path.filename() != "tokenizer_config.json" || settings.contains("added_tokens_decoder")) return settings;
  const bool has_others = settings.contains("additional_special_tokens") || settings.contains("extra_special_tokens");
  const Json map = object_in(path.parent_path() / "special_tokens_map.json");
  const auto stays = [&](const std::string& key) {
    return is_other_token_key(key) && settings.contains(key) && settings.at(key).is_string();
  };
  Json merged = Json::object();
  for (const auto& [key, value] : map.items()) {
    if (is_other_token_key(key)) merged[key] = value;
  }
  merged.update(settings);
  for (const auto& [key, value] : map.items()) {
    if (!stays(key) && (key != "additional_special_tokens" || !has_others)) merged[key] = value;
  }
  return merged;
}

SpecialNames special_names_beside(const std::filesystem::path& tokenizer) {
  const Json settings = settings_beside(tokenizer);
  const auto name_of = [&](const char* name, const char* substitute) {
    for (const char* key : {name, substitute}) {
      std::string content = settings.contains(key) ? content_of(settings.at(key)) : std::string();
      if (!content.empty()) return content;
    }
    return std::string();
  };
  return {name_of("pad_token", ""), name_of("bos_token", "cls_token"), name_of("eos_token", "sep_token"),
          name_of("unk_token", ""), name_of("mask_token", "")};
}

void write_special_names(const std::filesystem::path& tokenizer, const SpecialNames& names) {
  const Json settings = settings_of(names);
  if (!settings.empty()) write_json(settings_path(tokenizer), settings);
}

void write_settings_for_transformers(const std::filesystem::path& tokenizer, const SpecialNames& names, bool segments) {
  Json settings = settings_of(names);
  settings["tokenizer_class"] = "PreTrainedTokenizerFast";
  settings["model_input_names"] = {"input_ids", "attention_mask"};
  if (segments) settings["model_input_names"].push_back("token_type_ids");
  write_json(settings_path(tokenizer), settings);
}

}  // namespace plumb
