// plumb bench hvp: a gradient, Hessian-vector products, and a Lanczos step.
#include <cmath>

#include "bench.h"
#include "plumb/analysis/curvature/basis.h"
#include "plumb/analysis/curvature/hessian.h"
#include "plumb/analysis/curvature/lanczos.h"
#include "plumb/base/machine.h"
#include "plumb/model/flops.h"

namespace plumb::app::bench {
namespace {

/// One Lanczos step with its orthogonalization against 50 vectors (the average over 100 steps), and the memory read
/// rate of the orthogonalization and of plain sums.
Json lanczos_seconds(HessianOperator& hessian, const Tensor& v, double product, int64_t runs) {
  constexpr int64_t kVectors = 50;
  Basis basis(kVectors, v.numel(), v.options());
  for (int64_t i = 0; i < kVectors; ++i) basis.append(random_probe(v.numel(), v.options(), 1, i), 1.0);
  const Tensor w = hessian(v);
  const double seconds = median_seconds(runs, [&] {
    Tensor copy = w.clone();
    (void)basis.orthogonalize(copy);
  });
  const double reading = device_seconds(runs, v.device(), [&] {
    for (int64_t i = 0; i < kVectors; ++i) (void)basis[i].sum();
  });
  const auto bytes = static_cast<double>(kVectors * v.numel()) * 4;
  return {{"lanczos_step_seconds", product + seconds},
          {"orthogonalize_seconds", seconds},
          {"orthogonalize_gigabytes_per_second", 1e-9 * 3 * bytes / seconds},  // V is read three times
          {"reading_gigabytes_per_second", 1e-9 * bytes / reading}};
}

/// Four vectors at once compared with one at a time, without keeping the graphs.
Json block_seconds(Model& model, const std::vector<Batch>& batches, const Tensor& v, int64_t runs) {
  HessianOptions options;
  options.graph_memory = 0;
  HessianOperator hessian(model, batches, options);
  const double one = device_seconds(runs, v.device(), [&] { hessian(v); });
  const double four = device_seconds(runs, v.device(), [&] { hessian.multiply({v, v, v, v}); });
  return {
      {"hvp_seconds_graph_not_kept", one}, {"hvp_seconds_four_at_once", four / 4}, {"block_factor", 4 * one / four}};
}

struct ProductArguments {
  Sizes sizes{256, 1024, 4, 6, 10000, 16, 24};
  std::string directory;  // to export to, if any
};

Json measure(const ProductArguments& arguments, uint64_t seed) {
  const Sizes& sizes = arguments.sizes;
  const std::unique_ptr<Model> built = random_model(sizes, seed);
  Model& model = *built;
  const std::vector<Batch> batches = {random_batch(sizes, seed)};
  const double gradient = median_seconds(sizes.runs, [&] { mean_loss(model, batches); });
  HessianOperator hessian(model, batches);
  const Tensor v =
      at::ones({hessian.size()}, model.parameters().options()) / std::sqrt(static_cast<double>(hessian.size()));
  if (!arguments.directory.empty()) {
    const Json work = {{"batch", batch_json(batches.front())},
                       {"loss", mean_loss(model, batches).loss},
                       {"curvature", v.dot(hessian(v)).item<double>()}};  // along v, a unit vector of equal elements
    export_work(arguments.directory, "hvp", sizes_json(sizes), work, &model);
  }
  const double product = device_seconds(sizes.runs, v.device(), [&] { hessian(v); });
  Json json = result_document("hvp", sizes_json(sizes));
  const double ceiling = ceiling_gflops();
  json["parameters"] = hessian.size();
  json["gradient_seconds"] = gradient;
  json["hvp_seconds"] = product;
  json["ratio"] = product / gradient;
  json["ceiling_gflops"] = ceiling;
  json["ceiling_fraction"] = 6e-9 * FlopCounter(model).forward(batches.front()) / product / ceiling;
  json["peak_memory_bytes"] = peak_resident_memory();
  const std::vector<ParameterBlock> layers = layer_blocks(model.parameters());
  std::vector<Tensor> directions;
  for (const ParameterBlock& layer : layers) directions.push_back(v.narrow(0, 0, layer.size));
  const double by_layer = median_seconds(sizes.runs, [&] { hessian.multiply_blocks(layers, directions); });
  json["layers_seconds"] = by_layer;
  json["layers"] = layers.size();
  json["layers_ratio"] = by_layer / product;
  json.update(lanczos_seconds(hessian, v, product, sizes.runs));
  json.update(block_seconds(model, batches, v, sizes.runs));
  return json;
}

void add_hvp(CLI::App& bench, Globals& globals) {
  const auto arguments = std::make_shared<ProductArguments>();
  CLI::App* verb = add_measurement(bench, globals, "hvp",
                                   "Time a gradient, and a Hessian-vector product with the gradient's graph kept",
                                   [arguments, &globals] { return measure(*arguments, globals.seed); });
  add_export_option(*verb, arguments->directory);
  add_sizes(*verb, arguments->sizes);
}

const bool kHvpRegistered = register_verb({Heading::benchmarks, 30, add_hvp});

}  // namespace
}  // namespace plumb::app::bench
