#include "plumb/evaluate/scoring.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "plumb/base/error.h"
#include "plumb/evaluate/request_batches.h"
#include "plumb/ops/index.h"
#include "plumb/ops/precision.h"
#include "plumb/ops/top_scores.h"

namespace plumb {
namespace {

/// A token that a hidden state predicts: token `target` of request `request`, from row `row`.
struct Prediction {
  int64_t row = 0;
  int32_t target = 0;
  size_t request = 0;
};

/// Sequences to read, and the tokens that their states predict.
struct Reading {
  std::vector<int64_t> tokens;
  Ragged layout;
  std::vector<Prediction> predictions;  // in the order of their rows

  void append(std::span<const int32_t> ids) {
    tokens.insert(tokens.end(), ids.begin(), ids.end());
    layout.append(std::ssize(ids));
  }
};

/// All but the last token, which is predicted but not read.
std::span<const int32_t> read_part(const std::vector<int32_t>& ids) { return std::span(ids).first(ids.size() - 1); }

class Scorer {
 public:
  Scorer(Generates& model, const std::vector<TokenRequest>& requests)
      : model_(model), requests_(requests), answers_(requests.size(), {.log_likelihood = 0, .greedy = true}) {}

  /// Answers the requests of a batch.
  void run(const RequestBatch& batch) {
    DecoderState state = begin(batch);
    const Reading contexts = contexts_of(batch);
    predict(contexts, model_.read(state, contexts.tokens, contexts.layout));
    std::vector<int64_t> order;
    const Reading rest = continuations_of(batch, order);
    if (!order.empty()) {
      state.reorder(order);
      predict(rest, model_.read(state, rest.tokens, rest.layout));
    }
  }

  [[nodiscard]] const Answer& answer(size_t request) const { return answers_[request]; }

 private:
  /// One row per group, which has read the common prefix.
  DecoderState begin(const RequestBatch& batch) {
    if (batch.common == 0) return model_.start(std::ssize(batch.groups));
    DecoderState state = model_.start(1);
    const std::vector<int32_t>& context = requests_[batch.groups.front().front()].context;
    Reading common;
    common.append(std::span(context).first(batch.common));
    model_.read(state, common.tokens, common.layout);
    state.reorder(std::vector<int64_t>(batch.groups.size(), 0));
    return state;
  }

  /// The contexts and, for groups of one request, its continuation.
  [[nodiscard]] Reading contexts_of(const RequestBatch& batch) const {
    Reading reading;
    for (const RequestGroup& group : batch.groups) {
      const TokenRequest& first = requests_[group.front()];
      std::vector<int32_t> ids(first.context.begin() + static_cast<int64_t>(batch.common), first.context.end());
      const int64_t last = reading.layout.tokens() + std::ssize(ids) - 1;
      for (const size_t request : group)
        reading.predictions.push_back({last, requests_[request].continuation.front(), request});
      if (group.size() == 1) {
        for (size_t i = 1; i < first.continuation.size(); ++i) {
          reading.predictions.push_back({last + static_cast<int64_t>(i), first.continuation[i], group.front()});
        }
        const auto more = read_part(first.continuation);
        ids.insert(ids.end(), more.begin(), more.end());
      }
      reading.append(ids);
    }
    return reading;
  }

  /// The continuations of requests that share a context; `order` receives the row that has read each one's context.
  [[nodiscard]] Reading continuations_of(const RequestBatch& batch, std::vector<int64_t>& order) const {
    Reading reading;
    for (size_t row = 0; row < batch.groups.size(); ++row) {
      const RequestGroup& group = batch.groups[row];
      if (group.size() == 1) continue;
      for (const size_t request : group) {
        const std::vector<int32_t>& continuation = requests_[request].continuation;
        if (continuation.size() == 1) continue;
        const int64_t begin = reading.layout.tokens();
        for (size_t i = 1; i < continuation.size(); ++i)
          reading.predictions.push_back({begin + static_cast<int64_t>(i) - 1, continuation[i], request});
        reading.append(read_part(continuation));
        order.push_back(static_cast<int64_t>(row));
      }
    }
    return reading;
  }

