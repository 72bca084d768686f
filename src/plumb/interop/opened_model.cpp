#include "plumb/interop/opened_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "plumb/base/checksum.h"
#include "plumb/base/error.h"
#include "plumb/base/text.h"
#include "plumb/data/directory.h"
#include "plumb/interop/import.h"
#include "plumb/run/data_fingerprint.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

/// The files of a Hugging Face model, besides its weights, that affect its output.
constexpr const char* kSettings[] = {"config.json",       "generation_config.json",
                                     "tokenizer.json",    "tokenizer_config.json",
                                     "tokenizer.model",   "special_tokens_map.json",
                                     "added_tokens.json", "vocab.txt",
                                     "vocab.json",        "vocab.bpe",
                                     "merges.txt"};

}  // namespace

OpenedModel open_model(const std::string& name) {
  RunAndCheckpoint place = locate_run(name);
  RunConfig config = load_run_config(place.run);
  std::unique_ptr<Model> model = load_model(place.run, place.checkpoint);
  return {.place = std::move(place), .config = std::move(config), .model = std::move(model)};
}

std::vector<std::string> labels_of(const fs::path& run) {
  std::vector<std::string> labels = stated_labels(run);
  if (labels.empty()) labels = recorded_labels(run);
  if (!labels.empty() || is_model_folder(run)) return labels;
  const fs::path data = load_run_config(run).data;
  return fs::exists(data / "data.json") ? DataDirectory::open(data).labels() : labels;
}

std::vector<int64_t> outputs_of_labels(const std::vector<std::string>& of_model,
                                       const std::vector<std::string>& of_data, const std::string& data) {
  std::vector<int64_t> outputs;
  for (const std::string& label : of_data)
    outputs.push_back(std::find(of_model.begin(), of_model.end(), label) - of_model.begin());
  const bool unknown = std::count(outputs.begin(), outputs.end(), std::ssize(of_model)) > 0;
  if (unknown || of_data.size() != of_model.size()) {
    throw Error(
        fmt::format("{}: its labels are {}, but those of the model are {}", data, join(of_data), join(of_model)),
        "labels are matched by name: prepare the data with the model's names; those of an imported model are "
        "in id2label of its config.json");
  }
  return outputs;
}

int64_t context_length(const Generates& model, const fs::path& run) {
  constexpr int64_t kUnlimited = 2048;
  if (const auto stated = stated_positions(run)) return std::min(*stated, model.longest());
  return model.longest() == std::numeric_limits<int64_t>::max() ? kUnlimited : model.longest();
}

Json model_digests(const RunAndCheckpoint& place) {
  std::map<std::string, std::string> digests;  // by name, since directories list entries in any order
  for (const auto& entry : fs::directory_iterator(place.checkpoint)) {
    const std::string name = entry.path().filename().string();
    const bool has_weights = name == "model.safetensors" || is_model_folder(place.run);
    if (has_weights && name.ends_with(".safetensors")) digests[name] = digest_of(entry.path()).sha256;
  }
  for (const char* name : kSettings) {
    if (fs::is_regular_file(place.run / name)) digests[name] = digest_of(place.run / name).sha256;
  }
  return Json(digests);
}

}  // namespace plumb
