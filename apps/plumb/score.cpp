// plumb score: BLEU and chrF of translations against references.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/text.h"
#include "plumb/metrics/bleu.h"
#include "plumb/metrics/bleu_smoothing.h"
#include "plumb/metrics/bleu_tokenizer.h"
#include "plumb/metrics/chrf.h"
#include "verb.h"

namespace plumb::app {
namespace {

struct ScoreOptions {
  std::vector<std::string> references;
  std::string hypothesis;  // empty or "-": standard input
  bool lowercase = false;
  BleuOptions bleu;
  ChrfOptions chrf;
};

std::string human(const BleuScore& bleu, const ChrfScore& chrf) {
  const auto& p = bleu.precisions;
  const double ratio = bleu.reference_length == 0
                           ? 0.0
                           : static_cast<double>(bleu.system_length) / static_cast<double>(bleu.reference_length);
  return fmt::format(
      "BLEU|{} = {:.1f} {:.1f}/{:.1f}/{:.1f}/{:.1f} (BP = {:.3f} ratio = {:.3f} hyp_len = {} ref_len = {})\n{}|{} = "
      "{:.1f}\n",
      bleu.signature, bleu.score, p[0], p[1], p[2], p[3], bleu.brevity_penalty, ratio, bleu.system_length,
      bleu.reference_length, chrf.name, chrf.signature, chrf.score);
}

Json document(const BleuScore& bleu, const ChrfScore& chrf) {
  Json result = make_document("score", 1);
  result["bleu"] = bleu.score;
  result["precisions"] = bleu.precisions;
  result["brevity_penalty"] = bleu.brevity_penalty;
  result["system_length"] = bleu.system_length;
  result["reference_length"] = bleu.reference_length;
  result["signature"] = bleu.signature;
  result["chrf"] = chrf.score;
  result["chrf_name"] = chrf.name;
  result["chrf_signature"] = chrf.signature;
  return result;
}

void score(const ScoreOptions& options, const Globals& globals) {
  // References first, so that a wrong path is reported before waiting for standard input.
  std::vector<std::vector<std::string>> references;
  for (const std::string& path : options.references) references.push_back(read_lines(path));
  const bool from_input = options.hypothesis.empty() || options.hypothesis == "-";
  const std::string name = from_input ? "standard input" : options.hypothesis;
  const std::vector<std::string> hypotheses = from_input ? read_standard_input() : read_lines(options.hypothesis);
  if (hypotheses.empty())
    throw Error(name + " is empty: there is nothing to score", "provide one translation per line");
  for (size_t i = 0; i < references.size(); ++i) {
    if (references[i].size() == hypotheses.size()) continue;
    throw Error(fmt::format("{} has {} line{}, but reference {} has {}", name, hypotheses.size(),
                            hypotheses.size() == 1 ? "" : "s", options.references[i], references[i].size()),
                "line i of every file must be a translation of the same sentence");
  }

  BleuOptions bleu_options = options.bleu;
  ChrfOptions chrf_options = options.chrf;
  bleu_options.lowercase = chrf_options.lowercase = options.lowercase;
  const BleuScore bleu = corpus_bleu(hypotheses, references, bleu_options);
  const ChrfScore chrf = corpus_chrf(hypotheses, references, chrf_options);
  emit(globals, document(bleu, chrf), human(bleu, chrf));
}

}  // namespace

void add_score(CLI::App& app, Globals& globals) {
  auto options = std::make_shared<ScoreOptions>();
  CLI::App* verb =
      add_verb(app, globals, "score", "Score translations with BLEU and chrF, as sacreBLEU does",
               "plumb score reference.de < translation.de", [options, &globals] { score(*options, globals); });
  add_json_option(*verb, globals);
  verb->add_option("REFERENCE", options->references,
                   "Reference translations, one sentence per line; several files are alternative references")
      ->type_name("FILE")
      ->required();
  verb->add_option("--hypothesis", options->hypothesis, "Translations to score (default: standard input)")
      ->type_name("FILE");
  verb->add_option("--tokenize", options->bleu.tokenizer, "BLEU tokenizer")
      ->check(CLI::IsMember(bleu_tokenizers().names()))
      ->capture_default_str();
  verb->add_flag("--lowercase", options->lowercase, "Ignore case");
  verb->add_option("--smoothing", options->bleu.smoothing, "BLEU smoothing")
      ->check(CLI::IsMember(bleu_smoothings().names()))
      ->capture_default_str();
  verb->add_option("--chrf-word-order", options->chrf.word_order, "Order of word n-grams in chrF; 2 is chrF++")
      ->check(CLI::Range(0, 9))
      ->capture_default_str();
}

}  // namespace plumb::app
