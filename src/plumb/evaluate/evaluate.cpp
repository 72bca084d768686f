#include "plumb/evaluate/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "plumb/base/crc32.h"
#include "plumb/base/error.h"
#include "plumb/base/progress.h"
#include "plumb/evaluate/answer_store.h"
#include "plumb/evaluate/completion.h"

namespace plumb {
namespace {

/// The requests of a task, and the choices to which they belong.
struct TaskRequests {
  struct Owner {
    size_t item = 0;
    size_t choice = 0;
  };
  std::vector<TokenRequest> requests;
  std::vector<Owner> owners;  // [request]

  void add(TokenRequest request, Owner owner) {
    requests.push_back(std::move(request));
    owners.push_back(owner);
  }
};

/// Items with their continuations, not yet answered.
std::vector<ItemResult> ask(const EvaluationTask& task, const EvaluateOptions& options) {
  const size_t limit = options.limit > 0 ? static_cast<size_t>(options.limit) : task.items.size();
  const size_t count = std::min(limit, task.items.size());
  std::vector<ItemResult> items;
  for (size_t i = 0; i < count; ++i) {
    ItemResult& item = items.emplace_back();
    if (task.kind == RequestKind::generate_until) {
      item.continuations = {""};
    } else {
      for (const std::string& choice : task.items[i].choices)
        item.continuations.push_back(delimiter_of(task.kind) + choice);
    }
    item.answers.assign(item.continuations.size(), {.log_likelihood = 0, .greedy = true});
  }
  return items;
}

/// `longest`: the most tokens that the model reads; for generation, that a prompt may have.
TaskRequests requests_of(const EvaluationTask& task, const std::vector<ItemResult>& items, const TextEncoder& encoder,
                         int64_t longest) {
  TaskRequests all;
  for (size_t i = 0; i < items.size(); ++i) {
    const std::string& context = task.items[i].context;
    for (size_t choice = 0; choice < items[i].continuations.size(); ++choice) {
      const std::string& continuation = items[i].continuations[choice];
      try {
        if (task.kind == RequestKind::rolling) {
          for (TokenRequest& window : encoder.windows(continuation, longest)) all.add(std::move(window), {i, choice});
        } else if (task.kind == RequestKind::generate_until) {
          all.add({.context = encoder.prompt(context, longest), .continuation = {}}, {i, choice});
        } else {
          all.add(shortened(encoder.request(context, continuation), longest), {i, choice});
        }
      } catch (const Error& error) {
        throw Error(fmt::format("task {}, item {}: {}", task.name, i, error.what()), error.hint());
      }
    }
  }
  return all;
}

/// Counts tokens, what is asked in the same ones, and bytes that the tokenizer loses.
void count_losses(TaskResult& result, const TaskRequests& all, const TextEncoder& encoder) {
  if (result.task.kind == RequestKind::generate_until) return;
  for (const TokenRequest& request : all.requests) result.tokens += std::ssize(request.continuation);
  for (size_t i = 0; i < result.items.size(); ++i) {
    const std::string& context = result.task.items[i].context;
    const int64_t of_context = encoder.lost_bytes(context);
    for (const std::string& continuation : result.items[i].continuations) {
      result.bytes += std::ssize(continuation);
      result.lost_bytes += std::max<int64_t>(0, encoder.lost_bytes(context + continuation) - of_context);
    }
  }
  if (result.task.kind != RequestKind::multiple_choice) return;
  std::set<size_t> same;  // items
  for (size_t i = 0; i < all.requests.size(); ++i) {
    for (size_t k = i; k-- > 0 && all.owners[k].item == all.owners[i].item;) {
      if (all.requests[k] == all.requests[i]) same.insert(all.owners[i].item);
    }
  }
  result.same_tokens = std::ssize(same);
}

/// A checksum of the requests, in order.
std::string digest_of(const std::vector<TokenRequest>& requests) {
  uint32_t digest = 0;
  for (const TokenRequest& request : requests) {
    for (const auto* ids : {&request.context, &request.continuation}) {
      const auto length = static_cast<uint64_t>(ids->size());
      digest = crc32_of(std::as_bytes(std::span(&length, 1)), digest);
      digest = crc32_of(std::as_bytes(std::span(*ids)), digest);
    }
  }
  return crc32_text(digest);
}

/// Answers a task's requests, calling back with each answer and between batches.
void answer_requests(Generates& model, const TextEncoder& encoder, const TaskResult& result,
                     const EvaluateOptions& options, const std::vector<TokenRequest>& requests,
                     const OnAnswer& on_answer, const OnBatch& on_batch) {
  if (result.task.kind != RequestKind::generate_until)
    return score_requests(model, requests, options.scoring, on_answer, on_batch);
  std::vector<std::vector<int32_t>> prompts;
  for (const TokenRequest& request : requests) prompts.push_back(request.context);
  const CompletionOptions completion{.until = result.task.until,
                                     .max_tokens = options.max_tokens,
                                     .ends = options.ends,
                                     .repetition_penalty = options.repetition_penalty,
                                     .precision = options.scoring.precision};
  complete_prompts(model, encoder, prompts, completion, on_answer, on_batch);
}

/// Computes the answers that are not known yet.
void complete(AnswerStore& store, Generates& model, const TextEncoder& encoder, const TaskResult& result,
              const EvaluateOptions& options, const std::vector<TokenRequest>& requests) {
  std::vector<size_t> numbers;
  std::vector<TokenRequest> missing;
  for (size_t i = 0; i < requests.size(); ++i) {
    if (store.answers()[i]) continue;
    numbers.push_back(i);
    missing.push_back(requests[i]);
  }
  if (missing.empty()) return;
  auto done = static_cast<int64_t>(store.known());
  Progress progress("evaluating " + result.task.name, std::ssize(requests), Progress::Unit::steps, done);
  answer_requests(
      model, encoder, result, options, missing,
      [&](size_t i, const Answer& answer) {
        store.put(numbers[i], answer);
        ++done;
      },
      [&] {
        progress.update(done);
        store.save_sometimes();
      });
  store.save();
}

/// The requests of items, as tokens.
TaskRequests encoded(const EvaluationTask& task, const std::vector<ItemResult>& items, const TextEncoder& encoder,
                     const EvaluateOptions& options) {
  const bool writes = task.kind == RequestKind::generate_until;
  return requests_of(task, items, encoder,
                     writes ? room_for_prompt(options.max_length, options.max_tokens) : options.max_length);
}

}  // namespace

void check_items(const EvaluationTask& task, const TextEncoder& encoder, const EvaluateOptions& options) {
  encoded(task, ask(task, options), encoder, options);
}

TaskResult evaluate_task(Generates& model, const TextEncoder& encoder, EvaluationTask task,
                         const EvaluateOptions& options) {
  TaskResult result{.task = std::move(task), .max_tokens = options.max_tokens};
  result.items = ask(result.task, options);
  const TaskRequests all = encoded(result.task, result.items, encoder, options);
  count_losses(result, all, encoder);

  Json settings = {{"model", options.model},
                   {"precision", options.scoring.precision},
                   {"requests", all.requests.size()},
                   {"crc32", digest_of(all.requests)}};
  if (result.task.kind == RequestKind::generate_until) {
    settings.update({{"until", result.task.until},
                     {"max_tokens", options.max_tokens},
                     {"ends", ends_of_answers(encoder.tokenizer(), options.ends, result.task.until)}});
    if (options.repetition_penalty != 1) settings["repetition_penalty"] = options.repetition_penalty;
  }
  const std::filesystem::path file =
      options.answers.empty() ? std::filesystem::path() : options.answers / (result.task.name + ".json");
  AnswerStore store(file, settings, all.requests.size());
  complete(store, model, encoder, result, options, all.requests);

  for (size_t i = 0; i < all.requests.size(); ++i) {
    const Answer& part = *store.answers()[i];
    Answer& answer = result.items[all.owners[i].item].answers[all.owners[i].choice];
    answer.log_likelihood += part.log_likelihood;
    answer.greedy = answer.greedy && part.greedy;
    if (part.text) answer.text = part.text;
  }
  const std::vector<EvaluationItem> asked(result.task.items.begin(),
                                          result.task.items.begin() + std::ssize(result.items));
  std::vector<std::vector<Answer>> answers;
  for (const ItemResult& item : result.items) answers.push_back(item.answers);
  for (const std::string& metric : result.task.metrics)
    result.metrics.push_back(measure(metric, asked, answers, options.resampling));
  return result;
}

}  // namespace plumb
