#include "plumb/data/synthetic/lexicon.h"

namespace plumb::synthetic {
namespace {

void add_days(std::vector<TimeExpression>& table) {
  const Words weekdays[] = {{"Montag", "Monday"},       {"Dienstag", "Tuesday"}, {"Mittwoch", "Wednesday"},
                            {"Donnerstag", "Thursday"}, {"Freitag", "Friday"},   {"Samstag", "Saturday"},
                            {"Sonntag", "Sunday"}};
  const Words parts[] = {{"morgen", "morning"}, {"mittag", "noon"}, {"nachmittag", "afternoon"}, {"abend", "evening"}};
  const Words months[] = {{"Januar", "January"},  {"Februar", "February"},  {"März", "March"},
                          {"April", "April"},     {"Mai", "May"},           {"Juni", "June"},
                          {"Juli", "July"},       {"August", "August"},     {"September", "September"},
                          {"Oktober", "October"}, {"November", "November"}, {"Dezember", "December"}};
  for (const Words& day : weekdays) {
    table.push_back({{"am " + day.german, "on " + day.english}, TimeKind::day});
    table.push_back({{"jeden " + day.german, "every " + day.english}, TimeKind::habit});
    for (const Words& part : parts) {
      if (part.german == "mittag") continue;
      table.push_back({{"am " + day.german + part.german, "on " + day.english + " " + part.english}, TimeKind::day});
    }
  }
  int number = 3;
  for (const Words& month : months) {
    table.push_back({{"im " + month.german, "in " + month.english}, TimeKind::day});
    number = number % 27 + 4;
    table.push_back(
        {{"am " + std::to_string(number) + ". " + month.german, "on " + month.english + " " + std::to_string(number)},
         TimeKind::day});
  }
}

}  // namespace

const std::vector<Adverb>& adverbs() {
  using namespace manner;
  static const std::vector<Adverb> table = {
      {{"schnell", "quickly"}, speed, false},
      {{"langsam", "slowly"}, speed | care, false},
      {{"vorsichtig", "carefully"}, care, false},
      {{"geduldig", "patiently"}, calm, false},
      {{"gründlich", "thoroughly"}, cleaning, false},
      {{"fröhlich", "happily"}, joy, false},
      {{"begeistert", "enthusiastically"}, joy, false},
      {{"leise", "quietly"}, quiet, false},
      {{"ruhig", "calmly"}, calm | peace, false},
      {{"friedlich", "peacefully"}, peace, false},
      {{"laut", "loudly"}, loud, false},
      {{"freundlich", "kindly"}, warmth, false},
      {{"gern", "gladly"}, warmth, false},
      {{"zusammen mit Freunden", "together with friends"}, joy, true},
      {{"allein", "alone"}, peace, true},
      {{"barfuß", "barefoot"}, on_foot, true},
      {{"heimlich", "secretly"}, quiet, false},
      {{"geschickt", "skillfully"}, care, false},
      {{"neugierig", "curiously"}, curiosity, false},
  };
  return table;
}

const std::vector<Words>& frequencies() {
  static const std::vector<Words> table = {
      {"oft", "often"},        {"immer", "always"}, {"manchmal", "sometimes"},       {"selten", "rarely"},
      {"meistens", "usually"}, {"nie", "never"},    {"gelegentlich", "occasionally"}};
  return table;
}

const std::vector<TimeExpression>& times() {
  static const std::vector<TimeExpression> table = [] {
    std::vector<TimeExpression> result = {
        {{"jetzt", "now"}, TimeKind::now},
        {{"gerade", "right now"}, TimeKind::now},
        {{"heute", "today"}, TimeKind::now},
        {{"im Moment", "at the moment"}, TimeKind::now},
        {{"heute Abend", "tonight"}, TimeKind::future},
        {{"morgen", "tomorrow"}, TimeKind::future},
        {{"morgen früh", "tomorrow morning"}, TimeKind::future},
        {{"übermorgen", "the day after tomorrow"}, TimeKind::future},
        {{"nächste Woche", "next week"}, TimeKind::future},
        {{"nächsten Monat", "next month"}, TimeKind::future},
        {{"nächstes Jahr", "next year"}, TimeKind::future},
        {{"bald", "soon"}, TimeKind::future},
        {{"in einer Stunde", "in an hour"}, TimeKind::future},
        {{"in drei Tagen", "in three days"}, TimeKind::future},
        {{"gestern", "yesterday"}, TimeKind::past},
        {{"gestern Morgen", "yesterday morning"}, TimeKind::past},
        {{"gestern Abend", "yesterday evening"}, TimeKind::past},
        {{"vorgestern", "the day before yesterday"}, TimeKind::past},
        {{"letzte Woche", "last week"}, TimeKind::past},
        {{"letzten Monat", "last month"}, TimeKind::past},
        {{"letztes Jahr", "last year"}, TimeKind::past},
        {{"letzten Sommer", "last summer"}, TimeKind::past},
        {{"letzten Winter", "last winter"}, TimeKind::past},
        {{"vor einer Stunde", "an hour ago"}, TimeKind::past},
        {{"vor zwei Tagen", "two days ago"}, TimeKind::past},
        {{"vor drei Wochen", "three weeks ago"}, TimeKind::past},
        {{"vor fünf Minuten", "five minutes ago"}, TimeKind::past},
        {{"vor vielen Jahren", "many years ago"}, TimeKind::past},
        {{"am Morgen", "in the morning"}, TimeKind::habit},
        {{"am Nachmittag", "in the afternoon"}, TimeKind::habit},
        {{"am Abend", "in the evening"}, TimeKind::habit},
        {{"am Wochenende", "on the weekend"}, TimeKind::habit},
        {{"in der Nacht", "at night"}, TimeKind::habit},
        {{"jeden Tag", "every day"}, TimeKind::habit},
        {{"jeden Morgen", "every morning"}, TimeKind::habit},
        {{"jeden Abend", "every evening"}, TimeKind::habit},
        {{"jede Woche", "every week"}, TimeKind::habit},
        {{"einmal im Monat", "once a month"}, TimeKind::habit},
        {{"zweimal am Tag", "twice a day"}, TimeKind::habit},
        {{"im Sommer", "in summer"}, TimeKind::habit},
        {{"im Winter", "in winter"}, TimeKind::habit},
        {{"im Herbst", "in the fall"}, TimeKind::habit},
        {{"im Frühling", "in spring"}, TimeKind::habit},
        {{"nach der Arbeit", "after work"}, TimeKind::habit},
        {{"nach dem Essen", "after the meal"}, TimeKind::habit},
        {{"vor dem Frühstück", "before breakfast"}, TimeKind::habit},
        {{"um acht Uhr", "at eight o'clock"}, TimeKind::day},
        {{"um zehn Uhr", "at ten o'clock"}, TimeKind::day},
        {{"um drei Uhr", "at three o'clock"}, TimeKind::day},
        {{"um Mitternacht", "at midnight"}, TimeKind::day},
    };
    add_days(result);
    return result;
  }();
  return table;
}

const std::vector<Modal>& modals() {
  static const std::vector<Modal> table = {
      {"wollen", "will", "wollen", "wollte", "wants to", "want to", "wanted to", "wanted to"},
      {"können", "kann", "können", "konnte", "can", "can", "could", "could"},
      {"müssen", "muss", "müssen", "musste", "has to", "have to", "had to", "had to"},
      {"dürfen", "darf", "dürfen", "durfte", "is allowed to", "are allowed to", "was allowed to", "were allowed to"},
      {"sollen", "soll", "sollen", "sollte", "is supposed to", "are supposed to", "was supposed to",
       "were supposed to"},
      {"mögen", "möchte", "möchten", "mochte", "would like to", "would like to", "", ""},
  };
  return table;
}

}  // namespace plumb::synthetic
