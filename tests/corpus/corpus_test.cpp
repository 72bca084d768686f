// The built-in corpus: its grammar against hand-written forms, and invariants of every sentence.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "corpus/corpus.h"
#include "corpus/grammar.h"
#include "corpus/lexicon.h"
#include "plumb/base/error.h"
#include "plumb/base/random.h"
#include "plumb/base/text.h"

namespace plumb::corpus {
namespace {

const Noun& noun(std::string_view german) {
  for (const Noun& candidate : lexicon().nouns) {
    if (candidate.german == german) return candidate;
  }
  throw Error("no noun");
}

const Verb& verb(std::string_view infinitive, std::string_view english) {
  for (const Verb& candidate : lexicon().verbs) {
    if (candidate.prefix + candidate.infinitive == infinitive && candidate.english == english) return candidate;
  }
  throw Error("no verb");
}

Phrase phrase(std::string_view german, Determiner determiner, std::string_view quality = "", bool plural = false) {
  std::vector<const Adjective*> adjectives;
  for (const Adjective& adjective : lexicon().adjectives) {
    if (adjective.predicate == quality) adjectives = {&adjective};
  }
  const Words count = determiner == Determiner::count ? Words{"drei", "three"} : Words{};
  return phrase_of(noun(german), determiner, plural, adjectives, {}, count);
}

std::string all_cases(const Phrase& of) { return join({of.german.begin(), of.german.end()}, " / "); }

std::string both(const Clause& clause, std::string_view order) {
  const Words words = clause_in(clause, order);
  return words.german + " / " + words.english;
}

std::set<std::string> word_forms(const std::vector<SentencePair>& pairs, std::string SentencePair::*side) {
  std::set<std::string> forms;
  for (const SentencePair& pair : pairs) {
    for (std::string word : split(pair.*side, ' ')) {
      while (!word.empty() && std::string_view(".,?!").find(word.back()) != std::string_view::npos) word.pop_back();
      std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::tolower(c); });
      if (!word.empty()) forms.insert(word);
    }
  }
  return forms;
}

bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t length = lead < 0x80 ? 1 : lead >= 0xC2 && lead < 0xE0 ? 2 : lead >= 0xE0 && lead < 0xF0 ? 3 : 0;
    if (length == 0 || i + length > text.size()) return false;
    for (size_t k = 1; k < length; ++k) {
      if ((static_cast<unsigned char>(text[i + k]) & 0xC0) != 0x80) return false;
    }
    i += length;
  }
  return true;
}

class SyntheticCorpus : public testing::Test {
 protected:
  static const std::vector<SentencePair>& pairs() {
    static const std::vector<SentencePair> corpus = synthesize(20000, 1);
    return corpus;
  }
};

TEST_F(SyntheticCorpus, HasAsManyDistinctPairsAsAskedFor) {
  EXPECT_EQ(pairs().size(), 20000U);
  std::set<std::string> sources;
  for (const SentencePair& pair : pairs()) sources.insert(pair.source);
  EXPECT_EQ(sources.size(), pairs().size());
  EXPECT_EQ(synthesize(60000, 3).size(), 60000U);
  EXPECT_TRUE(synthesize(0, 1).empty());
}

TEST_F(SyntheticCorpus, RefusesImpossibleCounts) {
  EXPECT_THROW(synthesize(-1, 1), Error);
  EXPECT_THROW(synthesize(kMaximumPairs + 1, 1), Error);
  EXPECT_THROW(synthesize_each(-1, 1, [](SentencePair&&) {}), Error);
  EXPECT_THROW(synthesize_each(kMaximumStreamedPairs + 1, 1, [](SentencePair&&) {}), Error);
}

TEST_F(SyntheticCorpus, IsAFunctionOfItsSeedAndAPrefixOfALargerOne) {
  const auto again = synthesize(3000, 1);
  for (size_t i = 0; i < again.size(); ++i) {
    ASSERT_EQ(again[i].source, pairs()[i].source);
    ASSERT_EQ(again[i].target, pairs()[i].target);
  }
  const auto other = synthesize(3000, 2);
  size_t equal = 0;
  for (size_t i = 0; i < other.size(); ++i) equal += other[i].source == again[i].source ? 1 : 0;
  EXPECT_LT(equal, 3U);
}

