// Made-up files in the formats of the tasks.
#include "plumb/evaluate/task.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "evaluate/task_files.h"
#include "plumb/base/csv.h"
#include "plumb/base/error.h"
#include "plumb/evaluate/few_shot.h"
#include "plumb/evaluate/item_files.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

class EvaluationTasks : public test::TaskFiles {};

TEST_F(EvaluationTasks, LambadaPredictsTheLastWordWithItsSpace) {
  write("lambada_openai.jsonl", R"({"context": "The sea is", "continuation": "wide"})"
                                "\n\n");
  const EvaluationTask task = load("lambada_openai");
  EXPECT_EQ(task.kind, RequestKind::log_likelihood);
  EXPECT_EQ(task.items, (std::vector<EvaluationItem>{{.context = "The sea is", .choices = {" wide"}}}));
}

TEST_F(EvaluationTasks, ChoicesHaveThePromptsOfTheHarness) {
  write("piqa.jsonl", R"({"query": "Question: to sail\n", "choices": ["a ship", "a spoon"], "gold": 0})");
  write("arc_easy.jsonl", R"({"query": "Question: Why?", "choices": ["a", "b", "c"], "gold": 2})");
  write("copa.jsonl",
        R"({"query": "The ship, which was old, sank, because", "choices": ["it leaked.", "it sang."], "gold": 0})");
  EXPECT_EQ(load("piqa").items[0].context, "Question: to sail\nAnswer:");
  EXPECT_EQ(load("arc_easy").items[0].context, "Question: Why?\nAnswer:");
  EXPECT_EQ(load("arc_easy").items[0].gold, 2U);
  EXPECT_EQ(load("copa").items[0].context, "The ship, which was old, sank because");
  EXPECT_EQ(load("copa").items[0].choices, (std::vector<std::string>{" it leaked.", " it sang."}));
}

TEST_F(EvaluationTasks, AChoiceHasANumberAndAnAlternative) {
  const auto refused = [&](const std::string& line, const std::string& part) {
    write("own.jsonl", line);
    expect_error(path("own.jsonl"), part);
  };
  refused(R"({"context": "x", "choices": ["a"], "gold": 0})", "a single choice leaves nothing to choose");
  refused(R"({"context": "x", "choices": ["a", "b"], "gold": -1})", "gold = -1 is not the number of a choice");
  refused(R"({"context": "x", "choices": ["a", "b"], "gold": 0.9})", "gold = 0.9 is not the number of a choice");
  refused(R"({"context": "x", "choices": ["a", "b"], "gold": "0"})", "gold = \"0\" is not the number of a choice");
  refused(R"({"context": "x", "choices": ["a", "b"], "gold": 2})", "the right choice is number 2 of 2");
  refused(R"({"context": "x", "choices": "good", "gold": 0})", "a value of the wrong type: type must be array");
}

TEST_F(EvaluationTasks, HellaswagHasSixLinesForAnItem) {
  write("hellaswag_made_up.txt", "Sailing: A ship. it\n2\nsinks.\nsings.\nsails.\nsleeps.\n");
  const EvaluationTask task = load("hellaswag");
  EXPECT_EQ(task.items,
            (std::vector<EvaluationItem>{
                {.context = "Sailing: A ship. it", .choices = {"sinks.", "sings.", "sails.", "sleeps."}, .gold = 2}}));
  write("hellaswag_made_up.txt", "Sailing: A ship. it\n4\nsinks.\nsings.\nsails.\nsleeps.\n");
  expect_error("hellaswag", "line 2: '4' is not the number of an ending");
  write("hellaswag_made_up.txt", "Sailing: A ship. it\n1\nsinks.\nsings.\nsails.\n");
  expect_error("hellaswag", "line 1: an item has six lines");
}

