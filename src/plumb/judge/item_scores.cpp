#include "plumb/judge/item_scores.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/base/input.h"
#include "plumb/base/json.h"
#include "plumb/judge/rows.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

/// The task that a file is named after, without the time that lm-evaluation-harness adds, "_2025-01-31T12-00-00.1";
/// empty if the file is no file of samples.
std::string task_of(const fs::path& file) {
  constexpr std::string_view kBegin = "samples_", kTime = "_2025-01-31T";
  if (!file.filename().string().starts_with(kBegin) || file.extension() != ".jsonl") return "";
  const std::string task = file.stem().string().substr(kBegin.size());
  const std::string_view rest = std::string_view(task).substr(std::min(task.rfind('_'), task.size()));
  const bool is_time = rest.size() > kTime.size() && rest.size() < task.size() && rest[kTime.size() - 1] == 'T' &&
                       rest.find_first_not_of("0123456789T.:-", 1) == std::string_view::npos;
  return is_time ? task.substr(0, task.size() - rest.size()) : task;
}

/// A number, a truth value, or the list of numbers from which a metric that Plumb has computes its score; nothing for
/// values whose score is not known here, such as the pairs of answers that the harness keeps for F1.
std::vector<double> terms_in(const std::string& metric, const Json& value) {
  if (value.is_boolean()) return {static_cast<double>(value.get<bool>())};
  if (value.is_number()) return {to_double(value)};
  const bool known = value.is_array() && evaluation_metrics().entries().contains(metric) &&
                     std::all_of(value.begin(), value.end(), [](const Json& one) { return one.is_number(); });
  return known ? to_doubles(value) : std::vector<double>();
}

std::string content_of(const Json& line) {
  if (line.contains("doc_hash")) return line["doc_hash"].dump();
  return line.contains("target") ? line["target"].dump() : "";
}

TaskScores read_samples(const fs::path& file) {
  struct Item {
    std::string content;
    std::map<std::string, std::vector<double>> terms;
  };
  TaskScores scores{.task = task_of(file)};
  std::map<int64_t, Item> items;
  LineReader lines(file);
  while (const auto text = lines.next()) {
    if (text->empty()) continue;
    try {
      const Json line = parse_log(*text);
      if (!line.is_object()) throw Error("no JSON object");
      Item& item = items[to_count(line.at("doc_id"))];
      item.content = content_of(line);
      const std::string filter = line.value("filter", "none");
      if (!line.contains("metrics")) throw Error("has no metrics");
      for (const Json& metric : line["metrics"]) {
        const auto name = metric.get<std::string>();
        std::vector<double> terms = line.contains(name) ? terms_in(name, line[name]) : std::vector<double>();
        if (terms.empty()) continue;
        const std::string key = filter == "none" ? name : name + "," + filter;
        if (!contains(scores.metrics, key)) scores.metrics.push_back(key);
        if (!item.terms.emplace(key, std::move(terms)).second) throw Error("repeats an item");
      }
    } catch (const std::exception& error) {  // Error, or one of JSON
      throw Error(
          fmt::format("{}, line {}: {}", file.string(), lines.count(), error.what()),
          "name a file of samples, with an object per line; `plumb evaluate --out DIR --samples` writes them, and "
          "uses the answers that DIR has");
    }
  }
  std::erase_if(scores.metrics, [&](const std::string& metric) {
    return std::any_of(items.begin(), items.end(),
                       [&](const auto& item) { return !item.second.terms.contains(metric); });
  });
  for (const auto& [number, item] : items) {
    scores.items.push_back(fmt::format("{}", number));
    scores.hashes.push_back(item.content);
    for (const std::string& metric : scores.metrics) scores.terms[metric].push_back(item.terms.at(metric));
  }
  if (scores.metrics.empty())
    throw Error(fmt::format("{}: no metric has a number for every item", file.string()),
                "metrics whose score is not a mean over items can be compared only if Plumb has them");
  return scores;
}

}  // namespace

std::vector<TaskScores> read_task_scores(const fs::path& place) {
  if (!fs::exists(place)) throw Error(fmt::format("{}: does not exist", place.string()));
  std::map<std::string, fs::path> files;  // by task; of several dates, the name that sorts last
  if (!fs::is_directory(place)) {
    files[task_of(place).empty() ? place.stem().string() : task_of(place)] = place;
  } else {
    for (const auto& entry : fs::recursive_directory_iterator(place)) {
      const std::string task = entry.is_regular_file() ? task_of(entry.path()) : "";
      if (task.empty()) continue;
      fs::path& file = files[task];
      if (!file.empty() && file.parent_path() != entry.path().parent_path())
        throw Error(fmt::format("{}: has {} of several models: {} and {}", place.string(), task,
                                file.parent_path().filename().string(), entry.path().parent_path().filename().string()),
                    "name the directory of one model");
      if (file.filename() < entry.path().filename()) file = entry.path();
    }
  }
  if (files.empty())
    throw Error(fmt::format("{}: holds no samples_TASK.jsonl", place.string()),
                "evaluate with --samples: `plumb evaluate --out DIR --samples` uses the answers that DIR has, and "
                "lm-evaluation-harness writes them with --log_samples");
  std::vector<TaskScores> tasks;
  for (const auto& [task, file] : files) {
    tasks.push_back(read_samples(file));
    tasks.back().task = task;
  }
  return tasks;
}

}  // namespace plumb
