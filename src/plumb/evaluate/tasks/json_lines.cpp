// Benchmarks whose files have a JSON object per line, as a table: where the files are, and how fields become an item.
#include <fmt/format.h>

#include <filesystem>

#include "plumb/base/error.h"
#include "plumb/evaluate/item_files.h"
#include "plumb/metrics/unicode.h"

namespace plumb {
namespace {

using MakeItem = EvaluationItem (*)(const Json& line);

/// Files below the folder of --data. The file of few-shot examples may be missing: then other items are taken.
struct JsonLines {
  const char* items;
  MakeItem make_item;
  const char* examples = "";
  MakeItem make_example = make_item;
};

struct JsonLinesTask {
  const char* name;
  const char* summary;
  const char* reference;
  const char* category;
  std::vector<std::string> metrics;
  std::vector<JsonLines> publications;  // the first whose file of items exists is read
  RequestKind kind = RequestKind::multiple_choice;
  double version = 1;
};

std::string string_at(const Json& line, const char* key) { return line.at(key).get<std::string>(); }

/// {"query", "choices", "gold"}, as in the Mosaic Eval Gauntlet.
EvaluationItem gauntlet_item(const Json& line) {
  return {.context = string_at(line, "query"),
          .choices = line.at("choices").get<std::vector<std::string>>(),
          .gold = gold_of(line)};
}

EvaluationItem gauntlet_arc_item(const Json& line) {
  EvaluationItem item = gauntlet_item(line);
  item.context += "\nAnswer:";
  return item;
}

EvaluationItem piqa_item(const Json& line) {
  EvaluationItem item = gauntlet_item(line);
  if (item.context.ends_with('\n')) item.context.pop_back();
  item.context += "\nAnswer:";
  return item;
}

/// As in the harness, no comma precedes the connecting word that ends the context, as in "The woman retired,
/// therefore", and choices begin with a space, so that two spaces precede them.
EvaluationItem copa_item(const Json& line) {
  EvaluationItem item = gauntlet_item(line);
  const size_t comma = item.context.rfind(", ");
  if (comma != std::string::npos && item.context.find(' ', comma + 2) == std::string::npos)
    item.context.erase(comma, 1);
  for (std::string& choice : item.choices) choice.insert(0, 1, ' ');
  return item;
}

/// {"question": {"stem", "choices": [{"text", "label"}]}, "answerKey"}
EvaluationItem open_book_item(const Json& line) {
  const Json& question = line.at("question");
  EvaluationItem item{.context = string_at(question, "stem")};
  const std::string key = string_at(line, "answerKey");
  bool known = false;
  for (const Json& choice : question.at("choices")) {
    if (!known && string_at(choice, "label") == key) {
      item.gold = item.choices.size();
      known = true;
    }
    item.choices.push_back(string_at(choice, "text"));
  }
  if (!known) throw Error(fmt::format("no choice has the label '{}'", key));
  return item;
}

EvaluationItem arc_item(const Json& line) {
  EvaluationItem item = open_book_item(line);
  item.context = "Question: " + item.context + "\nAnswer:";
  return item;
}

/// A line of the authors' file, with "title" and "answer", or of SuperGLUE's, with "label"; passages are as in
/// SuperGLUE: "title -- text".
EvaluationItem bool_q_item(const Json& line) {
  const bool of_authors = line.contains("answer");
  return {.context = fmt::format("{}{}\nQuestion: {}?\nAnswer:", of_authors ? string_at(line, "title") + " -- " : "",
                                 string_at(line, "passage"), string_at(line, "question")),
          .choices = {"no", "yes"},
          .gold = line.at(of_authors ? "answer" : "label").get<bool>() ? 1U : 0U};
}

EvaluationItem lambada_item(const Json& line) {
  return {.context = string_at(line, "context"), .choices = {" " + string_at(line, "continuation")}};
}

/// The rest of the sentence is scored after its beginning with either name (Trinh & Le 2018, arXiv 1806.02847). An
/// example may have nothing after the gap: then it is the sentence with the right name.
EvaluationItem winogrande_example(const Json& line) {
  const std::string sentence = string_at(line, "sentence"), answer = string_at(line, "answer");
  const size_t gap = sentence.find('_');
  if (gap == std::string::npos) throw Error("the sentence has no gap, \"_\"");
  if (answer != "1" && answer != "2") throw Error("the answer is neither \"1\" nor \"2\"");
  EvaluationItem item{.gold = answer == "2" ? 1U : 0U};
  for (const char* option : {"option1", "option2"})
    item.choices.push_back(sentence.substr(0, gap) + string_at(line, option));
  item.ending = without_outer_space(std::string_view(sentence).substr(gap + 1));
  if (item.ending.empty()) return {.context = item.choices[item.gold], .choices = {""}};
  return item;
}

EvaluationItem winogrande_item(const Json& line) {
  EvaluationItem item = winogrande_example(line);
  if (item.ending.empty()) throw Error("nothing follows the gap in the sentence");
  return item;
}

const std::vector<JsonLinesTask>& json_lines_tasks() {
  static const std::vector<JsonLinesTask> tasks = {
      {"arc_easy",
       "school science questions, mostly with four answers",
       "Clark et al. 2018, arXiv 1803.05457",
       "question answering",
       {"acc", "acc_norm"},
       {{"ARC-Easy-Test.jsonl", arc_item, "ARC-Easy-Train.jsonl"}, {"arc_easy.jsonl", gauntlet_arc_item}}},
      {"arc_challenge",
       "school science questions that word statistics do not answer",
       "Clark et al. 2018, arXiv 1803.05457",
       "question answering",
       {"acc", "acc_norm"},
       {{"ARC-Challenge-Test.jsonl", arc_item, "ARC-Challenge-Train.jsonl"},
        {"arc_challenge.jsonl", gauntlet_arc_item}}},
      {"boolq",
       "yes/no questions about a passage",
       "Clark et al. 2019, arXiv 1905.10044; SuperGLUE, arXiv 1905.00537",
       "reading comprehension",
       {"acc"},
       {{"BoolQ/val.jsonl", bool_q_item, "BoolQ/train.jsonl"}, {"boolq/dev.jsonl", bool_q_item, "boolq/train.jsonl"}},
       RequestKind::multiple_choice,
       2},
      {"copa",
       "which of two sentences is the cause or the effect of a first one",
       "Roemmele et al. 2011; SuperGLUE, arXiv 1905.00537",
       "common sense",
       {"acc"},
       {{"copa.jsonl", copa_item}}},
      {"lambada_openai",
       "the last word of a passage",
       "Paperno et al. 2016, arXiv 1606.06031",
       "reading comprehension",
       {"perplexity", "acc"},
       {{"lambada_openai.jsonl", lambada_item}},
       RequestKind::log_likelihood},
      {"openbookqa",
       "questions about elementary science with four answers",
       "Mihaylov et al. 2018, arXiv 1809.02789",
       "question answering",
       {"acc", "acc_norm"},
       {{"openbookqa/test.jsonl", open_book_item, "openbookqa/train.jsonl"}}},
      {"piqa",
       "which of two ways to reach a practical goal works",
       "Bisk et al. 2020, arXiv 1911.11641",
       "common sense",
       {"acc", "acc_norm"},
       {{"piqa.jsonl", piqa_item}}},
      {"winogrande",
       "which of two names fills the gap in a sentence",
       "Sakaguchi et al. 2020, arXiv 1907.10641",
       "common sense",
       {"acc"},
       {{"winogrande/dev.jsonl", winogrande_item, "winogrande/train_xl.jsonl", winogrande_example}}}};
  return tasks;
}

std::vector<EvaluationTask> load_json_lines(const JsonLinesTask& row, const std::filesystem::path& folder) {
  EvaluationTask task{.name = row.name, .category = row.category, .kind = row.kind, .version = row.version};
  task.metrics = row.metrics;
  const JsonLines* lines = row.publications.data();
  while (lines != &row.publications.back() && !std::filesystem::exists(folder / lines->items)) ++lines;
  task.items = read_items(folder / lines->items, lines->make_item);
  const std::filesystem::path examples = folder / lines->examples;
  if (*lines->examples != '\0' && std::filesystem::exists(examples))
    task.read_examples = [examples, make = lines->make_example] { return read_items(examples, make); };
  return {task};
}

const bool kJsonLinesRegistered = [] {
  for (const JsonLinesTask& row : json_lines_tasks())
    evaluation_tasks().add(row.name, row.summary, row.reference,
                           [&row](const std::filesystem::path& folder) { return load_json_lines(row, folder); });
  return true;
}();

}  // namespace
}  // namespace plumb
