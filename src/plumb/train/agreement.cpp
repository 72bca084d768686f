#include "plumb/train/agreement.h"

#include <fmt/format.h>
#include <torch/version.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "plumb/base/crc32.h"
#include "plumb/base/files.h"
#include "plumb/base/toml_text.h"

namespace plumb {
namespace {

constexpr size_t kTokensHeader = 40;  // of a file of tokens; contains the checksum of the rest

std::string file_checksum(const std::filesystem::path& file, size_t most) {
  const MappedFile mapped(file);
  const auto bytes = mapped.bytes();
  return fmt::format("{:08x}", crc32_of(bytes.first(std::min(most, bytes.size()))));
}

}  // namespace

Facts facts_of(const RunConfig& config, const DataDirectory& data) {
  Facts facts = {{"the version of LibTorch", TORCH_VERSION}};
  for (const auto& [key, value] : key_values(to_toml(config))) {
    if (key != "data.directory" && !key.starts_with("watch.")) facts.emplace_back(key, value);
  }
  for (const char* name : {"tokenizer.model", "source.model", "target.model"}) {
    if (const auto file = data.path() / name; std::filesystem::exists(file))
      facts.emplace_back(fmt::format("the checksum of the data's {}", name), file_checksum(file, SIZE_MAX));
  }
  for (const CorpusSize& corpus : data.split("train").corpora())
    facts.emplace_back(fmt::format("the size of the data's corpus '{}'", corpus.name), std::to_string(corpus.size));
  for (const char* name : {"train", "valid"}) {
    for (const char* ending : {"tokens", "labels"}) {
      const std::string file = fmt::format("splits/{}.{}", name, ending);
      if (!std::filesystem::exists(data.path() / file)) continue;
      const size_t most = std::string_view(ending) == "tokens" ? kTokensHeader : SIZE_MAX;
      facts.emplace_back(fmt::format("the checksum of the data's {}", file), file_checksum(data.path() / file, most));
    }
  }
  return facts;
}

}  // namespace plumb