TEST_F(EvaluationTasks, MmluHasATaskForEachSubject) {
  write("mmlu/test/anatomy_test.csv", "\" What, \"\"exactly\"\", is\nthis? \",one,two,three,four,C\n");
  write("mmlu/test/world_religions_test.csv", "Who?,a,b,c,d,A\n");
  write("mmlu/dev/anatomy_dev.csv", "First?,a,b,c,d,B\nSecond?,a,b,c,d,D\n");
  const std::vector<EvaluationTask> tasks = load_evaluation_tasks("mmlu", scratch_ / "");
  ASSERT_EQ(tasks.size(), 2U);
  EXPECT_EQ(tasks[0].name, "mmlu_anatomy");
  EXPECT_EQ(tasks[0].groups, (std::vector<std::string>{"mmlu", "mmlu_stem"}));
  EXPECT_EQ(tasks[1].groups, (std::vector<std::string>{"mmlu", "mmlu_humanities"}));
  EXPECT_EQ(tasks[1].description,
            "The following are multiple choice questions (with answers) about world religions.\n\n");
  EXPECT_EQ(tasks[0].items[0].context, "What, \"exactly\", is\nthis?\nA. one\nB. two\nC. three\nD. four\nAnswer:");
  EXPECT_EQ(tasks[0].items[0].choices, (std::vector<std::string>{"A", "B", "C", "D"}));
  EXPECT_EQ(tasks[0].items[0].gold, 2U);
  EXPECT_EQ(tasks[0].examples.size(), 2U);
  EXPECT_TRUE(tasks[0].first_examples);
  EXPECT_EQ(load("mmlu_anatomy").name, "mmlu_anatomy");
  expect_error("mmlu_astronomy", "unknown evaluation task 'mmlu_astronomy'");
  write("mmlu/test/anatomy_test.csv", "What?,one,two,three,four,E\n");
  expect_error("mmlu", "record 1: is not a question");
}

TEST_F(EvaluationTasks, BigBenchHardHasFixedChoices) {
  write("bbh/boolean_expressions.json", R"({"examples": [{"input": "True and False is", "target": "False"}]})");
  const EvaluationTask task = load("leaderboard_bbh");
  EXPECT_EQ(task.name, "leaderboard_bbh_boolean_expressions");
  EXPECT_EQ(task.items[0], (EvaluationItem{.context = "Q: True and False is\nA:", .choices = {"False", "True"}}));
  write("bbh/boolean_expressions.json", R"({"examples": [{"input": "True and False is", "target": "false"}]})");
  expect_error("leaderboard_bbh", "the answer 'false' is unknown");
}

TEST_F(EvaluationTasks, BigBenchHardIsAlsoWritten) {
  write("bbh/date_understanding.json", R"json({"examples": [{"input": "When?", "target": "(B)"}]})json");
  const EvaluationTask task = load("bbh_zeroshot_date_understanding");
  EXPECT_EQ(task.kind, RequestKind::generate_until);
  EXPECT_EQ(task.description, "Infer the date from context.\n\n");
  EXPECT_EQ(task.items, (std::vector<EvaluationItem>{{.context = "Q: When?\nA:", .choices = {"(B)"}}}));
  EXPECT_EQ(task.until, (std::vector<std::string>{"</s>", "Q:", "<|im_end|>"}));
  EXPECT_EQ(task.groups, (std::vector<std::string>{"bbh_zeroshot"}));
  EXPECT_EQ(task.group_metrics, (std::vector<std::string>{"exact_match,flexible-extract"}));
}

TEST_F(EvaluationTasks, LinesOfAuthorsAreChecked) {
  const std::string science = R"({"question": {"stem": "Why?", "choices": [{"text": "a", "label": "1"}]}, )";
  write("ARC-Challenge-Test.jsonl", science + R"("answerKey": "2"})");
  expect_error("arc_challenge", "line 1: no choice has the label '2'");
  write("ARC-Easy-Test.jsonl", science + R"("answerKey": "1"})");
  EXPECT_EQ(load("arc_easy").items[0].context, "Question: Why?\nAnswer:");
  write("winogrande/dev.jsonl", R"({"sentence": "No gap.", "option1": "a", "option2": "b", "answer": "1"})");
  expect_error("winogrande", "line 1: the sentence has no gap");
  write("winogrande/dev.jsonl", R"({"sentence": "A _.", "option1": "a", "option2": "b", "answer": ""})");
  expect_error("winogrande", "line 1: the answer is neither");
  write("winogrande/dev.jsonl", R"({"sentence": "A _ ", "option1": "a", "option2": "b", "answer": "1"})");
  expect_error("winogrande", "line 1: nothing follows the gap");
  write("BoolQ/val.jsonl", R"({"question": "is it", "passage": "Rain -- It is.", "label": true})");
  EXPECT_EQ(
      load("boolq").items[0],
      (EvaluationItem{.context = "Rain -- It is.\nQuestion: is it?\nAnswer:", .choices = {"no", "yes"}, .gold = 1}));
  write("BoolQ/val.jsonl", R"({"question": "is it", "passage": "Rain -- It is."})");
  expect_error("boolq", "line 1: ");
}

