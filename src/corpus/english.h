// English inflection: articles, plurals, comparatives, verb forms. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "corpus/lexicon.h"

namespace plumb::corpus {

/// "a" or "an", by the sound of the next word ("an hour", "a uniform").
std::string_view english_article(std::string_view next_word);

/// "boxes", "cities", "knives" (from the table), "pants".
std::string english_plural(const Noun& noun);

/// The singular with 's, the plural with ' or 's: "boy's", "boys'", "children's".
std::string english_possessive(const std::string& noun, Number number);

/// "bigger", "nicer", "happier", "more expensive".
std::string english_comparative(const Adjective& adjective);

/// "runs", "watches", "carries", "has".
std::string third_person(const std::string& base);

/// "running", "writing", "lying".
std::string progressive(const std::string& base);

/// "walked", "stopped", "carried", or the irregular form from the table.
std::string past(const EnglishVerb& verb);
std::string past_participle(const EnglishVerb& verb);

}  // namespace plumb::corpus
