// Reads folders of Hugging Face models: config.json, safetensors and tokenizer files, as they are on disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "plumb/interop/sentence_encoding.h"
#include "plumb/io/safetensors.h"
#include "plumb/model/config.h"
#include "plumb/run/config.h"
#include "plumb/text/tokenizer.h"

namespace plumb {

struct ImportedModel {
  std::string family;  // model_type: "gpt2"
  std::string model;   // the class of `transformers`: "GPT2LMHeadModel"
  ModelConfig config;
  NamedTensors tensors;                               // under Plumb's names, of the types in the file
  int64_t parameters = 0;                             // elements of all tensors
  std::vector<std::string> left_out;                  // parts that Plumb's model does not have, in words: "pooler"
  std::optional<SentenceEncoding> sentence_encoding;  // of a sentence encoder
  bool tokenizer = false;                             // whether import_model found one
};

/// Whether a path is a folder of a Hugging Face model, rather than an imported model.
bool is_model_folder(const std::filesystem::path& path);

/// Reads the model in a folder. Throws Error, naming what is unknown or does not fit: the architecture, a key of
/// config.json that may change what the model computes, or its value; a tensor that is missing, unexpected, of a shape
/// other than config.json implies, or not made of numbers. Warns of infinite weights.
ImportedModel read_model_folder(const std::filesystem::path& folder);

/// Writes the same model as a directory that can be used like a run, with a copy of the folder's tokenizer, if it has
/// one; it can be fine-tuned, but not resumed. Returns what was read, without tensors. Throws Error if `out` contains
/// anything but an earlier import, and for the reasons above, before anything is written.
ImportedModel import_model(const std::filesystem::path& folder, const std::filesystem::path& out);

/// The tokenizers of an imported translation model; BOS, EOS and padding are decoder_start_token_id, eos_token_id and
/// pad_token_id of generation_config.json or else of config.json.
struct TranslationTokenizers {
  Tokenizer source, target;
};
TranslationTokenizers translation_tokenizers(const std::filesystem::path& run);

/// The tokens that end a text of an imported model: eos_token_id of generation_config.json or else of config.json, a
/// number or a list. Empty if neither has it. Throws Error if it is anything else.
std::vector<int32_t> ends_of_texts(const std::filesystem::path& run);

/// repetition_penalty of generation_config.json, which `transformers` applies to every continuation, including greedy
/// ones; 1 without the file or the key. Throws Error if it is not a positive number.
double stated_repetition_penalty(const std::filesystem::path& run);

/// The names of the labels that an imported model, or the model of a folder, predicts, in the order of its outputs:
/// id2label of config.json, or LABEL_0, LABEL_1, … without it, as `transformers` names them. Empty without config.json,
/// and for a model that does not classify.
std::vector<std::string> stated_labels(const std::filesystem::path& run);

/// The number of tokens that config.json of an imported model says it reads at once (positions_of). nullopt without
/// config.json or such a key. Throws Error if it is less than 1.
std::optional<int64_t> stated_positions(const std::filesystem::path& run);

}  // namespace plumb
