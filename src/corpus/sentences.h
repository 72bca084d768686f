// Kinds of sentences; each function generates one pair.
#pragma once

#include <vector>

#include "corpus/author.h"
#include "corpus/corpus.h"

namespace plumb::corpus {

/// A clause as a sentence in both languages.
SentencePair statement(const Clause& clause);
SentencePair question(const Clause& clause, const Words& question_word, Gap gap = Gap::none);

using SentenceKind = SentencePair (*)(Author&);

// Scenes: what a picture shows.
SentencePair caption(Author& author);            // Ein kleiner Hund läuft über die nasse Wiese.
SentencePair caption_with_time(Author& author);  // Am Morgen trinkt der Junge in der Küche Milch.
SentencePair thing_at_spot(Author& author);      // Auf dem Tisch steht eine blaue Vase.
SentencePair vehicle_scene(Author& author);      // Ein roter Bus fährt über die Brücke.
SentencePair travel(Author& author);             // Nächste Woche wird Anna mit dem Zug nach Rom reisen.
SentencePair passive_scene(Author& author);      // Das Auto wird von dem Mechaniker repariert.
SentencePair existence(Author& author);          // Es gibt 14 Stühle in dem Garten.

// Statements about someone or something.
SentencePair description(Author& author);          // Der Turm der Kirche ist sehr alt.
SentencePair comparison(Author& author);           // Die Katze ist kleiner als der Hund.
SentencePair price(Author& author);                // Das neue Buch kostet 12 Euro.
SentencePair ability(Author& author);              // Die Frau will das Auto verkaufen.
SentencePair denial(Author& author);               // Der Junge isst keinen Apfel.
SentencePair perfect_statement(Author& author);    // Der Mann hat den Koffer gepackt.
SentencePair frequency_statement(Author& author);  // Meine Tante liest oft ein Buch.

// Complex sentences.
SentencePair relative_subject(Author& author);  // Der Mann, der einen Hut trägt, liest ein Buch.
SentencePair relative_object(Author& author);   // Der Ball, den der Hund fängt, ist rot.
SentencePair reason(Author& author);            // Das Mädchen lacht, weil ...
SentencePair meanwhile(Author& author);         // Während die Frau kocht, liest der Mann die Zeitung.
SentencePair content_clause(Author& author);    // Anna sieht, dass der Hund im Garten schläft.
SentencePair condition(Author& author);         // Wenn es regnet, bleibt die Katze im Haus.
SentencePair purpose(Author& author);           // Der Mann geht in den Laden, um Brot zu kaufen.
SentencePair concession(Author& author);        // Obwohl es regnet, ...

// Questions and requests.
SentencePair yes_no_question(Author& author);    // Isst der Junge den Apfel?
SentencePair open_question(Author& author);      // Wo schläft die Katze?
SentencePair counting_question(Author& author);  // Wie viele Bücher liest die Frau?
SentencePair request(Author& author);            // Bitte öffnen Sie das Fenster!

// Two-step stories.
SentencePair shared_subject(Author& author);  // Der Mann öffnete die Tür und ging in den Garten.
SentencePair two_sentences(Author& author);   // Der Hund lief weg. Dann ...
SentencePair same_object(Author& author);     // Die Frau kaufte einen Apfel und aß ihn.
SentencePair after_that(Author& author);      // Nachdem der Mann gegessen hatte, ging er in den Garten.
SentencePair before_that(Author& author);     // Bevor sie frühstückt, ...
SentencePair two_scenes(Author& author);      // Die Frau kocht, und der Mann liest.

}  // namespace plumb::corpus
