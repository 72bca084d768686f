// Writes folders of Hugging Face models: config.json, safetensors and tokenizer files, as `transformers` reads them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "plumb/model/config.h"

namespace plumb {

struct ExportedModel {
  std::string family;                 // model_type: "llama"
  std::string model;                  // the class of `transformers`: "LlamaForCausalLM"
  int64_t parameters = 0;             // numbers in the tensors
  bool tokenizer = false;             // whether there is one in the folder
  std::vector<std::string> left_out;  // parts of an imported model that the import left out, and the folder lacks
};

/// Writes the model of a run, or of a checkpoint in one, to `folder`, which appears complete or not at all, in the
/// place of an earlier export. An imported model keeps its config.json and its tokenizer; any other becomes a model of
/// the family that its configuration fits, with the tokenizer of its data. Throws Error that names the settings that no
/// family has, or what the tokenizer has that tokenizer.json cannot express, before anything is written.
ExportedModel export_model(const std::string& run, const std::filesystem::path& folder);

}  // namespace plumb
