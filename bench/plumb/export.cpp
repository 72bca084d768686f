#include <fmt/format.h>

#include <filesystem>

#include "bench.h"
#include "plumb/base/error.h"
#include "plumb/io/safetensors.h"

namespace plumb::app::bench {
namespace {

/// Splits ids into the sequences of `layout`.
Json sequences(const std::vector<int64_t>& ids, const Ragged& layout) {
  Json all = Json::array();
  for (int64_t i = 0; i < layout.sequences(); ++i) {
    all.push_back(std::vector<int64_t>(ids.begin() + layout.begin(i), ids.begin() + layout.begin(i + 1)));
  }
  return all;
}

}  // namespace

Json batch_json(const Batch& batch) {
  return {{"source", sequences(batch.source, batch.source_layout)},
          {"target_input", sequences(batch.target_input, batch.target_layout)},
          {"labels", sequences(batch.labels, batch.target_layout)}};
}

void export_work(const std::string& directory, const std::string& what, const Json& sizes, const Json& work,
                 const Model* model) {
  const std::filesystem::path path = directory;
  std::error_code failed;
  std::filesystem::create_directories(path, failed);
  if (failed) throw Error(fmt::format("cannot make {}: {}", directory, failed.message()));
  Json json = make_document("bench-work", 1);
  json["what"] = what;
  json["sizes"] = sizes;
  if (model != nullptr) {
    save_safetensors(path / "model.safetensors", named_values(model->parameters()));
    json["sizes"]["norm_eps"] = model->config().norm_eps;
  }
  json.update(work);
  write_json(path / "work.json", json);
}

void add_export_option(CLI::App& verb, std::string& directory) {
  verb.add_option("--export", directory,
                  "Also write the data and results (work.json) and the weights (model.safetensors), so that another "
                  "program can be timed on the same work")
      ->type_name("DIR");
}

}  // namespace plumb::app::bench
