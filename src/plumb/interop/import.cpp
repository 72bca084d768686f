#include "plumb/interop/import.h"

#include <fmt/format.h>

#include <limits>
#include <memory>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "plumb/base/json.h"
#include "plumb/base/json_fields.h"
#include "plumb/base/progress.h"
#include "plumb/interop/families/encoder_head.h"
#include "plumb/interop/family.h"
#include "plumb/interop/tokenizer_files.h"
#include "plumb/model/kind.h"
#include "plumb/model/model.h"
#include "plumb/run/directory.h"
#include "plumb/run/foreign_models.h"
#include "plumb/run/point.h"
#include "plumb/run/seal.h"
#include "plumb/text/tokenizer_model.h"

namespace plumb {
namespace fs = std::filesystem;
namespace {

constexpr const char* kImported = "imported";

/// The task of a model with this configuration.
std::string imported_task(const ModelConfig& config) {
  if (kind_of(config).translates()) return "translation";
  if (kind_of(config).models_language()) return "language-modeling";
  return config.pooling == "none" ? "masked-language-modeling" : "classification";
}

/// The marks of the tokenizer in a folder, by which data that its model can be fine-tuned on are recognized
/// (run/data_fingerprint.h). Data directories store tokenizers as Tokenizer::save writes them.
Json marks_of_tokenizer(const fs::path& folder) {
  const ScratchDirectory scratch;
  const fs::path model = scratch.path() / "tokenizer.model";
  Tokenizer::from_file(folder).save(model);
  return {{"tokenizer.model", described_json(mark_of(model))}};
}

/// Writes data.json of the run in `directory`, with the marks of its tokenizer.
void record_tokenizer(const fs::path& directory) {
  Json record = make_document("fingerprint", 1);
  record["tokenizer"] = marks_of_tokenizer(directory);
  record["splits"] = Json::object();
  seal(record);
  write_json(directory / "data.json", record);
}

}  // namespace

bool is_model_folder(const fs::path& path) {
  std::error_code none;
  return fs::is_regular_file(path / kModelSettings, none) && !fs::exists(path / "config.toml", none);
}

namespace {

RunConfig run_config_of(const ModelConfig& model) {
  RunConfig config;
  config.model = model;
  config.task.name = imported_task(model);
  return config;
}

RunConfig run_config_in(const fs::path& folder) {
  require_known_specials(folder);
  return run_config_of(described_by(Settings(folder / kModelSettings)).config);
}

NamedTensors weights_in_folder(const fs::path& folder) { return read_model_folder(folder).tensors; }

Json tokenizer_in(const fs::path& folder) {
  return tokenizer_files(folder).empty() ? Json::object() : marks_of_tokenizer(folder);
}

const bool kHuggingFaceRegistered = foreign_models().add(
    "huggingface", "folders with config.json and safetensors", "the library `transformers`",
    {.at = is_model_folder, .config = run_config_in, .weights = weights_in_folder, .tokenizer = tokenizer_in});

/// Throws Error if a weight is not a number, and warns if one is infinite, as a bias may be on purpose.
void check_values(const NamedTensors& tensors, const fs::path& folder) {
  for (const auto& [name, tensor] : tensors) {
    if (at::isfinite(tensor).all().item<bool>()) continue;
    if (at::isnan(tensor).any().item<bool>())
      throw Error(fmt::format("{}: weights are not numbers: '{}' contains NaN", folder.string(), name),
                  "copy the folder again; if the original has them, too, its training has diverged");
    warn(fmt::format("{}: '{}' contains infinite weights", folder.string(), name));
  }
}

}  // namespace

ImportedModel read_model_folder(const fs::path& folder) {
  const DescribedModel described = described_by(Settings(folder / kModelSettings));
  ImportedModel imported;
  imported.family = described.family;
  imported.model = described.model;
  imported.config = described.config;
  Weights weights = Weights::from_folder(folder);
  imported.tensors = families().at(imported.family).make.tensors(imported.config, weights);
  weights.require_all_used();
  check_values(imported.tensors, folder);
  imported.left_out = weights.left_out();
  imported.sentence_encoding = read_sentence_encoding(folder);
  for (const auto& [name, tensor] : imported.tensors) imported.parameters += tensor.numel();
  return imported;
}

ImportedModel import_model(const fs::path& folder, const fs::path& out) {
  require_replaceable(out, RunOutcome::imported);
  ImportedModel imported = read_model_folder(folder);
  const std::vector<std::string> tokenizer = tokenizer_files(folder);
  (void)ends_of_texts(folder);
  (void)stated_repetition_penalty(folder);
  {
    const std::unique_ptr<Model> model = make_model(imported.config);  // checks that everything fits together
    load_parameters(model->parameters(), imported.tensors, folder.string());
  }
  const RunConfig config = run_config_of(imported.config);
  Json result = TrainResult{.outcome = RunOutcome::imported}.to_json();
  result[kImported] = {{"model_type", imported.family}, {"architecture", imported.model}};
  if (!imported.left_out.empty()) result[kImported]["left_out"] = imported.left_out;
  if (imported.sentence_encoding) result[kImported]["sentence_vectors"] = to_json(*imported.sentence_encoding);
  write_directory_atomic(
      out, "run",
      [&](const fs::path& directory) {
        claim_output_directory(directory, "run");
        write_file_atomic(directory / "config.toml", to_toml(config));
        save_safetensors(directory / "model.safetensors", imported.tensors);
        copy_files(folder, tokenizer, directory);
        copy_files(folder, {kModelSettings, kGenerationFile}, directory);
        copy_files(folder, sentence_files(folder), directory);
        if (!tokenizer.empty()) record_tokenizer(directory);
        write_json(directory / "result.json", result);
      },
      Links::followed);
  imported.tensors.clear();
  imported.tokenizer = !tokenizer.empty();
  return imported;
}

namespace {

/// The tokens in a key of generation_config.json or else of config.json; none if neither has it.
std::vector<int32_t> tokens_of_key(const fs::path& run, const char* key) {
  for (const char* name : {kGenerationFile, kModelSettings}) {
    if (!fs::is_regular_file(run / name)) continue;
    const std::vector<int64_t> ids = Settings(run / name).integers(key);
    if (ids.empty()) continue;
    for (const int64_t id : ids) {
      if (id < 0 || id > std::numeric_limits<int32_t>::max())
        throw Error(fmt::format("{}: {} = {} is not a token", (run / name).string(), key, id));
    }
    return {ids.begin(), ids.end()};
  }
  return {};
}

}  // namespace

std::vector<int32_t> ends_of_texts(const fs::path& run) { return tokens_of_key(run, "eos_token_id"); }

double stated_repetition_penalty(const fs::path& run) {
  const fs::path file = run / kGenerationFile;
  if (!fs::is_regular_file(file)) return 1;
  const double penalty = Settings(file).number("repetition_penalty", 1);
  if (!(penalty > 0)) throw Error(fmt::format("{}: repetition_penalty = {} is not positive", file.string(), penalty));
  return penalty;
}

std::optional<int64_t> stated_positions(const fs::path& run) {
  const fs::path file = run / kModelSettings;
  if (!fs::is_regular_file(file)) return {};
  Settings settings(file);
  return positions_of(settings);
}

std::vector<std::string> stated_labels(const fs::path& run) {
  const fs::path file = run / kModelSettings;
  if (!fs::is_regular_file(file)) return {};
  Settings settings(file);
  return encoder_head_of(settings) == EncoderHead::labels ? labels_of(settings) : std::vector<std::string>();
}

TranslationTokenizers translation_tokenizers(const fs::path& run) {
  const auto token = [&](const char* key, int32_t otherwise) {
    const std::vector<int32_t> ids = tokens_of_key(run, key);
    return ids.empty() ? otherwise : ids.front();
  };
  const Tokenizer source = Tokenizer::from_file(run);
  const Tokenizer target = fs::is_regular_file(run / "target.spm") ? Tokenizer::from_file(run / "target.spm") : source;
  Specials specials = target.specials();
  specials.pad = token("pad_token_id", specials.pad);
  specials.eos = require_special(token("eos_token_id", specials.eos), "end of a text");
  specials.bos = require_special(token("decoder_start_token_id", specials.pad), "beginning of a translation");
  Specials of_source = source.specials();
  of_source.eos = specials.eos;
  return {source.with_specials(of_source), target.with_specials(specials)};
}

}  // namespace plumb
