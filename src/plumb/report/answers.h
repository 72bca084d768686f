// What a study answers, in words, and first.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "plumb/base/json.h"

namespace plumb {

/// At most three verdicts of results.json, each with another figure, as sentences: the decided ones, "B: supported;
/// ratio: 2 (95% interval 1 to 3; 5 seeds).", or else that none is decided, and then what was seen of the others: "C:
/// not proven; ratio: 2 (1 seed). One seed has no interval." Empty without verdicts.
std::vector<std::string> answers_in_words(const Json& verdicts);

/// Orders results.json by what the study asks. The last `verdicts` verdicts and `sentences` of the summary, which are
/// about its own claims, come before the others; and the figure of the first decided verdict (or else of the first),
/// with its parts, before the other figures. Without sentences on own claims, the answers in words end the summary.
void put_answers_first(Json& results, size_t verdicts, size_t sentences);

}  // namespace plumb