// The same bytes with every compiler and machine: only a change of grammar or lexicon may change this number.
TEST_F(SyntheticCorpus, HasTheSameBytesEverywhere) {
  uint64_t hash = stream_of("");
  for (const SentencePair& pair : pairs()) hash = hash * 31 + stream_of(pair.source + "\t" + pair.target);
  EXPECT_EQ(hash, 11584546426866969141U);
}

TEST_F(SyntheticCorpus, HasALargeVocabulary) {
  EXPECT_GE(word_forms(pairs(), &SentencePair::source).size(), 3000U);
  EXPECT_GE(word_forms(pairs(), &SentencePair::target).size(), 1800U);
}

TEST_F(SyntheticCorpus, SentencesAreOfModerateLength) {
  int64_t german = 0, english = 0;
  for (const SentencePair& pair : pairs()) {
    const auto words = [](const std::string& text) { return static_cast<int64_t>(split(text, ' ').size()); };
    ASSERT_GE(words(pair.source), 2);
    ASSERT_LE(words(pair.source), 26);
    ASSERT_LE(words(pair.target), 26);
    german += words(pair.source);
    english += words(pair.target);
  }
  const auto count = static_cast<int64_t>(pairs().size());
  EXPECT_GE(german, 9 * count);
  EXPECT_LE(english, 13 * count);
}

TEST_F(SyntheticCorpus, IsCleanText) {
  for (const SentencePair& pair : pairs()) {
    for (const std::string& text : {pair.source, pair.target}) {
      ASSERT_TRUE(is_utf8(text)) << text;
      ASSERT_EQ(text.find("  "), std::string::npos) << text;
      for (const char* const wrong : {" ,", " .", ",,", ",.", " ?", " !", "..", "\t"}) {
        ASSERT_EQ(text.find(wrong), std::string::npos) << text;
      }
      ASSERT_NE(std::string_view(".?!").find(text.back()), std::string_view::npos) << text;
      ASSERT_FALSE(text.front() >= 'a' && text.front() <= 'z') << text;
    }
    ASSERT_EQ(pair.source.back(), pair.target.back()) << pair.source;
  }
}

// An article that cannot precede its noun in any case or number reveals an error.
TEST_F(SyntheticCorpus, EveryArticleAgreesWithItsNoun) {
  const std::set<std::string> articles = {"der", "die", "das", "den", "dem", "ein", "eine", "einen", "einem", "einer"};
  std::map<std::string, std::set<std::string>> allowed;  // noun form → articles directly before it
  for (const Noun& entry : lexicon().nouns) {
    for (const bool plural : {false, true}) {
      if (plural && entry.plural.empty()) continue;
      for (const Determiner determiner : {Determiner::definite, Determiner::indefinite}) {
        if (plural && determiner == Determiner::indefinite) continue;
        for (const std::string& form : phrase_of(entry, determiner, plural, {}).german) {
          const std::vector<std::string> words = split(form, ' ');
          allowed[words[1]].insert(words[0]);
        }
      }
    }
  }
  size_t checked = 0;
  for (const SentencePair& pair : pairs()) {
    const std::vector<std::string> words = split(pair.source, ' ');
    for (size_t i = 0; i + 1 < words.size(); ++i) {
      std::string word = words[i + 1];
      while (!word.empty() && std::string_view(".,?!").find(word.back()) != std::string_view::npos) word.pop_back();
      const auto known = allowed.find(word);
      const bool relative_pronoun = i > 0 && words[i - 1].back() == ',';
      if (relative_pronoun || !articles.contains(words[i]) || known == allowed.end()) continue;
      ASSERT_TRUE(known->second.contains(words[i])) << words[i] << " " << word << ": " << pair.source;
      ++checked;
    }
  }
  EXPECT_GT(checked, 10000U);
}