  /// Adds log p of every prediction to the answers.
  void predict(const Reading& reading, const Tensor& hidden) {
    constexpr int64_t kLogits = int64_t{1} << 24;  // at a time
    const int64_t most = std::max<int64_t>(1, kLogits / model_.vocabulary());
    const std::span<const Prediction> all = reading.predictions;
    for (size_t begin = 0; begin < all.size();) {
      std::vector<int64_t> rows;
      size_t end = begin;
      for (; end < all.size(); ++end) {
        if (!rows.empty() && rows.back() == all[end].row) continue;
        if (std::ssize(rows) == most) break;
        rows.push_back(all[end].row);
      }
      add(all.subspan(begin, end - begin), rows,
          model_.logits(hidden.index_select(0, ops::index_beside(hidden, rows))));
      begin = end;
    }
  }

  /// `rows`: the distinct rows of the predictions; `logits`: (rows, vocabulary).
  void add(std::span<const Prediction> predictions, const std::vector<int64_t>& rows, const Tensor& logits) {
    const ops::TopScores top = ops::top_scores(logits, 1, 0, /*normalize=*/true);
    std::vector<int64_t> places;
    std::vector<size_t> row_of;
    for (const Prediction& prediction : predictions) {
      if (row_of.empty() || rows[row_of.back()] != prediction.row) {
        row_of.push_back(row_of.empty() ? 0 : row_of.back() + 1);
      } else {
        row_of.push_back(row_of.back());
      }
      places.push_back(static_cast<int64_t>(row_of.back()) * logits.size(1) + prediction.target);
    }
    const Tensor chosen = logits.reshape({-1}).index_select(0, ops::index_beside(logits, places)).to(at::kDouble).cpu();
    const double* score = chosen.data_ptr<double>();
    for (size_t i = 0; i < predictions.size(); ++i) {
      const double log_probability = score[i] - top.log_partition[row_of[i]];
      if (std::isnan(log_probability))
        throw Error("the model computes NaN", "its weights are damaged; `plumb probe` shows where");
      Answer& answer = answers_[predictions[i].request];
      answer.log_likelihood += log_probability;
      answer.greedy = answer.greedy && top.ids[row_of[i]] == predictions[i].target;
    }
  }

  Generates& model_;
  const std::vector<TokenRequest>& requests_;
  std::vector<Answer> answers_;  // [request]
};

void check_requests(const Generates& model, const std::vector<TokenRequest>& requests) {
  for (const TokenRequest& request : requests) {
    if (request.context.empty() || request.continuation.empty()) throw Error("a request without tokens");
    const auto read = std::ssize(request.context) + std::ssize(request.continuation) - 1;
    if (read > model.longest())
      throw Error(fmt::format("a request of {} tokens, of which the model can read {}", read, model.longest()));
    for (const auto* ids : {&request.context, &request.continuation}) {
      for (const int32_t id : *ids) {
        if (id < 0 || id >= model.vocabulary()) {
          throw Error(fmt::format("token {} is outside the model's vocabulary of {}", id, model.vocabulary()),
                      "the tokenizer belongs to another model");
        }
      }
    }
  }
}

}  // namespace

void score_requests(Generates& model, const std::vector<TokenRequest>& requests, const ScoringOptions& options,
                    const OnAnswer& on_answer, const OnBatch& on_batch) {
  check_requests(model, requests);
  const at::NoGradGuard no_graph;
  ops::MatrixPrecision precision(ops::precision_of(options.precision), /*weights_stay=*/true);
  const ops::PrecisionGuard guard(precision);
  Scorer scorer(model, requests);
  for (const RequestBatch& batch : plan_requests(requests, options.batch_tokens)) {
    scorer.run(batch);
    for (const RequestGroup& group : batch.groups) {
      for (const size_t request : group) on_answer(request, scorer.answer(request));
    }
    if (on_batch) on_batch();
  }
}

}  // namespace plumb
