#include "plumb/text/kinds/special_tokens.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "plumb/base/error.h"
#include "plumb/base/json.h"

namespace plumb {
namespace {

nlohmann::json object_in(const std::filesystem::path& path) {
  if (!std::filesystem::is_regular_file(path)) return nlohmann::json::object();
  nlohmann::json settings = read_json(path);
  if (!settings.is_object()) throw Error(fmt::format("{}: not an object", path.string()));
  return settings;
}

std::filesystem::path settings_path(const std::filesystem::path& tokenizer) {
  const std::string stem = tokenizer.extension() == ".json" ? tokenizer.stem().string() : std::string("tokenizer");
  return tokenizer.parent_path() / (stem + "_config.json");
}

/// A token given as a string, or as an object with its content; empty if there is none.
std::string content_of(const nlohmann::json& settings, const char* name) {
  const auto found = settings.find(name);
  if (found == settings.end()) return {};
  if (found->is_string()) return found->get<std::string>();
  if (found->is_object() && found->contains("content") && found->at("content").is_string()) {
    return found->at("content").get<std::string>();
  }
  return {};
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

nlohmann::json settings_beside(const std::filesystem::path& tokenizer) { return object_in(settings_path(tokenizer)); }

SpecialNames special_names_beside(const std::filesystem::path& tokenizer) {
  const nlohmann::json settings = settings_beside(tokenizer);
  const bool is_main = settings_path(tokenizer).filename() == "tokenizer_config.json";
  const nlohmann::json map =
      is_main ? object_in(tokenizer.parent_path() / "special_tokens_map.json") : nlohmann::json::object();
  const auto name_of = [&](const char* name, const char* substitute) {
    for (const char* key : {name, substitute}) {
      for (const auto* source : {&settings, &map}) {
        std::string content = key == nullptr ? std::string() : content_of(*source, key);
        if (!content.empty()) return content;
      }
    }
    return std::string();
  };
  return {name_of("pad_token", nullptr), name_of("bos_token", "cls_token"), name_of("eos_token", "sep_token"),
          name_of("unk_token", nullptr), name_of("mask_token", nullptr)};
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
