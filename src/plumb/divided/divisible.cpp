#include "plumb/divided/divisible.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "plumb/base/error.h"
#include "plumb/model/kind.h"
#include "plumb/nn/attention/attention.h"
#include "plumb/nn/norm/norm.h"
#include "plumb/nn/position/position.h"
#include "plumb/nn/residual/residual.h"

namespace plumb {
namespace {

std::string quoted(const std::string& name) { return '"' + name + '"'; }

void require_sizes(const ModelConfig& config, int64_t processes, const std::string& option) {
  const int64_t kv_heads = heads_of(config).kv_heads;
  const int64_t common = std::gcd(std::gcd(config.heads, kv_heads), config.feed_forward);
  int64_t fitting = std::min(processes, common);
  while (common % fitting != 0) --fitting;
  const auto require = [&](const char* key, int64_t size) {
    if (size % processes == 0) return;
    throw Error(
        fmt::format("model.{} = {} cannot be divided among the {} processes of {}", key, size, processes, option),
        fmt::format("the nearest size that fits is {}; the nearest {} that fits this model is {}",
                    nearest_multiple(size, processes), option, fitting));
  };
  require("heads", config.heads);
  require("kv_heads", kv_heads);
  require("feed_forward", config.feed_forward);
}

/// Whether the norm keeps running averages, of the tokens that it sees.
bool averages(const std::string& norm, int64_t width) {
  if (norm == "none") return false;
  Parameters unused(at::kFloat, at::kMeta);
  static_cast<void>(norms().at(norm).make(unused, "norm", width, 1e-5));
  return !unused.buffers().empty();
}

}  // namespace

int64_t nearest_multiple(int64_t size, int64_t of) { return std::max<int64_t>((size + of / 2) / of, 1) * of; }

void require_divisible(const ModelConfig& config, int64_t processes, const std::string& option) {
  const auto refuse = [&](const std::string& key, const std::string& value, const std::string& why) {
    throw Error(fmt::format("{} = {} cannot be combined with {}: {}", key, value, option, why),
                fmt::format("change {}, or set {} to 1", key, option));
  };
  if (kind_of(config).recurrent) refuse("model.kind", quoted(config.kind), "it has no heads to divide");
  if (config.lora.rank > 0) refuse("model.lora.rank", std::to_string(config.lora.rank), "adapters are not divided");
  const ops::HeadShape heads = heads_of(config);
  Parameters unused(at::kFloat, at::kMeta);
  if (!make_attention(config.attention, unused, {"attention", config.d_model, heads, config.options, nullptr})
           ->divisible())
    refuse("model.attention", quoted(config.attention), "its heads are not computed separately");
  const auto relative =
      make_positions(config.positions, unused, "positions",
                     {config.d_model, config.heads, config.max_positions, true, config.head_size, config.options})
          ->within(unused, "attention.positions");
  if (relative && !relative->divisible())
    refuse("model.positions", quoted(config.positions), "its numbers for each head are not divided");
  for (const std::string& residual : {config.residual, residual_of(config, StackKind::encoder)}) {
    const Prescription prescribed = prescription_of(residual);
    if (prescribed.unit_matrices) refuse("model.residual", quoted(residual), "its matrices consist of unit vectors");
    if (prescribed.qkv_norm && averages(config.norm, heads.size))
      refuse("model.norm", quoted(config.norm), "within attention, it is over the batch and all heads");
  }
  if (averages(config.qk_norm, heads.size)) refuse("model.qk_norm", quoted(config.qk_norm), "it is over the batch");
  require_sizes(config, processes, option);
}

}  // namespace plumb
