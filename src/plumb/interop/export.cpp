#include "plumb/interop/export.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <utility>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "plumb/base/json.h"
#include "plumb/data/directory.h"
#include "plumb/interop/family.h"
#include "plumb/interop/fit.h"
#include "plumb/interop/import.h"
#include "plumb/interop/sentence_encoding.h"
#include "plumb/interop/tokenizer_files.h"
#include "plumb/model/kind.h"
#include "plumb/model/merged_adapters.h"
#include "plumb/ops/torch.h"
#include "plumb/run/data_fingerprint.h"
#include "plumb/run/directory.h"

namespace plumb {
namespace fs = std::filesystem;
namespace {

constexpr const char* kExport = "export";

/// The type to which the types of all tensors are promoted.
at::ScalarType common_type(const NamedTensors& tensors) {
  at::ScalarType type = tensors.front().second.scalar_type();
  for (const auto& [name, tensor] : tensors) type = at::promote_types(type, tensor.scalar_type());
  return type;
}

/// The tensors under the names of `transformers`. The family's linear map L from theirs to ours sends every element to
/// one or more places, times constants, and no two elements to the same place. So Lᵀ·L is diagonal, and the inverse of
/// L is Lᵀ divided by that diagonal, Lᵀ·L·1. Automatic differentiation yields Lᵀ. Throws Error if `ours` are not the
/// tensors of the model.
NamedTensors their_tensors(const Family& family, const ModelConfig& config, const NamedTensors& ours,
                           const std::string& origin) {
  const at::AutoGradMode with_graph(true);
  Weights recorded = Weights::recording(common_type(ours));
  const NamedTensors of_ones = family.tensors(config, recorded);
  std::map<std::string, Tensor> values(ours.begin(), ours.end());
  std::vector<Tensor> outputs, ones, cotangents, inputs;
  for (const auto& [name, image] : of_ones) {
    const auto entry = values.find(name);
    if (entry == values.end() || entry->second.sizes() != image.sizes())
      throw Error(fmt::format("{}: '{}' is missing, or has a different shape than config.toml implies", origin, name));
    outputs.push_back(image);
    ones.push_back(image.detach());
    cotangents.push_back(entry->second.to(image.scalar_type()));
    values.erase(entry);
  }
  if (!values.empty())
    throw Error(fmt::format("{}: the model of config.toml has no tensor '{}'", origin, values.begin()->first));
  for (const auto& [name, tensor] : recorded.requests()) inputs.push_back(tensor);
  const std::vector<Tensor> diagonal = gradients(outputs, inputs, ones, /*create_graph=*/false, /*retain_graph=*/true);
  const std::vector<Tensor> images = gradients(outputs, inputs, cotangents);
  const at::NoGradGuard no_graph;
  NamedTensors theirs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    // An element without a place in our model, such as an unused position, becomes 0.
    const Tensor divisor = diagonal[i].masked_fill(diagonal[i] == 0, 1);
    theirs.emplace_back(recorded.requests()[i].first, (images[i] / divisor).contiguous());
  }
  return theirs;
}

/// Throws Error if the family's map does not take `theirs` to `ours`, because the family has one tensor where the model
/// has two that differ.
void check_tensors(const Family& family, const ModelConfig& config, const NamedTensors& theirs,
                   const NamedTensors& ours, const std::string& origin) {
  const at::NoGradGuard no_graph;
  Weights weights(theirs, origin);
  const std::map<std::string, Tensor> values(ours.begin(), ours.end());
  for (const auto& [name, tensor] : family.tensors(config, weights)) {
    const Tensor own = values.at(name).to(at::kDouble);
    constexpr double kRounding = 1e-5;
    if (!at::allclose(tensor.to(at::kDouble), own, kRounding, kRounding * own.abs().max().item<double>()))
      throw Error(fmt::format("{}: '{}' differs from the matrix that it is tied to in this family", origin, name),
                  "see model.share_embeddings");
  }
}

/// The config.json that an imported model came with, if it still describes the model.
std::optional<Json> imported_settings(const fs::path& run, const ModelConfig& config) {
  if (!fs::is_regular_file(run / kModelSettings)) return {};
  const Json settings = read_json(run / kModelSettings);
  if (!compute_the_same(described_by(Settings(run / kModelSettings)).config, config)) return {};
  return settings;
}

/// The parts that an import left out.
std::vector<std::string> left_out_of(const fs::path& run) {
  const fs::path file = run / "result.json";
  if (!fs::is_regular_file(file)) return {};
  return take_json(file, [](const Json& result) {
    return result.value("imported", Json::object()).value("left_out", std::vector<std::string>());
  });
}

/// What an exported folder takes from the run's training data; empty if the run has none.
struct FromData {
  std::optional<Tokenizer> tokenizer;  // none if the two sides have different ones
  std::vector<std::string> labels;
};

FromData from_data_of(const RunConfig& config, const fs::path& run) {
  if (config.data.empty()) return {};
  const DataDirectory data = DataDirectory::open(config.data);
  FromData result{{}, recorded_labels(run)};
  if (result.labels.empty()) result.labels = data.labels();  // a run of an earlier release
  if (!kind_of(config.model).translates() || data.joint()) result.tokenizer = data.target_tokenizer();
  return result;
}

/// The ids of special tokens, as config.json and generation_config.json have them.
Json special_ids(const std::optional<Tokenizer>& tokenizer, const ModelKind& kind) {
  const auto id = [&](int32_t Specials::*which) {
    return tokenizer && tokenizer->specials().*which >= 0 ? Json(tokenizer->specials().*which) : Json();
  };
  Json ids = {
      {"bos_token_id", id(&Specials::bos)}, {"eos_token_id", id(&Specials::eos)}, {"pad_token_id", id(&Specials::pad)}};
  if (tokenizer && kind.translates()) ids["decoder_start_token_id"] = token_before_text(tokenizer->specials());
  return ids;
}

/// The special tokens that this model reads with a text.
TextEnds ends_of(const ModelConfig& model) {
  const ModelKind& kind = kind_of(model);
  return {.bos = !kind.translates(), .eos = kind.reads_source, .segments = model.segments > 1};
}

}  // namespace