TEST_F(EvaluationTasks, FilesOfExamplesAreReadWhenTheyAreNeeded) {
  write("boolq/dev.jsonl", R"({"question": "is it", "title": "Rain", "passage": "It is.", "answer": true})");
  write("openbookqa/test.jsonl",
        R"({"question": {"stem": "Why?", "choices": [{"text": "a", "label": "A"}]}, "answerKey": "A"})");
  fs::copy_file(scratch_ / "openbookqa/test.jsonl", scratch_ / "ARC-Easy-Test.jsonl");
  write("winogrande/dev.jsonl", R"({"sentence": "A _ b.", "option1": "a", "option2": "b", "answer": "1"})");
  for (const char* name :
       {"boolq/train.jsonl", "openbookqa/train.jsonl", "ARC-Easy-Train.jsonl", "winogrande/train_xl.jsonl"})
    write(name, "[]");
  for (const char* name : {"boolq", "openbookqa", "arc_easy", "winogrande"}) {
    const EvaluationTask task = load(name);
    EXPECT_EQ(prompts_of(task, 1, {}).at(0), task.items[0].context) << name;
    EXPECT_THROW(prompts_of(task, 1, {.examples = 1}), Error) << name;
  }
}

/// The harness omits both delimiters if the answer of an example is empty.
TEST_F(EvaluationTasks, WinograndeHasExamplesWithoutAnEnding) {
  write("winogrande/dev.jsonl", R"({"sentence": "A _ b.", "option1": "a", "option2": "b", "answer": "1"})");
  write("winogrande/train_xl.jsonl",
        R"({"sentence": "A man met a _ ", "option1": "ship", "option2": "cat", "answer": "2"})");
  EXPECT_EQ(prompts_of(load("winogrande"), 1, {.examples = 1}).at(0), "A man met a cat");
  write("winogrande/train_xl.jsonl", R"({"sentence": "A _ sat.", "option1": "ship", "option2": "cat", "answer": "2"})");
  EXPECT_EQ(prompts_of(load("winogrande"), 1, {.examples = 1}).at(0), "A cat sat.\n\n");
}

TEST_F(EvaluationTasks, WikitextIsReadByArticles) {
  // The lines and counts that the harness's own functions give for the second article.
  const std::string article =
      " = Harbor = \n \n The \" small \" ship ( built in 1 @,@ 250 days ) was the sailors ' home ; it cost 3 @.@ 5 "
      "tons "
      "[ sic ] of grain at 20 ° C . \n = = Sails = = \n = = = Colour = = = \n A well @-@ made { red } sail 's edge : ' "
      "torn ' , N times /' 7/ ! ( \n unclosed";
  write("wiki.test.raw", " \n = Ship = \n A ship . \n" + article);
  const EvaluationTask task = load("wikitext");
  ASSERT_EQ(task.items.size(), 2U);
  EXPECT_EQ(task.items[0].choices[0], " = Ship =\nA ship. ");
  EXPECT_EQ(task.items[1].choices[0],
            " = Harbor =\n\nThe \"small\" ship (built in 1,250 days) was the sailors'home; it cost 3.5 tons [sic] of "
            "grain at 20°C.\n== Sails ==\n=== Colour ===\nA well-made {red} sail's edge: 'torn', 1 times /'[0-9]/! "
            "(\nunclosed");
  EXPECT_EQ(task.items[1].words, 73);
  EXPECT_EQ(task.items[1].bytes, 256);
  write("wiki.test.raw", " = Ship = \n caf\xE9 \n");
  expect_error("wikitext", "wiki.test.raw: is not valid UTF-8");
}

