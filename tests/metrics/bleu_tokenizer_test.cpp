#include "plumb/metrics/bleu_tokenizer.h"

#include <gtest/gtest.h>

#include "plumb/base/error.h"

namespace plumb {
namespace {

using Words = std::vector<std::string>;

Words tokenize(const std::string& tokenizer, const std::string& line) {
  return bleu_tokenizers().at(tokenizer).make(line);
}
Words tokenize_13a(const std::string& line) { return tokenize("13a", line); }
Words tokenize_international(const std::string& line) { return tokenize("intl", line); }

TEST(Tokenizer13a, EveryAsciiMarkButApostrophePeriodCommaAndDashStandsAlone) {
  for (const char mark : std::string("!\"#$%&()*+/:;<=>?@[\\]^_`{|}~")) {
    const std::string word(1, mark);
    EXPECT_EQ(tokenize_13a("a" + word + "b"), (Words{"a", word, "b"})) << mark;
    EXPECT_EQ(tokenize_13a("1" + word + "2"), (Words{"1", word, "2"})) << mark;
  }
  EXPECT_EQ(tokenize_13a("don't well-known"), (Words{"don't", "well-known"}));
}

TEST(Tokenizer13a, PeriodsAndCommasStayInsideNumbersOnly) {
  EXPECT_EQ(tokenize_13a("1,234.5"), (Words{"1,234.5"}));
  EXPECT_EQ(tokenize_13a("a.b"), (Words{"a", ".", "b"}));
  EXPECT_EQ(tokenize_13a("a,5"), (Words{"a", ",", "5"}));
  EXPECT_EQ(tokenize_13a("5,a"), (Words{"5", ",", "a"}));
  EXPECT_EQ(tokenize_13a("In 1999."), (Words{"In", "1999", "."}));
  EXPECT_EQ(tokenize_13a(".5"), (Words{".", "5"}));
  EXPECT_EQ(tokenize_13a("wait..."), (Words{"wait", ".", ".", "."}));
  EXPECT_EQ(tokenize_13a("größe.é,"), (Words{"größe", ".", "é", ","}));
}

TEST(Tokenizer13a, WhatOneMatchTookTheNextDoesNotSee) {
  // "1.,2": the period follows a digit, so the first match is ".,", which splits off the comma.
  EXPECT_EQ(tokenize_13a("1.,2"), (Words{"1", ".", ",", "2"}));
  // "1..2": ".." is one match, which splits off the second period; the first is then followed by a space.
  EXPECT_EQ(tokenize_13a("1..2"), (Words{"1", ".", ".", "2"}));
  // "a..2": the match "a." consumes the first period, so the second has a digit after it and no free character before.
  EXPECT_EQ(tokenize_13a("a..2"), (Words{"a", ".", ".2"}));
}

TEST(Tokenizer13a, DashesAreCutOffAfterDigits) {
  EXPECT_EQ(tokenize_13a("2019-2020"), (Words{"2019", "-", "2020"}));
  EXPECT_EQ(tokenize_13a("28-year-old"), (Words{"28", "-", "year-old"}));
  EXPECT_EQ(tokenize_13a("a-5"), (Words{"a-5"}));
}

TEST(Tokenizer13a, UndoesSgmlEntitiesAndSkippedMarks) {
  EXPECT_EQ(tokenize_13a("&quot;a&quot; &amp; b"), (Words{"\"", "a", "\"", "&", "b"}));
  EXPECT_EQ(tokenize_13a("1 &lt; 2 &gt; 0"), (Words{"1", "<", "2", ">", "0"}));
  EXPECT_EQ(tokenize_13a("&amp;lt;"), (Words{"<"}));
  EXPECT_EQ(tokenize_13a("&apos;"), (Words{"&", "apos", ";"}));
  EXPECT_EQ(tokenize_13a("a <skipped> b<skipped>"), (Words{"a", "b"}));
}

TEST(Tokenizer13a, JoinsHyphenatedLinesAndSeparatesOthers) {
  EXPECT_EQ(tokenize_13a("trans-\nformer\nmodel"), (Words{"transformer", "model"}));
  EXPECT_EQ(tokenize_13a("end-\n"), (Words{"end-"}));  // the end of the last line is not a hyphenation
}

TEST(Tokenizer13a, LeavesPunctuationOutsideAsciiAlone) {
  EXPECT_EQ(tokenize_13a("„Ja“ – 5€"), (Words{"„Ja“", "–", "5€"}));
}

TEST(TokenizerInternational, SeparatesPunctuationAndSymbolsOfAllScripts) {
  EXPECT_EQ(tokenize_international("„Ja“"), (Words{"„", "Ja", "“"}));
  EXPECT_EQ(tokenize_international("5€+3°"), (Words{"5", "€", "+", "3", "°"}));
  EXPECT_EQ(tokenize_international("don't"), (Words{"don", "'", "t"}));
  EXPECT_EQ(tokenize_international("well-known"), (Words{"well", "-", "known"}));
  EXPECT_EQ(tokenize_international("他说:好。"), (Words{"他说", ":", "好", "。"}));
  EXPECT_EQ(tokenize_international("😀a"), (Words{"😀", "a"}));
}

TEST(TokenizerInternational, KeepsPunctuationBetweenNumbersOfAnyScript) {
  EXPECT_EQ(tokenize_international("1,234.5"), (Words{"1,234.5"}));
  EXPECT_EQ(tokenize_international("2019-2020"), (Words{"2019-2020"}));
  EXPECT_EQ(tokenize_international("٣.١٤"), (Words{"٣.١٤"}));
  EXPECT_EQ(tokenize_international("½.½"), (Words{"½.½"}));
  EXPECT_EQ(tokenize_international("a.5"), (Words{"a", ".", "5"}));
  EXPECT_EQ(tokenize_international("5.a"), (Words{"5", ".", "a"}));
}

TEST(TokenizerInternational, APeriodAfterANumberAtTheEndOfTheLineStays) {
  EXPECT_EQ(tokenize_international("In 1999."), (Words{"In", "1999."}));
  EXPECT_EQ(tokenize_international("In 1999. \n"), (Words{"In", "1999."}));  // trailing white space is ignored
  EXPECT_EQ(tokenize_international("In 1999. Yes."), (Words{"In", "1999", ".", "Yes", "."}));
}

TEST(TokenizerInternational, LeavesEntitiesAlone) {
  EXPECT_EQ(tokenize_international("&lt;"), (Words{"&", "lt", ";"}));
}

TEST(TokenizerChinese, SeparatesIdeographsAndTheRestAs13aDoes) {
  EXPECT_EQ(tokenize("zh", "小船ABC公司,3.5吨。"), (Words{"小", "船", "ABC", "公", "司", ",", "3.5", "吨", "。"}));
  EXPECT_EQ(tokenize("zh", "ＡＢ，々〇"), (Words{"Ａ", "Ｂ", "，", "々", "〇"}));
  EXPECT_EQ(tokenize("zh", "a—b…c"), (Words{"a", "—", "b", "…", "c"}));
  // Kana and Hangul stay together, and so do ideographs beyond U+FFFF.
  EXPECT_EQ(tokenize("zh", "カタカナ 배가 𠀋𠀋"), (Words{"カタカナ", "배가", "𠀋𠀋"}));
  // Neither padded nor unescaped: a period after a number at the end stays with it.
  EXPECT_EQ(tokenize("zh", "吨5."), (Words{"吨", "5."}));
  EXPECT_EQ(tokenize("zh", " &lt; "), (Words{"&", "lt", ";"}));
}

TEST(TokenizerCharacter, OneWordACodePointWithoutWhiteSpace) {
  EXPECT_EQ(tokenize("char", " ab ü\t😀\u3000,"), (Words{"a", "b", "ü", "😀", ","}));
}

TEST(TokenizerNone, CutsAtWhiteSpaceOfAllKindsOnly) {
  EXPECT_EQ(tokenize("none", " a,b  c.\t\u00A0d\u3000e\x1F f "), (Words{"a,b", "c.", "d", "e", "f"}));
  EXPECT_EQ(tokenize("none", "a\u200Bb"), (Words{"a\u200Bb"}));  // the zero-width space is not white space
}

TEST(Tokenizers, AnEmptyLineHasNoWords) {
  for (const std::string& name : bleu_tokenizers().names()) {
    EXPECT_TRUE(tokenize(name, "").empty()) << name;
    EXPECT_TRUE(tokenize(name, " \t\u3000").empty()) << name;
  }
}

TEST(Tokenizers, AnUnknownNameIsAnError) { EXPECT_THROW(bleu_tokenizers().at("14a"), Error); }

}  // namespace
}  // namespace plumb
