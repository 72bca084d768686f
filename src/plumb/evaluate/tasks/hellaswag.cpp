// HellaSwag: which of four sentences follows a description (Zellers et al. 2019, arXiv 1905.07830).
//
// The file has six lines per item: the context, the index of the right ending, and four endings. WikiHow's markup,
// which the harness removes, is already removed. The harness also capitalizes the sentence that the ending completes;
// this is not done, because the file does not say where that sentence begins.
#include <fmt/format.h>

#include <algorithm>

#include "plumb/base/error.h"
#include "plumb/base/input.h"
#include "plumb/base/parse_number.h"
#include "plumb/evaluate/item_files.h"

namespace plumb {
namespace {

constexpr size_t kEndings = 4;

/// The file of the task: the first hellaswag*.txt by name.
std::filesystem::path hellaswag_file(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("hellaswag") && name.ends_with(".txt")) found.push_back(entry.path());
  }
  if (found.empty())
    throw Error(fmt::format("{}: contains no hellaswag*.txt", folder.string()), "give the folder with --data");
  return *std::min_element(found.begin(), found.end());
}

std::vector<EvaluationTask> load_hellaswag(const std::filesystem::path& folder) {
  EvaluationTask task{.name = "hellaswag", .category = "common sense", .metrics = {"acc", "acc_norm"}};
  const std::filesystem::path file = hellaswag_file(folder);
  const std::vector<std::string> lines = read_lines(file);
  for (size_t begin = 0; begin < lines.size(); begin += kEndings + 2) {
    const auto number = static_cast<int64_t>(begin + 2);
    if (begin + kEndings + 2 > lines.size()) throw error_in_line(file, number - 1, "an item has six lines");
    EvaluationItem item{.context = lines[begin]};
    const std::string& gold = lines[begin + 1];
    item.gold = parse_number<size_t>(gold).value_or(kEndings);
    if (item.gold >= kEndings)
      throw error_in_line(file, number, fmt::format("'{}' is not the number of an ending, 0 to 3", gold));
    item.choices.assign(lines.begin() + static_cast<int64_t>(begin) + 2,
                        lines.begin() + static_cast<int64_t>(begin + kEndings) + 2);
    task.items.push_back(std::move(item));
  }
  return {task};
}

const bool kHellaswagRegistered = evaluation_tasks().add("hellaswag", "which of four sentences follows a description",
                                                         "Zellers et al. 2019, arXiv 1905.07830", load_hellaswag);

}  // namespace
}  // namespace plumb
