// WikiText: the likelihood of whole articles (Merity et al. 2016, arXiv 1609.07843), per word and byte of the text
// before detokenization.
#include <fmt/format.h>

#include "plumb/base/error.h"
#include "plumb/base/input.h"
#include "plumb/base/text.h"
#include "plumb/base/text_encoding.h"
#include "plumb/base/utf8.h"
#include "plumb/evaluate/item_files.h"
#include "plumb/metrics/unicode.h"

namespace plumb {
namespace {

using Replacement = std::pair<std::string_view, std::string_view>;

void replace_each(std::string& text, const std::vector<Replacement>& replacements) {
  for (const auto& [from, to] : replacements) replace_all(text, from, to);
}

/// Removes white space after each opening mark and before the closing one that follows it.
void close_up(std::string& text, char open, char close) {
  std::string result;
  size_t done = 0;
  while (true) {
    const size_t begin = text.find(open, done);
    const size_t end = begin == std::string::npos ? begin : text.find(close, begin + 1);
    if (end == std::string::npos) break;
    result.append(text, done, begin + 1 - done);
    result += without_outer_space(std::string_view(text).substr(begin + 1, end - begin - 1));
    result += close;
    done = end + 1;
  }
  text = result.append(text, done, std::string::npos);
}

/// "/' 7/" becomes "/'[0-9]/", as in the harness, which uses a regular expression as the replacement text.
void replace_quoted_digits(std::string& text) {
  for (char digit = '0'; digit <= '9'; ++digit) replace_all(text, fmt::format("/' {}/", digit), "/'[0-9]/");
}

/// An article, detokenized as in the harness.
std::string detokenized_page(std::string text) {
  replace_all(text, "s '", "s'");
  replace_quoted_digits(text);
  replace_each(text, {{" @-@ ", "-"},
                      {" @,@ ", ","},
                      {" @.@ ", "."},
                      {" : ", ": "},
                      {" ; ", "; "},
                      {" . ", ". "},
                      {" ! ", "! "},
                      {" ? ", "? "},
                      {" , ", ", "}});
  close_up(text, '(', ')');
  close_up(text, '[', ']');
  close_up(text, '{', '}');
  close_up(text, '"', '"');
  close_up(text, '\'', '\'');
  replace_each(text, {{"= = = =", "===="},
                      {"= = =", "==="},
                      {"= =", "=="},
                      {" \u00b0 ", "\u00b0"},
                      {" \n", "\n"},
                      {"\n ", "\n"},
                      {" N ", " 1 "},
                      {" 's", "'s"}});
  return text;
}

/// Whether a line is the title of an article, " = Title = ", not of a section, " = = Section = = ".
bool is_title(const std::string& line) {
  std::string marks = line;
  replace_each(marks, {{"= = =", "==="}, {"= =", "=="}});
  const std::string_view title = without_outer_space(marks);
  return title.starts_with("= ") && title.ends_with(" =");
}

/// The articles of a split: each begins with its title.
std::vector<std::string> pages_of(const std::string& text) {
  std::vector<std::string> pages;
  std::vector<std::string> lines;
  const auto end_page = [&] {
    std::string page = join(lines, "\n");
    if (!without_outer_space(page).empty()) pages.push_back(std::move(page));
    lines.clear();
  };
  for (const std::string& line : split(text, '\n')) {
    if (is_title(line)) end_page();
    lines.push_back(line);
  }
  end_page();
  return pages;
}

/// The test split or, without it, the validation split, under the names with which they are published.
std::filesystem::path wikitext_file(const std::filesystem::path& folder) {
  for (const char* name : {"wiki.test.raw", "wikitext-2-raw-test.txt", "wiki.valid.raw", "wikitext-2-raw-valid.txt"}) {
    if (std::filesystem::exists(folder / name)) return folder / name;
  }
  throw Error(fmt::format("{}: contains no raw WikiText, such as wiki.test.raw", folder.string()),
              "give its folder with --data");
}

std::vector<EvaluationTask> load_wikitext(const std::filesystem::path& folder) {
  EvaluationTask task{.name = "wikitext", .category = "language modeling", .kind = RequestKind::rolling, .version = 2};
  task.metrics = {"word_perplexity", "byte_perplexity", "bits_per_byte"};
  const std::filesystem::path file = wikitext_file(folder);
  const std::string text = read_file(file);
  require_no_other_format(file.string(), text);
  if (!is_valid_utf8(text)) throw Error(fmt::format("{}: is not valid UTF-8", file.string()));
  for (const std::string& page : pages_of(text)) {
    task.items.push_back({.choices = {detokenized_page(page)},
                          .words = words_between_spaces(page),
                          .bytes = static_cast<int64_t>(page.size())});
  }
  return {task};
}

const bool kWikitextRegistered = evaluation_tasks().add("wikitext", "the likelihood of articles of Wikipedia",
                                                        "Merity et al. 2016, arXiv 1609.07843", load_wikitext);

}  // namespace
}  // namespace plumb
