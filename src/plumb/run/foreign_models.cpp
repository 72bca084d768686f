#include "plumb/run/foreign_models.h"

namespace plumb {

Registry<ForeignModel>& foreign_models() {
  static Registry<ForeignModel> registry("library");
  return registry;
}

const ForeignModel* foreign_model_at(const std::filesystem::path& path) {
  for (const auto& [name, entry] : foreign_models().entries()) {
    if (entry.make.at(path)) return &entry.make;
  }
  return nullptr;
}

}  // namespace plumb