TEST_F(SyntheticCorpus, EveryEnglishArticleSuitsTheNextSound) {
  size_t checked = 0;
  for (const SentencePair& pair : pairs()) {
    const std::vector<std::string> words = split(pair.target, ' ');
    for (size_t i = 0; i + 1 < words.size(); ++i) {
      if (words[i] != "a" && words[i] != "an") continue;
      const bool vowel = std::string_view("aeiou").find(words[i + 1][0]) != std::string_view::npos;
      const bool exception =
          words[i + 1].starts_with("honest") || words[i + 1].starts_with("hour") || words[i + 1].starts_with("used");
      ASSERT_EQ(words[i] == "an", vowel != exception) << pair.target;
      ++checked;
    }
  }
  EXPECT_GT(checked, 5000U);
}

TEST_F(SyntheticCorpus, NoTemplateIsLeftUnfilled) {
  for (const SentencePair& pair : pairs()) {
    ASSERT_EQ((pair.source + pair.target).find_first_of("{}<_*+/"), std::string::npos) << pair.source;
  }
}

TEST(SyntheticGrammar, DeclinesArticleAdjectiveAndNoun) {
  using enum Determiner;
  EXPECT_EQ(all_cases(phrase("Hund", definite, "klein")), "der kleine Hund / den kleinen Hund / dem kleinen Hund");
  EXPECT_EQ(all_cases(phrase("Katze", definite, "klein")), "die kleine Katze / die kleine Katze / der kleinen Katze");
  EXPECT_EQ(all_cases(phrase("Haus", definite, "klein")), "das kleine Haus / das kleine Haus / dem kleinen Haus");
  EXPECT_EQ(all_cases(phrase("Hund", definite, "klein", true)),
            "die kleinen Hunde / die kleinen Hunde / den kleinen Hunden");
  EXPECT_EQ(all_cases(phrase("Junge", indefinite, "müde")),
            "ein müder Junge / einen müden Jungen / einem müden Jungen");
  EXPECT_EQ(all_cases(phrase("Frau", indefinite, "alt")), "eine alte Frau / eine alte Frau / einer alten Frau");
  EXPECT_EQ(all_cases(phrase("Zimmer", indefinite, "dunkel")),
            "ein dunkles Zimmer / ein dunkles Zimmer / einem dunklen Zimmer");
  EXPECT_EQ(all_cases(phrase("Kind", count, "jung", true)),
            "drei junge Kinder / drei junge Kinder / drei jungen Kindern");
  EXPECT_EQ(all_cases(phrase("Kaffee", none, "kalt")), "kalter Kaffee / kalten Kaffee / kaltem Kaffee");
  EXPECT_EQ(all_cases(phrase("Milch", none, "kalt")), "kalte Milch / kalte Milch / kalter Milch");
  EXPECT_EQ(all_cases(phrase("Wasser", none, "kalt")), "kaltes Wasser / kaltes Wasser / kaltem Wasser");
  EXPECT_EQ(all_cases(phrase("Bus", definite, "lila")), "der lila Bus / den lila Bus / dem lila Bus");
  const Phrase woman = phrase("Frau", definite);
  EXPECT_EQ(all_cases(phrase_of(noun("Hut"), possessive, false, {}, woman)), "ihr Hut / ihren Hut / ihrem Hut");
  EXPECT_EQ(phrase_of(noun("Hut"), possessive, false, {}, woman).english, "her hat");
  EXPECT_EQ(all_cases(pronoun_of(woman)), "sie / sie / ihr");
  EXPECT_EQ(after("in", phrase("Garten", definite, "alt"), Case::dative), "im alten Garten");
  EXPECT_EQ(after("in", phrase("Garten", indefinite), Case::accusative), "in einen Garten");
  EXPECT_EQ(phrase("Apfel", indefinite, "gesund").english, "a healthy apple");
  EXPECT_EQ(phrase("Apfel", indefinite).english, "an apple");
}

TEST(SyntheticGrammar, BuildsCompounds) {
  const Noun& table = noun("Küchentisch");
  EXPECT_EQ(table.gender, 0U);
  EXPECT_EQ(phrase_of(table, Determiner::definite, true, {}).german[2], "den Küchentischen");
  EXPECT_EQ(table.english, "kitchen table");
  EXPECT_EQ(noun("Küchenmesser").english_plural, "kitchen knives");
  std::set<std::string> names;
  for (const Noun& entry : lexicon().nouns) EXPECT_TRUE(names.insert(entry.german).second) << entry.german << " twice";
}

