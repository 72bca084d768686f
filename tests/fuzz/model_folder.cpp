// A folder of a Hugging Face model: config.json, generation_config.json, the index of several files, and the weights.
// An accepted model has every tensor once, and the config.json written for it has the same keys
// after it is read again.
#include <cstdlib>
#include <set>

#include "folder.h"
#include "plumb/base/error.h"
#include "plumb/base/input.h"
#include "plumb/interop/family.h"
#include "plumb/interop/tokenizer_files.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plumb;
  static const fuzz::Folder folder;
  const auto parts = fuzz::parts_of({reinterpret_cast<const char*>(data), size}, 4);
  const std::filesystem::path index = folder.path() / "model.safetensors.index.json";
  std::filesystem::remove(index);
  folder.write(kModelSettings, parts[0]);
  folder.write(kGenerationFile, parts[1]);
  if (!parts[2].empty()) folder.write(index.filename(), parts[2]);
  folder.write("model.safetensors", parts[3]);
  try {
    (void)Settings(folder.path() / kGenerationFile).integers("eos_token_id");
  } catch (const Error&) {
  }
  try {
    const DescribedModel described = described_by(Settings(folder.path() / kModelSettings));
    Weights weights = Weights::from_folder(folder.path());
    const Family& family = families().at(described.family).make;
    std::set<std::string> names;
    for (const auto& [name, tensor] : family.tensors(described.config, weights)) {
      if (!names.insert(name).second || !tensor.is_floating_point()) std::abort();
    }
    weights.require_all_used();
    if (family.settings == nullptr) return 0;
    const Json written = family.settings(described.config);
    Json keys = written;
    keys["model_type"] = described.family;
    keys["architectures"] = Json::array({described.model});
    if (family.settings(described_by(Settings(keys, "config.json")).config) != written) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
