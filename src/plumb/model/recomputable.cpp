#include "plumb/model/recomputable.h"

#include <fmt/format.h>

#include <string>

#include "plumb/base/error.h"
#include "plumb/model/kind.h"
#include "plumb/nn/norm/norm.h"

namespace plumb {

void require_recomputable(const ModelConfig& config) {
  const auto refuse = [](const char* key, const std::string& value, const char* why) {
    throw Error(fmt::format("model.{} = \"{}\" cannot be combined with train.recompute: {}", key, value, why),
                "set train.recompute to false");
  };
  if (kind_of(config).recurrent) refuse("kind", config.kind, "its layers keep their activations");
  const auto require = [&](const char* key, const std::string& norm) {
    if (norm == "none") return;
    Parameters unused(at::kFloat, at::kMeta);
    if (!norms().at(norm).make(unused, "norm", 1, config.norm_eps)->repeatable())
      refuse(key, norm, "it reads the running averages that it updates");
  };
  require("norm", config.norm);
  require("qk_norm", config.qk_norm);
}

}  // namespace plumb
