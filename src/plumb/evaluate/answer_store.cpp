#include "plumb/evaluate/answer_store.h"

#include <fmt/format.h>

#include <algorithm>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "plumb/base/progress.h"

namespace plumb {
namespace {

constexpr std::chrono::seconds kBetweenFiles{30};

/// The answers in a file; nullopt if its settings differ or it is malformed.
std::optional<std::vector<std::optional<Answer>>> read_answers(const std::filesystem::path& file, const Json& settings,
                                                               size_t requests) {
  const Json json = parse_or_discard(read_file(file));
  if (!json.is_object() || !json.contains("settings") || json["settings"] != settings) return {};
  const Json& entries = json.value("answers", Json());
  if (!entries.is_array() || entries.size() != requests) return {};
  std::vector<std::optional<Answer>> answers;
  for (const Json& entry : entries) {
    answers.emplace_back();
    if (entry.is_null()) continue;
    if (entry.is_string()) {
      answers.back() = Answer{.text = entry.get<std::string>()};
      continue;
    }
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_number() || !entry[1].is_boolean()) return {};
    answers.back() = Answer{.log_likelihood = entry[0].get<double>(), .greedy = entry[1].get<bool>()};
  }
  return answers;
}

Json entry_of(const Answer& answer) {
  return answer.text ? Json(*answer.text) : Json::array({answer.log_likelihood, answer.greedy});
}

}  // namespace

AnswerStore::AnswerStore(std::filesystem::path file, Json settings, size_t requests)
    : file_(std::move(file)), settings_(std::move(settings)), answers_(requests) {
  if (file_.empty() || !std::filesystem::exists(file_)) return;
  if (auto earlier = read_answers(file_, settings_, requests)) {
    answers_ = std::move(*earlier);
  } else {
    say(fmt::format("{}: replacing the answers of another model or to other prompts", file_.string()));
  }
}

size_t AnswerStore::known() const {
  return static_cast<size_t>(
      std::count_if(answers_.begin(), answers_.end(), [](const auto& a) { return a.has_value(); }));
}

void AnswerStore::save_sometimes() {
  if (Clock::now() - saved_at_ >= kBetweenFiles) save();
}

void AnswerStore::save() {
  saved_at_ = Clock::now();
  if (file_.empty()) return;
  Json json = make_document("answers", 1);
  json["settings"] = settings_;
  Json& entries = json["answers"] = Json::array();
  for (const std::optional<Answer>& answer : answers_) entries.push_back(answer ? entry_of(*answer) : Json());
  write_file_atomic(file_, json.dump() + '\n');
}

}  // namespace plumb
