#include "plumb/train/initial_weights.h"

#include <utility>

#include "plumb/io/safetensors.h"

namespace plumb {

bool is_of_head(const std::string& parameter) {
  return parameter.starts_with("output.") || parameter.starts_with("pooler.") || parameter.starts_with("transform");
}

void load_initial_weights(Model& model, const std::filesystem::path& checkpoint) {
  const std::filesystem::path file = checkpoint / "model.safetensors";
  NamedTensors tensors = load_safetensors(file);
  if (model.classifies() != nullptr) {
    std::erase_if(tensors, [](const auto& entry) { return is_of_head(entry.first); });
    for (auto& [name, value] : named_values(model.parameters())) {
      if (is_of_head(name)) tensors.emplace_back(name, value.clone());
    }
  }
  load_parameters(model.parameters(), tensors, file.string());
}

}  // namespace plumb
