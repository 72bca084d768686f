#include "plumb/judge/item_scores.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/base/input.h"
#include "plumb/base/json.h"
#include "plumb/judge/log_table.h"

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

/// A number, a truth value, null (NaN), or a text for a number that JSON does not have; nothing for other values.
std::optional<double> number_of(const Json& value) {
  if (value.is_boolean()) return static_cast<double>(value.get<bool>());
  if (value.is_string()) return number_in(value.get<std::string>());
  return value.is_number() || value.is_null() ? std::optional(to_double(value)) : std::nullopt;
}

/// A number, or the list of numbers from which a metric that Plumb has computes its score; nothing for values whose
/// score is not known here, such as the pairs of answers that the harness keeps for F1.
std::vector<double> terms_in(const std::string& metric, const Json& value) {
  const auto known = evaluation_metrics().entries().find(metric);
  const size_t width = known == evaluation_metrics().entries().end() ? 1 : known->second.make.width;
  std::vector<double> terms;
  if (value.is_array() && value.size() == width) {
    for (const Json& one : value) terms.push_back(number_of(one).value_or(std::nan("")));
  } else if (const std::optional<double> number = number_of(value); number && (width == 1 || !std::isfinite(*number))) {
    terms.assign(width, *number);
  }
  return terms;
}

std::string content_of(const Json& line) {
  if (line.contains("doc_hash")) return line["doc_hash"].dump();
  return line.contains("target") ? line["target"].dump() : "";
}

TaskScores read_samples(const std::string& task, const std::vector<fs::path>& files, bool repeated) {
  struct Item {
    std::string content;
    std::map<std::string, MetricTerms> terms;  // of its samples
  };
  TaskScores scores{.task = task};
  std::map<int64_t, Item> items;
  for (const fs::path& file : files) {
    LineReader lines(file);
    while (const auto text = lines.next()) {
      if (text->empty()) continue;
      try {
        const Json line = parse_log(*text);
        if (!line.is_object()) throw Error("no JSON object");
        Item& item = items[to_count(line.at("doc_id"))];
        const std::string content = std::exchange(item.content, content_of(line));
        if (repeated && !content.empty() && content != item.content)
          throw Error("is another item than an earlier line");
        const std::string filter = line.value("filter", "none");
        if (!line.contains("metrics")) throw Error("has no metrics");
        for (const Json& metric : line["metrics"]) {
          const auto name = metric.get<std::string>();
          std::vector<double> terms = line.contains(name) ? terms_in(name, line[name]) : std::vector<double>();
          if (terms.empty()) continue;
          const std::string key = filter == "none" ? name : name + "," + filter;
          if (!contains(scores.metrics, key)) scores.metrics.push_back(key);
          MetricTerms& samples = item.terms[key];
          if (!repeated && !samples.empty()) throw Error("repeats an item, whose lines are samples with --repeated");
          samples.push_back(std::move(terms));
        }
      } catch (const std::exception& error) {  // Error, or one of JSON
        throw Error(
            fmt::format("{}, line {}: {}", file.string(), lines.count(), error.what()),
            "name a file of samples, with an object per line; `plumb evaluate --out DIR --samples` writes them, and "
            "uses the answers that DIR has");
      }
    }
  }
  std::erase_if(scores.metrics, [&](const std::string& metric) {
    const auto lacks = [&](const auto& item) { return !item.second.terms.contains(metric); };
    const auto has = [&](const auto& item) { return has_numbers(item.second.terms.at(metric)); };
    return std::any_of(items.begin(), items.end(), lacks) || std::none_of(items.begin(), items.end(), has);
  });
  for (const auto& [number, item] : items) {
    scores.items.push_back(fmt::format("{}", number));
    scores.hashes.push_back(item.content);
    for (const std::string& metric : scores.metrics) scores.terms[metric].push_back(item.terms.at(metric));
  }
  if (scores.metrics.empty())
    throw Error(fmt::format("{}: no metric has a number for every item", files.front().string()),
                "metrics whose score is not a mean over items can be compared only if Plumb has them");
  return scores;
}

}  // namespace

bool has_numbers(const MetricTerms& samples) {
  const std::vector<double> sums = sums_of(samples);
  return std::all_of(sums.begin(), sums.end(), [](double sum) { return std::isfinite(sum); });
}

std::vector<TaskScores> read_task_scores(const fs::path& place, bool repeated) {
  if (!fs::exists(place)) throw Error(fmt::format("{}: does not exist", place.string()));
  std::map<std::string, std::vector<fs::path>> files;  // by task
  if (!fs::is_directory(place)) {
    files[task_of(place).empty() ? place.stem().string() : task_of(place)] = {place};
  } else {
    for (const auto& entry : fs::recursive_directory_iterator(place)) {
      const std::string task = entry.is_regular_file() ? task_of(entry.path()) : "";
      if (task.empty()) continue;
      std::vector<fs::path>& all = files[task];
      const fs::path other = all.empty() ? fs::path() : all.front().parent_path();
      if (!repeated && !all.empty() && other != entry.path().parent_path())
        throw Error(fmt::format("{}: has {} of several models: {} and {}", place.string(), task,
                                other.filename().string(), entry.path().parent_path().filename().string()),
                    "name the directory of one model; --repeated takes all for samples of one");
      all.push_back(entry.path());
    }
  }
  if (files.empty())
    throw Error(fmt::format("{}: holds no samples_TASK.jsonl", place.string()),
                "evaluate with --samples: `plumb evaluate --out DIR --samples` uses the answers that DIR has, and "
                "lm-evaluation-harness writes them with --log_samples");
  std::vector<TaskScores> tasks;
  for (auto& [task, all] : files) {
    std::sort(all.begin(), all.end());
    if (!repeated) all = {all.back()};  // of several dates, the latest
    tasks.push_back(read_samples(task, all, repeated));
  }
  return tasks;
}

}  // namespace plumb
