
#include "plumb/text/pipeline/components.h"
#include "plumb/text/pipeline/settings.h"

namespace plumb::tokenization {

Registry<Maker<std::shared_ptr<const Model>>>& models() {
  static Registry<Maker<std::shared_ptr<const Model>>> registry("tokenizer model");
  return registry;
}

namespace {

/// Old files do not name the kind of model.
std::string kind_of(const Settings& settings) {
  if (settings.contains("type")) return settings.at("type").get<std::string>();
  if (settings.contains("merges")) return "BPE";
  if (settings.contains("continuing_subword_prefix")) return "WordPiece";
  if (settings.contains("vocab") && settings.at("vocab").is_array()) return "Unigram";
  return "WordLevel";
}

}  // namespace

std::shared_ptr<const Model> make_token_model(const Settings& settings) {
  return models().at(kind_of(settings)).make(settings);
}

}  // namespace plumb::tokenization
