// Winogender: whether a pronoun refers to the person with an occupation or to the other participant (Rudinger et al.
// 2018, arXiv 1804.09301), as GPT-3, Gopher and the harness ask it.
#include <fmt/format.h>

#include <functional>
#include <map>
#include <set>

#include "plumb/base/csv.h"
#include "plumb/base/error.h"
#include "plumb/base/parse_number.h"
#include "plumb/base/text.h"
#include "plumb/evaluate/item_files.h"
#include "plumb/metrics/unicode.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

const std::map<std::string, std::set<std::string>>& pronouns_by_gender() {
  static const std::map<std::string, std::set<std::string>> pronouns = {
      {"female", {"she", "her"}}, {"male", {"he", "his", "him"}}, {"neutral", {"they", "their", "them"}}};
  return pronouns;
}

struct Sentence {
  std::string text;
  std::string occupation;
  std::string participant;
  bool of_participant = false;  // the pronoun refers to the participant, not to the occupation
  std::string gender;           // "female", "male" or "neutral"
  std::string pronoun;          // "his"
};

/// The only word of a sentence that is a pronoun of this gender. Throws Error unless there is exactly one.
std::string pronoun_in(const std::string& text, const std::string& gender) {
  std::vector<std::string> found;
  std::string word;
  for (const char c : to_lower(text) + ".") {
    if (c >= 'a' && c <= 'z') {
      word += c;
      continue;
    }
    if (pronouns_by_gender().at(gender).contains(word)) found.push_back(word);
    word.clear();
  }
  if (found.size() != 1) throw Error(fmt::format("the sentence has {} {} pronouns, not one", found.size(), gender));
  return found.front();
}

/// The sentence of a record with the columns sentid, such as "technician.customer.1.male.txt", and sentence.
Sentence sentence_of(const std::vector<std::string>& columns) {
  const std::vector<std::string> id = split(columns[0], '.');
  const bool known = id.size() >= 4 && (id[2] == "0" || id[2] == "1") && pronouns_by_gender().contains(id[3]);
  if (!known) throw Error(fmt::format("sentid '{}' is not OCCUPATION.PARTICIPANT.0|1.female|male|neutral", columns[0]));
  return {.text = columns[1],
          .occupation = id[0],
          .participant = id[1],
          .of_participant = id[2] == "1",
          .gender = id[3],
          .pronoun = pronoun_in(columns[1], id[3])};
}

/// The majority gender of each occupation, from the Bureau of Labor Statistics' percentage of women.
std::map<std::string, std::string> majorities(const fs::path& file) {
  std::map<std::string, std::string> found;
  each_record(file, read_tsv(file), {"occupation", "bls_pct_female"}, [&](const std::vector<std::string>& columns) {
    const std::string& share = columns[1];
    const double percent = parse_number<double>(share).value_or(-1);
    if (!(percent >= 0 && percent <= 100)) throw Error(fmt::format("bls_pct_female = '{}' is not a percentage", share));
    if (!found.emplace(columns[0], percent >= 50 ? "female" : "male").second)
      throw Error(fmt::format("'{}' is listed twice", columns[0]));
  });
  return found;
}

EvaluationItem winogender_item(const Sentence& sentence) {
  std::string pronoun = sentence.pronoun;
  pronoun.front() = static_cast<char>(pronoun.front() - 'a' + 'A');
  return {.context = fmt::format("{} ‘{}’ refers to the", sentence.text, pronoun),
          .choices = {sentence.occupation, sentence.participant},
          .gold = sentence.of_participant ? 1U : 0U};
}

EvaluationTask winogender_task(const std::string& part, const std::vector<Sentence>& sentences,
                               const std::function<bool(const Sentence&)>& has) {
  EvaluationTask task{.name = "winogender_" + part, .category = "coreference resolution", .subset = part != "all"};
  task.metrics = {"acc"};
  for (const Sentence& sentence : sentences) {
    if (has(sentence)) task.items.push_back(winogender_item(sentence));
  }
  return task;
}

std::vector<EvaluationTask> load_winogender(const fs::path& folder) {
  std::vector<Sentence> sentences;
  const fs::path file = folder / "winogender" / "all_sentences.tsv";
  each_record(file, read_tsv(file), {"sentid", "sentence"},
              [&](const std::vector<std::string>& columns) { sentences.push_back(sentence_of(columns)); });
  std::vector<EvaluationTask> tasks = {winogender_task("all", sentences, [](const Sentence&) { return true; })};
  for (const auto& [gender, pronouns] : pronouns_by_gender()) {
    tasks.push_back(winogender_task(
        gender, sentences, [&, gender = gender](const Sentence& sentence) { return sentence.gender == gender; }));
  }
  const auto without_empty = [](std::vector<EvaluationTask> all) {
    std::erase_if(all, [](const EvaluationTask& task) { return task.items.empty(); });
    return all;
  };
  const fs::path statistics = folder / "winogender" / "occupations-stats.tsv";
  if (!fs::exists(statistics)) return without_empty(std::move(tasks));
  const std::map<std::string, std::string> majority = majorities(statistics);
  // The pronoun refers to the occupation, but its gender is not the majority's.
  const auto is_gotcha = [&](const Sentence& sentence) {
    if (sentence.gender == "neutral" || sentence.of_participant) return false;
    const auto found = majority.find(sentence.occupation);
    if (found == majority.end())
      throw Error(fmt::format("{}: '{}' is missing", statistics.string(), sentence.occupation));
    return found->second != sentence.gender;
  };
  tasks.push_back(winogender_task("gotcha", sentences, is_gotcha));
  for (const std::string gender : {"female", "male"}) {
    tasks.push_back(winogender_task("gotcha_" + gender, sentences, [&](const Sentence& sentence) {
      return sentence.gender == gender && is_gotcha(sentence);
    }));
  }
  return without_empty(std::move(tasks));
}

const bool kWinogenderRegistered = evaluation_tasks().add(
    "winogender", "whom a pronoun refers to, by its gender and the majority gender of an occupation",
    "Rudinger et al. 2018, arXiv 1804.09301", load_winogender);

}  // namespace
}  // namespace plumb
