// The folders of tests/golden/huggingface, and their models.
#pragma once

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "plumb/base/files.h"
#include "plumb/base/json.h"
#include "plumb/interop/import.h"
#include "plumb/model/model.h"
#include "support/paths.h"
#include "support/test_names.h"

namespace plumb::test {

using IdRows = std::vector<std::vector<int64_t>>;

inline std::filesystem::path folder_of(const std::string& name) {
  return source_directory() / "tests" / "golden" / "huggingface" / name;
}

/// The names of the folders whose values.json has all keys of `with` and none of `without`.
inline std::vector<std::string> folders_with(const std::vector<std::string>& with,
                                             const std::vector<std::string>& without) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder_of(""))) {
    if (!entry.is_directory()) continue;
    const Json values = read_json(entry.path() / "values.json");
    const auto has = [&values](const std::string& key) { return values.contains(key); };
    if (std::all_of(with.begin(), with.end(), has) && std::none_of(without.begin(), without.end(), has))
      names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// The model of a folder with its weights.
inline std::unique_ptr<Model> model_in(const std::filesystem::path& folder, at::ScalarType type) {
  const ImportedModel imported = read_model_folder(folder);
  std::unique_ptr<Model> model = make_model(imported.config, type);
  load_parameters(model->parameters(), imported.tensors, folder.string());
  return model;
}

/// Rows of numbers as a float64 matrix.
inline Tensor matrix_of(const Json& rows) {
  const auto values = rows.get<std::vector<std::vector<double>>>();
  Tensor result = at::empty({static_cast<int64_t>(values.size()), static_cast<int64_t>(values[0].size())}, at::kDouble);
  double* value = result.data_ptr<double>();
  for (const auto& row : values) value = std::copy(row.begin(), row.end(), value);
  return result;
}

/// Tolerance: 1e-10 in float64; in float32, 1e-5 times the largest logit or 1, whichever is larger.
inline void expect_logits(const Tensor& found, const Tensor& expected) {
  ASSERT_EQ(found.sizes(), expected.sizes());
  const double scale = std::max(1.0, expected.abs().max().item<double>());
  const double tolerance = found.scalar_type() == at::kDouble ? 1e-10 : 1e-5 * scale;
  EXPECT_LT((found.to(at::kDouble) - expected).abs().max().item<double>(), tolerance);
}

}  // namespace plumb::test
