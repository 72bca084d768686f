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
  int64_t parameters = 0;             // elements of all tensors
  bool tokenizer = false;             // whether the folder has one
  std::vector<std::string> left_out;  // parts that the import left out, so that the folder lacks them
};

/// Writes the model of a run, or of one of its checkpoints, to `folder` atomically, replacing an earlier export. An
/// imported model keeps its config.json and its tokenizer; any other becomes a model of the family that its
/// configuration fits, with the tokenizer of its data. Throws Error, leaving `folder` unchanged, if no family has the
/// model's settings, or if tokenizer.json cannot express the tokenizer.
ExportedModel export_model(const std::string& run, const std::filesystem::path& folder);

}  // namespace plumb
