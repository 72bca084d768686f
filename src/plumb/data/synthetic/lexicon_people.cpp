#include "plumb/data/synthetic/lexicon.h"

namespace plumb::synthetic {
namespace {

// Columns as in a dictionary: article, genitive, plural.
constexpr Gender der = Gender::masculine, die = Gender::feminine, das = Gender::neuter;
constexpr Genitive none = Genitive::none, s = Genitive::s, es = Genitive::es, n = Genitive::weak_n,
                   en = Genitive::weak_en;
constexpr Referent he = Referent::he, she = Referent::she, unspecified = Referent::unspecified;
constexpr Kinds adult = kind::adult, child = kind::child, worker = kind::adult | kind::worker,
                relative = kind::adult | kind::relative, young_relative = kind::child | kind::relative;

}  // namespace

const std::vector<Noun>& people() {
  static const std::vector<Noun> table = {
      {"Mann", der, es, "Männer", "man", "men", adult, he},
      {"Frau", die, none, "Frauen", "woman", "women", adult, she},
      {"Junge", der, n, "Jungen", "boy", "", child, he},
      {"Mädchen", das, s, "Mädchen", "girl", "", child, unspecified},
      {"Kind", das, es, "Kinder", "child", "children", child, unspecified},
      {"Dame", die, none, "Damen", "lady", "", adult, she},
      {"Herr", der, n, "Herren", "gentleman", "gentlemen", adult, he},
      {"Lehrer", der, s, "Lehrer", "teacher", "", worker, he},
      {"Lehrerin", die, none, "Lehrerinnen", "teacher", "", worker, she},
      {"Arzt", der, es, "Ärzte", "doctor", "", worker, he},
      {"Ärztin", die, none, "Ärztinnen", "doctor", "", worker, she},
      {"Bäcker", der, s, "Bäcker", "baker", "", worker, he},
      {"Bäckerin", die, none, "Bäckerinnen", "baker", "", worker, she},
      {"Koch", der, s, "Köche", "cook", "", worker, he},
      {"Köchin", die, none, "Köchinnen", "cook", "", worker, she},
      {"Polizist", der, en, "Polizisten", "policeman", "policemen", worker, he},
      {"Polizistin", die, none, "Polizistinnen", "policewoman", "policewomen", worker, she},
      {"Student", der, en, "Studenten", "student", "", adult, he},
      {"Studentin", die, none, "Studentinnen", "student", "", adult, she},
      {"Schüler", der, s, "Schüler", "pupil", "", child, he},
      {"Schülerin", die, none, "Schülerinnen", "pupil", "", child, she},
      {"Bauer", der, n, "Bauern", "farmer", "", worker, he},
      {"Bäuerin", die, none, "Bäuerinnen", "farmer", "", worker, she},
      {"Gärtner", der, s, "Gärtner", "gardener", "", worker, he},
      {"Gärtnerin", die, none, "Gärtnerinnen", "gardener", "", worker, she},
      {"Musiker", der, s, "Musiker", "musician", "", worker, he},
      {"Musikerin", die, none, "Musikerinnen", "musician", "", worker, she},
      {"Sänger", der, s, "Sänger", "singer", "", worker, he},
      {"Sängerin", die, none, "Sängerinnen", "singer", "", worker, she},
      {"Tänzer", der, s, "Tänzer", "dancer", "", worker, he},
      {"Tänzerin", die, none, "Tänzerinnen", "dancer", "", worker, she},
      {"Maler", der, s, "Maler", "painter", "", worker, he},
      {"Malerin", die, none, "Malerinnen", "painter", "", worker, she},
      {"Verkäufer", der, s, "Verkäufer", "salesman", "salesmen", worker, he},
      {"Verkäuferin", die, none, "Verkäuferinnen", "saleswoman", "saleswomen", worker, she},
      {"Kellner", der, s, "Kellner", "waiter", "", worker, he},
      {"Kellnerin", die, none, "Kellnerinnen", "waitress", "", worker, she},
      {"Busfahrer", der, s, "Busfahrer", "bus driver", "", worker, he},
      {"Busfahrerin", die, none, "Busfahrerinnen", "bus driver", "", worker, she},
      {"Nachbar", der, n, "Nachbarn", "neighbor", "", adult, he},
      {"Nachbarin", die, none, "Nachbarinnen", "neighbor", "", adult, she},
      {"Freund", der, es, "Freunde", "friend", "", relative, he},
      {"Freundin", die, none, "Freundinnen", "friend", "", relative, she},
      {"Großvater", der, s, "", "grandfather", "", relative, he},
      {"Großmutter", die, none, "", "grandmother", "", relative, she},
      {"Vater", der, s, "", "father", "", relative, he},
      {"Mutter", die, none, "", "mother", "", relative, she},
      {"Bruder", der, s, "Brüder", "brother", "", young_relative, he},
      {"Schwester", die, none, "Schwestern", "sister", "", young_relative, she},
      {"Sohn", der, es, "Söhne", "son", "", young_relative, he},
      {"Tochter", die, none, "Töchter", "daughter", "", young_relative, she},
      {"Onkel", der, s, "Onkel", "uncle", "", relative, he},
      {"Tante", die, none, "Tanten", "aunt", "", relative, she},
      {"Tourist", der, en, "Touristen", "tourist", "", adult, he},
      {"Touristin", die, none, "Touristinnen", "tourist", "", adult, she},
      {"Fotograf", der, en, "Fotografen", "photographer", "", worker, he},
      {"Fotografin", die, none, "Fotografinnen", "photographer", "", worker, she},
      {"Fischer", der, s, "Fischer", "fisherman", "fishermen", worker, he},
      {"Bauarbeiter", der, s, "Bauarbeiter", "construction worker", "", worker, he},
      {"Mechaniker", der, s, "Mechaniker", "mechanic", "", worker, he},
      {"Mechanikerin", die, none, "Mechanikerinnen", "mechanic", "", worker, she},
      {"Friseur", der, s, "Friseure", "hairdresser", "", worker, he},
      {"Friseurin", die, none, "Friseurinnen", "hairdresser", "", worker, she},
      {"Zahnarzt", der, es, "Zahnärzte", "dentist", "", worker, he},
      {"Zahnärztin", die, none, "Zahnärztinnen", "dentist", "", worker, she},
      {"Schauspieler", der, s, "Schauspieler", "actor", "", worker, he},
      {"Schauspielerin", die, none, "Schauspielerinnen", "actress", "", worker, she},
      {"Kunde", der, n, "Kunden", "customer", "", adult, he},
      {"Kundin", die, none, "Kundinnen", "customer", "", adult, she},
      {"Gast", der, es, "Gäste", "guest", "", adult, he},
      {"Kollege", der, n, "Kollegen", "colleague", "", adult, he},
      {"Kollegin", die, none, "Kolleginnen", "colleague", "", adult, she},
      {"Radfahrer", der, s, "Radfahrer", "cyclist", "", adult, he},
      {"Radfahrerin", die, none, "Radfahrerinnen", "cyclist", "", adult, she},
      {"Wanderer", der, s, "Wanderer", "hiker", "", adult, he},
      {"Clown", der, s, "Clowns", "clown", "", adult, he},
      {"Richterin", die, none, "Richterinnen", "judge", "", worker, she},
      {"Ingenieur", der, s, "Ingenieure", "engineer", "", worker, he},
      {"Ingenieurin", die, none, "Ingenieurinnen", "engineer", "", worker, she},
      {"Forscher", der, s, "Forscher", "researcher", "", worker, he},
      {"Forscherin", die, none, "Forscherinnen", "researcher", "", worker, she},
  };
  return table;
}

const std::vector<Name>& names() {
  static const std::vector<Name> table = {
      {"Anna", she},  {"Lukas", he},   {"Maria", she},  {"Peter", he},  {"Julia", she},  {"Thomas", he},
      {"Lena", she},  {"Paul", he},    {"Emma", she},   {"Felix", he},  {"Sophie", she}, {"Jan", he},
      {"Laura", she}, {"Max", he},     {"Clara", she},  {"Simon", he},  {"Nina", she},   {"Oskar", he},
      {"Helga", she}, {"Karl", he},    {"Greta", she},  {"Martin", he}, {"Ida", she},    {"Jonas", he},
      {"Eva", she},   {"Stefan", he},  {"Frieda", she}, {"Moritz", he}, {"Klara", she},  {"David", he},
      {"Marie", she}, {"Florian", he}, {"Katja", she},  {"Anton", he},  {"Hanna", she},  {"Leon", he},
  };
  return table;
}

const std::vector<Words>& cities() {
  static const std::vector<Words> table = {
      {"Berlin", "Berlin"},      {"Hamburg", "Hamburg"},  {"München", "Munich"},        {"Köln", "Cologne"},
      {"Wien", "Vienna"},        {"Zürich", "Zurich"},    {"Paris", "Paris"},           {"Rom", "Rome"},
      {"London", "London"},      {"Prag", "Prague"},      {"Dresden", "Dresden"},       {"Leipzig", "Leipzig"},
      {"Bremen", "Bremen"},      {"Italien", "Italy"},    {"Spanien", "Spain"},         {"Frankreich", "France"},
      {"Schweden", "Sweden"},    {"Norwegen", "Norway"},  {"Österreich", "Austria"},    {"Griechenland", "Greece"},
      {"Nürnberg", "Nuremberg"}, {"Venedig", "Venice"},   {"Lissabon", "Lisbon"},       {"Dänemark", "Denmark"},
      {"Warschau", "Warsaw"},    {"Brüssel", "Brussels"}, {"Kopenhagen", "Copenhagen"}, {"Portugal", "Portugal"},
  };
  return table;
}

}  // namespace plumb::synthetic