ExportedModel export_model(const std::string& name, const fs::path& folder) {
  if (is_model_folder(name))
    throw Error(fmt::format("{}: is the folder of a Hugging Face model already", name), "copy the folder");
  check_output_directory(folder, kExport);
  const RunAndCheckpoint place = locate_run(name);
  RunConfig config = load_run_config(place.run);
  const LoraOptions adapters = std::exchange(config.model.lora, LoraOptions{});
  const std::optional<Json> imported = imported_settings(place.run, config.model);
  const std::vector<std::string> files = tokenizer_files(place.run);
  const FromData data = files.empty() ? from_data_of(config, place.run) : FromData{};
  const std::optional<Tokenizer>& tokenizer = data.tokenizer;

  Json settings = imported ? *imported : fitting_settings(config.model);
  const fs::path weights = place.checkpoint / "model.safetensors";
  const Family& family = families().at(settings.at("model_type").get<std::string>()).make;
  const NamedTensors ours = merge_adapters(load_safetensors(weights), adapters, weights.string());
  const NamedTensors tensors = their_tensors(family, config.model, ours, weights.string());
  check_tensors(family, config.model, tensors, ours, weights.string());
  if (!imported) settings.update(special_ids(tokenizer, kind_of(config.model)));
  if (!imported && !data.labels.empty()) name_labels(data.labels, settings);

  ExportedModel exported;
  exported.family = settings.at("model_type");
  exported.model = settings.at("architectures").at(0);
  exported.tokenizer = tokenizer || !files.empty();
  if (imported) exported.left_out = left_out_of(place.run);
  for (const auto& [tensor_name, tensor] : tensors) exported.parameters += tensor.numel();
  write_directory_atomic(
      folder, kExport,
      [&](const fs::path& directory) {
        claim_output_directory(directory, kExport);
        save_safetensors(directory / "model.safetensors", tensors, {{"format", "pt"}});
        copy_files(place.run, files, directory);
        if (imported) {
          copy_files(place.run, {kModelSettings, kGenerationFile}, directory);
          copy_files(place.run, sentence_files(place.run), directory);
        } else {
          write_json(directory / kModelSettings, settings);
        }
        if (!tokenizer) return;
        tokenizer->save_as_json(directory / "tokenizer.json", ends_of(config.model));
        if (const ModelKind& kind = kind_of(config.model); kind.reads_target)
          write_json(directory / kGenerationFile, special_ids(tokenizer, kind));
      },
      Links::followed);
  return exported;
}

}  // namespace plumb