TEST_F(EvaluationTasks, OwnFilesSayWhatIsAsked) {
  write("own.jsonl", R"({"context": "One and", "choices": ["two", "three"], "gold": 1, "id": 7})");
  EXPECT_EQ(load(path("own.jsonl")).name, "own");
  EXPECT_EQ(load(path("own.jsonl")).items[0].gold, 1U);
  EXPECT_EQ(load(path("own.jsonl")).category, "own");
  write("facts.jsonl", R"({"text": "one", "category": "fact checking"})");
  EXPECT_EQ(load(path("facts.jsonl")).category, "fact checking");
  write("facts.jsonl", "{\"text\": \"one\", \"category\": \"facts\"}\n{\"text\": \"two\"}");
  expect_error(path("facts.jsonl"), "line 2: the category is 'own', that of the first line 'facts'");
  write("words.jsonl", R"({"context": "One and", "continuation": " two"})");
  EXPECT_EQ(load(path("words.jsonl")).kind, RequestKind::log_likelihood);
  write("answers.jsonl", R"({"context": "One and", "answer": "two"})");
  EXPECT_EQ(load(path("answers.jsonl")).kind, RequestKind::generate_until);
  EXPECT_EQ(load(path("answers.jsonl")).until, (std::vector<std::string>{"\n"}));
  write("texts.jsonl", R"({"text": "One and two.\n"})");
  EXPECT_EQ(load(path("texts.jsonl")).items[0],
            (EvaluationItem{.choices = {"One and two.\n"}, .words = 4, .bytes = 13}));
  write("bad.jsonl", "{\"text\": \"one\"}\n{\"texts\": \"two\"}");
  expect_error(path("bad.jsonl"), "line 2: must have the keys text");
  write("bad.jsonl", R"({"context": "One", "choices": ["two"], "gold": 1})");
  expect_error(path("bad.jsonl"), "line 1: the right choice is number 1 of 1");
  write("bad.jsonl", R"({"context": "One", "choices": "two", "gold": 0})");
  expect_error(path("bad.jsonl"), "line 1: ");
  write("bad.jsonl", R"({"context": "One", "choice": ["two"]})");
  expect_error(path("bad.jsonl"), "line 1: has none of these sets of keys");
  write("bad.jsonl", "[1]");
  expect_error(path("bad.jsonl"), "line 1: is not a JSON object");
  write("bad.jsonl", "\n");
  expect_error(path("bad.jsonl"), "contains no items");
}

TEST_F(EvaluationTasks, BigBenchFilesHaveScoresOfChoices) {
  write("riddle.json", R"({"name": "riddles", "examples": [
      {"input": "What has keys?", "target_scores": {"a piano": 1, "a lake": 0}}]})");
  const EvaluationTask task = load(path("riddle.json"));
  EXPECT_EQ(task.name, "riddles");
  EXPECT_EQ(task.items[0].context, "\nQ: What has keys?\n  choice: a piano\n  choice: a lake\nA: ");
  EXPECT_EQ(task.items[0].gold, 0U);
  EXPECT_EQ(task.target_delimiter, "");
  EXPECT_EQ(task.items[0].also_right, std::vector<size_t>());
  write("riddle.json",
        R"({"examples": [{"input": "Which floats?", "target_scores": {"a": 0, "b": 1, "c": 0.5, "d": 1}}]})");
  EXPECT_EQ(load(path("riddle.json")).items[0].gold, 1U);
  EXPECT_EQ(load(path("riddle.json")).items[0].also_right, std::vector<size_t>{3});
  for (const char* scores : {"{}", R"({"a piano": 1})"}) {
    write("riddle.json", fmt::format(R"({{"examples": [{{"input": "What?", "target_scores": {}}}]}})", scores));
    expect_error(path("riddle.json"), "example 0 has fewer than two choices");
  }
  for (const char* name : {"../riddles", "/riddles", "..", ""}) {
    write("riddle.json", fmt::format(R"({{"name": "{}", "examples": []}})", name));
    expect_error(path("riddle.json"), fmt::format("riddle.json: \"name\" = '{}' cannot be the name of a file", name));
  }
  write("riddle.json", R"({"examples": [{"input": "What has keys?", "target": "a piano"}]})");
  expect_error(path("riddle.json"), "example 0 has no \"target_scores\"");
}

TEST_F(EvaluationTasks, UnknownNamesAreErrors) {
  expect_error("lambada", "unknown evaluation task 'lambada'");
  expect_error("piqa", "piqa.jsonl");
}

TEST(WordsBetweenSpaces, AreCountedAsPythonSplits) {
  // len(re.split(r"\s+", text))
  EXPECT_EQ(words_between_spaces(""), 1);
  EXPECT_EQ(words_between_spaces("one"), 1);
  EXPECT_EQ(words_between_spaces(" one\n two"), 3);
  EXPECT_EQ(words_between_spaces("one\u00a0two \n"), 3);
  EXPECT_EQ(words_between_spaces(" \n"), 2);
}

TEST_F(EvaluationTasks, CsvHasQuotesWithinQuotes) {
  write("a.csv", "a,\"b,\"\"c\"\"\nd\",\r\n,\n\"\",x\n");
  EXPECT_EQ(read_csv(path("a.csv")),
            (std::vector<std::vector<std::string>>{{"a", "b,\"c\"\nd", ""}, {"", ""}, {"", "x"}}));
  write("a.csv", "a \"byte\"?,5\" disk,\"x\"y\r\n");
  EXPECT_EQ(read_csv(path("a.csv")), (std::vector<std::vector<std::string>>{{"a \"byte\"?", "5\" disk", "xy"}}));
  write("a.csv", "\"a");
  EXPECT_THROW(read_csv(path("a.csv")), Error);
}

}  // namespace
}  // namespace plumb
