// Which class of `transformers` reads a tokenizer.json. Its AutoTokenizer (version 5) goes by `tokenizer_class` of
// tokenizer_config.json or config.json and by `model_type` of config.json.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "plumb/base/json.h"

namespace plumb {

/// The class that reads the tokenizer.json in `folder`, whose content is `bytes`: one that makes its own components
/// from the vocabulary in the file (kinds/class_components.h). Empty if the file is taken as it is, as for models
/// of types that cannot be imported, and classes that are not theirs. `settings` are those of tokenizer_config.json.
std::string tokenizer_class_in(const std::filesystem::path& folder, const Json& settings, std::string_view bytes);

}  // namespace plumb