TEST(SyntheticGrammar, KnowsTheFormsOfVerbs) {
  const auto forms = [](const Verb& v) {
    return join({v.present, v.preterite, v.participle, v.with_s, v.with_ing, v.past, v.past_participle}, " ");
  };
  EXPECT_EQ(forms(verb("laufen", "run")), "läuft lief gelaufen runs running ran run");
  EXPECT_EQ(forms(verb("arbeiten", "work")), "arbeitet arbeitete gearbeitet works working worked worked");
  EXPECT_EQ(forms(verb("probieren", "taste")), "probiert probierte probiert tastes tasting tasted tasted");
  EXPECT_EQ(forms(verb("tragen", "carry")), "trägt trug getragen carries carrying carried carried");
  EXPECT_EQ(forms(verb("liegen", "lie")), "liegt lag gelegen lies lying lay lain");
  EXPECT_EQ(forms(verb("beobachten", "watch")), "beobachtet beobachtete beobachtet watches watching watched watched");
  EXPECT_EQ(forms(verb("einpacken", "wrap")), "packt packte eingepackt wraps wrapping wrapped wrapped");
}

TEST(SyntheticGrammar, PlacesVerbsAndNegation) {
  const Phrase stone = phrase("Stein", Determiner::definite);
  Clause clause{phrase("Frau", Determiner::definite), &verb("aufheben", "pick"), &tense_of("present")};
  clause.object = {stone.german[1], stone.english};
  EXPECT_EQ(both(clause, "main"), "die Frau hebt den Stein auf / the woman is picking up the stone");
  EXPECT_EQ(both(clause, "last"), "die Frau den Stein aufhebt / the woman is picking up the stone");
  EXPECT_EQ(both(clause, "question"), "hebt die Frau den Stein auf / is the woman picking up the stone");
  EXPECT_EQ(both(clause, "infinitive"), "den Stein aufzuheben / to pick up the stone");
  EXPECT_EQ(both(clause, "predicate"), "hebt den Stein auf / is picking up the stone");
  EXPECT_THROW((void)both(clause, "sideways"), Error);
  clause.negated = true;
  EXPECT_EQ(both(clause, "main"), "die Frau hebt den Stein nicht auf / the woman is not picking up the stone");
  clause.tense = &tense_of("preterite");
  EXPECT_EQ(both(clause, "main"), "die Frau hob den Stein nicht auf / the woman did not pick up the stone");
  EXPECT_EQ(both(clause, "question"), "hob die Frau den Stein nicht auf / did the woman not pick up the stone");
  clause.negated = false;
  clause.tense = &tense_of("habit");
  EXPECT_EQ(both(clause, "question"), "hebt die Frau den Stein auf / does the woman pick up the stone");
  EXPECT_EQ(both(clause, "main"), "die Frau hebt den Stein auf / the woman picks up the stone");
  clause.tense = &tense_of("perfect");
  EXPECT_EQ(both(clause, "main"), "die Frau hat den Stein aufgehoben / the woman has picked up the stone");
  EXPECT_EQ(both(clause, "last"), "die Frau den Stein aufgehoben hat / the woman has picked up the stone");
  clause.tense = &tense_of("future");
  EXPECT_EQ(both(clause, "inverted"), "wird die Frau den Stein aufheben / the woman will pick up the stone");
  EXPECT_THROW(tense_of("past"), Error);

  Clause children{phrase("Kind", Determiner::definite, "", true), &verb("laufen", "run"), &tense_of("pluperfect")};
  EXPECT_EQ(both(children, "last"), "die Kinder gelaufen waren / the children had run");
  children.tense = &tense_of("preterite");
  EXPECT_EQ(both(children, "main"), "die Kinder liefen / the children ran");
  const Phrase running = related(phrase("Mann", Determiner::definite), clause_in(children, "relative"));
  EXPECT_EQ(finish(running.german[0] + " ."), "Der Mann, der liefen.");
  EXPECT_EQ(running.english, "the man who ran");
}

}  // namespace
}  // namespace plumb::corpus
