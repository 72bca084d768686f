#include "plumb/run/initial_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/base/text.h"
#include "plumb/model/kind.h"
#include "plumb/model/merged_adapters.h"
#include "plumb/run/checkpoints.h"
#include "plumb/run/data_fingerprint.h"
#include "plumb/run/directory.h"
#include "plumb/run/foreign_models.h"
#include "plumb/run/vocabulary_rows.h"

namespace plumb {
namespace fs = std::filesystem;
namespace {

/// Parameters with a row per piece, except for the output layer of a classifier.
constexpr std::array<std::string_view, 6> kOfVocabulary = {"src_embed.weight", "tgt_embed.weight", "embedding.weight",
                                                           "output.weight",    "output.bias",      "output.scale"};

/// The tokenizers of a run's source and target.
struct FormerTokenizers {
  Tokenizer source, target;
};

/// The tokenizers that a run was trained with: from its data, or from the imported model itself. Throws Error if the
/// data are gone or have changed.
FormerTokenizers former_tokenizers(const fs::path& run, const DataDirectory& data) {
  const std::string former = load_run_config(run).data;
  if (former.empty()) return {Tokenizer::from_file(run), Tokenizer::from_file(run)};
  const std::string what =
      fmt::format("{}: its vocabulary is not the one that {} was trained with", data.path().string(), run.string());
  if (!fs::exists(fs::path(former) / "data.json")) {
    throw Error(fmt::format("{}, and that one is no longer in {}", what, former),
                "restore that directory: weights are moved from one vocabulary to the other by piece");
  }
  DataDirectory found = DataDirectory::open(former);
  if (!has_vocabulary_of(run, found))
    throw Error(fmt::format("{}, and {} now has a different one", what, former), "restore that directory");
  return {found.source_tokenizer(), found.target_tokenizer()};
}

/// Moves the parameters with a row per piece to the vocabulary of `data`. Returns a message for the user.
std::string move_to_vocabulary(NamedTensors& tensors, const Model& model, const fs::path& run,
                               const DataDirectory& data) {
  const FormerTokenizers former = former_tokenizers(run, data);
  const bool encodes = kind_of(model.config()).only_encodes();
  int64_t pieces = 0, kept = 0;
  for (auto& [name, values] : tensors) {
    if (!contains(kOfVocabulary, name)) continue;
    const Parameter* parameter = model.parameters().find(name);
    if (parameter == nullptr) continue;
    const bool of_source = encodes || name.starts_with("src_");
    const Tokenizer& from = of_source ? former.source : former.target;
    const Tokenizer& to = of_source ? data.source_tokenizer() : data.target_tokenizer();
    if (values.dim() == 0 || values.size(0) < from.vocabulary()) continue;  // load_parameters reports its shape
    const std::vector<int64_t> rows = rows_of_pieces(from, to);
    values = with_rows(values, rows, parameter->value.size(0), from.vocabulary());
    pieces = std::ssize(rows);
    kept = std::count_if(rows.begin(), rows.end(), [](int64_t row) { return row >= 0; });
  }
  return fmt::format("{} of the vocabulary's {} pieces are those of {}; new ones begin with the mean embedding",
                     with_thousands(kept), with_thousands(pieces), run.string());
}

/// The tensors of a run's checkpoint, with its adapters, if any, merged into the matrices.
NamedTensors without_adapters(NamedTensors tensors, const fs::path& run, const fs::path& file) {
  const bool adapted =
      std::any_of(tensors.begin(), tensors.end(), [](const auto& entry) { return is_of_adapter(entry.first); });
  return adapted ? merge_adapters(tensors, load_run_config(run).model.lora, file.string()) : std::move(tensors);
}

}  // namespace

bool is_of_head(const std::string& parameter) {
  return parameter.starts_with("output.") || parameter.starts_with("pooler.") || parameter.starts_with("transform");
}

bool has_labels_of(const fs::path& run, const DataDirectory& data) {
  return foreign_model_at(run) == nullptr && !data.labels().empty() && recorded_labels(run) == data.labels();
}

std::string load_initial_weights(Model& model, const fs::path& checkpoint, const DataDirectory& data) {
  const fs::path file = checkpoint / "model.safetensors";
  if (const std::string damage =
          fs::exists(checkpoint / "state.json") ? damage_of(checkpoint, "model.safetensors") : "";
      !damage.empty()) {
    throw Error(fmt::format("{}: {}", checkpoint.string(), damage),
                "give another checkpoint; or, if the weights were changed on purpose, remove state.json beside them");
  }
  NamedTensors tensors = weights_in(checkpoint);
  const fs::path run = locate_run(checkpoint.string()).run;
  tensors = without_adapters(std::move(tensors), run, file);
  const ModelConfig former = load_run_config(run).model, &own = model.config();
  const bool classifies = model.classifies() != nullptr;
  const bool takes_head = has_labels_of(run, data) && former.pooling == own.pooling && former.pooler == own.pooler;
  const auto keeps_own = [&](const std::string& name) {
    return is_of_adapter(name) || (classifies && !takes_head && is_of_head(name));
  };
  std::erase_if(tensors, [&](const auto& entry) { return keeps_own(entry.first); });
  for (auto& [name, value] : named_values(model.parameters())) {
    if (keeps_own(name)) tensors.emplace_back(name, value.clone());
  }
  std::vector<std::string> notes;
  if (classifies && former.labels > 0)
    notes.push_back(
        fmt::format("the output layer is {} {}", takes_head ? "that of" : "new, not that of", run.string()));
  if (!has_vocabulary_of(run, data)) notes.push_back(move_to_vocabulary(tensors, model, run, data));
  load_parameters(model.parameters(), tensors, file.string());
  return join(notes, "; ");
}

}  // namespace plumb
