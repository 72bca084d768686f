// plumb bench attention: self-attention at increasing lengths.
#include "bench.h"
#include "plumb/analysis/attention_cost.h"
#include "plumb/base/machine.h"

namespace plumb::app::bench {
namespace {

struct AttentionArguments {
  Sizes sizes{256, 1024, 4, 1, 10000, 1, 4096, 3};
  std::string kind = "softmax";
  std::string directory;  // to export to, if any
};

Json measure(const AttentionArguments& arguments, uint64_t seed) {
  const auto& [sizes, kind, directory] = arguments;
  Json json = result_document("attention", sizes_json(sizes));
  json["kind"] = kind;
  json["lengths"] = Json::array();
  std::vector<int64_t> lengths;
  for (int64_t length = 64; length <= sizes.length; length *= 2) {
    const AttentionCost cost = measure_attention_cost(kind, {}, sizes.d_model, sizes.heads, length, sizes.runs, seed);
    lengths.push_back(length);
    json["lengths"].push_back({{"length", length},
                               {"forward_seconds", cost.forward_seconds},
                               {"gradient_seconds", cost.gradient_seconds},
                               {"held_bytes", cost.held_bytes}});
  }
  if (!directory.empty()) export_work(directory, "attention", sizes_json(sizes), {{"lengths", lengths}});
  json["peak_memory_bytes"] = peak_resident_memory();
  return json;
}

void add_attention(CLI::App& bench, Globals& globals) {
  const auto arguments = std::make_shared<AttentionArguments>();
  CLI::App* verb = add_measurement(bench, globals, "attention", "Time causal self-attention at increasing lengths",
                                   [arguments, &globals] { return measure(*arguments, globals.seed); });
  add_export_option(*verb, arguments->directory);
  add_sizes(*verb, arguments->sizes);
  verb->add_option("--kind", arguments->kind, "Kind of attention")->check(CLI::IsMember(attentions().names()));
}

const bool kAttentionRegistered = register_verb({Heading::benchmarks, 60, add_attention});

}  // namespace
}  // namespace plumb::app::bench
