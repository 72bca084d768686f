#include "plumb/decode/beam_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/decode/errors.h"
#include "plumb/ops/precision.h"
#include "plumb/ops/top_scores.h"

namespace plumb {
namespace {

struct Hypothesis {
  std::vector<int32_t> ids;
  double score = 0;  // Σ log p; not used in greedy decoding, which compares no sums
};

/// The search for one sentence's translation.
struct Search {
  size_t sentence = 0;
  int64_t limit = 0;                  // maximum output tokens, excluding EOS
  std::vector<Hypothesis> active{1};  // best first
  std::vector<int64_t> parents;       // for each active hypothesis, the index of the one it continues
  Hypothesis best{{},
                  -std::numeric_limits<double>::infinity()};  // finished; its score divided by length^length_penalty
  int64_t finished = 0;
};

/// A continuation of active hypothesis `parent` by `id`.
struct Candidate {
  double score;
  int64_t parent;
  int32_t id;
};

/// Returns the score, a logit or log-probability. Throws Error if it is NaN or +∞.
double checked(double score) {
  if (score < std::numeric_limits<double>::infinity()) return score;
  throw Error(fmt::format("the model gives the next token a score of {}", score), kBrokenModel);
}

/// The best `count` continuations of a sentence's active hypotheses, whose scores start at row `begin`: best first,
/// excluding the tokens in `never`. Throws Error if none has a finite score.
std::vector<Candidate> candidates(const Search& search, const ops::TopScores& top, size_t begin, size_t count,
                                  const std::vector<int32_t>& never) {
  std::vector<Candidate> all;
  const auto k = static_cast<size_t>(top.k);
  for (size_t h = 0; h < search.active.size(); ++h) {
    const size_t row = begin + h;
    const double base = search.active[h].score - (top.log_partition.empty() ? 0.0 : top.log_partition[row]);
    for (size_t i = row * k; i < (row + 1) * k && top.ids[i] >= 0; ++i) {
      const double score = checked(base + top.scores[i]);
      const bool allowed = !contains(never, top.ids[i]);
      if (allowed && std::isfinite(score)) all.push_back({score, static_cast<int64_t>(h), top.ids[i]});
    }
  }
  if (all.empty()) throw Error("the model has no finite score for any next token", kBrokenModel);
  const auto end = all.begin() + static_cast<std::ptrdiff_t>(std::min(count, all.size()));
  std::partial_sort(all.begin(), end, all.end(), [](const Candidate& a, const Candidate& b) {
    if (a.score != b.score) return a.score > b.score;
    return a.parent != b.parent ? a.parent < b.parent : a.id < b.id;
  });
  all.erase(end, all.end());
  return all;
}

void finish(Search& search, const Hypothesis& hypothesis, double sum, double length_penalty) {
  const double score = sum / std::pow(static_cast<double>(hypothesis.ids.size() + 1), length_penalty);
  if (search.finished++ == 0 || score > search.best.score) search.best = {hypothesis.ids, score};
}

/// Advances one position: finishes hypotheses and chooses the active ones for the next position; none if the sentence
/// is done.
void advance(Search& search, const std::vector<Candidate>& best, int32_t eos, const DecodeOptions& options) {
  const auto beam = static_cast<size_t>(options.beam);
  std::vector<Hypothesis> active;
  search.parents.clear();
  for (size_t rank = 0; rank < best.size() && active.size() < beam && search.finished < options.beam; ++rank) {
    const Candidate& candidate = best[rank];
    const Hypothesis& parent = search.active[static_cast<size_t>(candidate.parent)];
    if (candidate.id == eos) {
      if (rank < beam) finish(search, parent, candidate.score, options.length_penalty);
      continue;
    }
    Hypothesis& hypothesis = active.emplace_back(parent);
    hypothesis.ids.push_back(candidate.id);
    hypothesis.score = candidate.score;
    search.parents.push_back(candidate.parent);
  }
  search.active = std::move(active);
  if (search.active.empty()) return;
  // log p ≤ 0: at best, the sum stays the same up to the maximum length.
  const double reachable =
      search.active.front().score / std::pow(static_cast<double>(search.limit + 1), options.length_penalty);
  const bool done = search.finished >= options.beam || (search.finished > 0 && search.best.score >= reachable);
  if (done) search.active.clear();
}

/// At the maximum length, every active hypothesis ends.
void end_all(Search& search, const std::vector<double>& eos, size_t begin, const DecodeOptions& options) {
  for (size_t h = 0; h < search.active.size(); ++h) {
    const Hypothesis& hypothesis = search.active[h];
    finish(search, hypothesis, checked(hypothesis.score + eos[begin + h]), options.length_penalty);
  }
  search.active.clear();
}

/// log p(EOS) for each row.
std::vector<double> eos_scores(const Tensor& logits, const ops::TopScores& top, int32_t eos) {
  const Tensor column = logits.select(1, eos).to(at::kCPU, at::kDouble).contiguous();
  std::vector<double> scores(column.data_ptr<double>(), column.data_ptr<double>() + column.size(0));
  for (size_t row = 0; row < top.log_partition.size(); ++row) scores[row] -= top.log_partition[row];
  return scores;
}

int64_t output_limit(const Translates& model, size_t source_tokens, const DecodeOptions& options) {
  const auto limit =
      static_cast<int64_t>(options.length_factor * static_cast<double>(source_tokens)) + options.length_extra;
  // The decoder reads BOS and the output, one position each.
  return std::min(limit, model.longest() - 1);
}

/// The first id that can be put out: PAD and BOS are at the beginning of most vocabularies.
int32_t first_put_out(const Specials& specials) {
  int32_t first = 0;
  while (first != specials.eos && (first == specials.pad || first == specials.bos)) ++first;
  return first;
}

/// The ids from first_put_out on that are never put out: PAD, BOS, and those that the tokenizer does not have.
std::vector<int32_t> never_put_out_from(int32_t first, const DecodeOptions& options, int64_t vocabulary) {
  std::vector<int32_t> never;
  for (const int32_t id : {options.target.pad, options.target.bos}) {
    const bool known = id < first || id == options.target.eos;
    if (!known && !contains(never, id)) never.push_back(id);
  }
  for (int64_t id = options.target_pieces; options.target_pieces > 0 && id < vocabulary; ++id)
    never.push_back(static_cast<int32_t>(id));
  return never;
}

/// The last tokens of the active hypotheses, one per row.
std::vector<int64_t> last_tokens(const std::vector<Search>& searches, int32_t bos) {
  std::vector<int64_t> tokens;
  for (const Search& search : searches) {
    for (const Hypothesis& hypothesis : search.active)
      tokens.push_back(hypothesis.ids.empty() ? bos : hypothesis.ids.back());
  }
  return tokens;
}

}  // namespace

void validate(const DecodeOptions& options) {
  require_count("translate", "beam", options.beam, 1, kLargestBeam);
  require_count("translate", "length_extra", options.length_extra, 0);
  require_count("translate", "longest_source", options.longest_source, 1);
  require_count("translate", "batch_tokens", options.batch_tokens, 1);
  for (const auto& [name, value] :
       {std::pair("length_penalty", options.length_penalty), {"length_factor", options.length_factor}}) {
    if (!std::isfinite(value) || value < 0)
      throw Error(fmt::format("cannot translate with {} = {}", name, value), "it must be 0 or more");
  }
  (void)ops::precision_of(options.precision);
}

std::vector<std::vector<int32_t>> beam_search(Translates& model, const std::vector<std::vector<int32_t>>& sources,
                                              const DecodeOptions& options) {
  validate(options);
  const at::NoGradGuard no_graph;
  const bool greedy = options.beam == 1;
  const int64_t looked_at = greedy ? 1 : 2 * options.beam;
  const int32_t first = first_put_out(options.target);
  const std::vector<int32_t> never = never_put_out_from(first, options, model.vocabulary());
  std::vector<std::vector<int32_t>> results(sources.size());
  std::vector<Search> searches;
  std::vector<int64_t> source;
  Ragged layout;
  for (size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].empty()) continue;
    source.insert(source.end(), sources[i].begin(), sources[i].end());
    source.push_back(options.source.eos);
    layout.append(static_cast<int64_t>(sources[i].size()) + 1);
    Search& search = searches.emplace_back();
    search.sentence = i;
    search.limit = output_limit(model, sources[i].size(), options);
  }
  if (searches.empty()) return results;

  DecoderState state = model.start(source, layout);
  for (int64_t length = 0;; ++length) {
    const std::vector<int64_t> tokens = last_tokens(searches, options.target.bos);
    if (tokens.empty()) break;
    const Tensor logits = model.logits(model.step(state, tokens));
    const ops::TopScores top = ops::top_scores(logits, looked_at + std::ssize(never), first, !greedy);
    const bool any_ends = std::any_of(searches.begin(), searches.end(), [length](const Search& search) {
      return !search.active.empty() && search.limit == length;
    });
    const std::vector<double> eos = any_ends ? eos_scores(logits, top, options.target.eos) : std::vector<double>{};
    std::vector<int64_t> order;
    std::vector<int64_t> rows;
    size_t begin = 0;
    for (Search& search : searches) {
      const size_t before = search.active.size();
      if (before > 0 && search.limit == length) {
        end_all(search, eos, begin, options);
      } else if (before > 0) {
        advance(search, candidates(search, top, begin, static_cast<size_t>(looked_at), never), options.target.eos,
                options);
        if (greedy && length + 1 == search.limit) end_all(search, {0.0}, 0, options);  // EOS without running the model
        if (search.active.empty()) search.parents.clear();
        for (const int64_t parent : search.parents) order.push_back(static_cast<int64_t>(begin) + parent);
      }
      rows.push_back(static_cast<int64_t>(search.active.size()));
      begin += before;
    }
    std::vector<int64_t> identity(begin);
    std::iota(identity.begin(), identity.end(), int64_t{0});
    if (order != identity) state.reorder(order, std::move(rows));
  }
  for (Search& search : searches) results[search.sentence] = std::move(search.best.ids);
  return results;
}

}  // namespace plumb
