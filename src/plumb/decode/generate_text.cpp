#include "plumb/decode/generate_text.h"

#include <fmt/format.h>

#include <utility>

#include "plumb/base/error.h"
#include "plumb/base/text.h"
#include "plumb/decode/text_stream.h"

namespace plumb {

std::vector<int32_t> encode_prompt(const Tokenizer& tokenizer, const std::string& prompt) {
  std::vector<int32_t> ids;
  for (const std::string& line : split(prompt, '\n')) {
    const std::vector<int32_t> more = tokenizer.encode(line);
    if (more.empty()) continue;
    if (!ids.empty()) ids.push_back(require_special(tokenizer.specials().eos, "end of a line"));
    ids.insert(ids.end(), more.begin(), more.end());
  }
  return ids;
}

std::vector<int32_t> encode_whole_prompt(const Tokenizer& tokenizer, const std::string& prompt) {
  std::vector<int32_t> ids = tokenizer.encode_as_input(prompt);
  if (!ids.empty()) return ids;
  return {token_before_text(tokenizer.specials())};
}

std::vector<GeneratedText> generate_text(Generates& model, const Tokenizer& tokenizer,
                                         const std::vector<std::string>& prompts, const GenerateOptions& options,
                                         const std::vector<std::string>& stop, const GenerateTextHooks& hooks) {
  std::vector<std::vector<int32_t>> ids;
  for (const std::string& prompt : prompts)
    ids.push_back(options.whole_texts ? encode_whole_prompt(tokenizer, prompt) : encode_prompt(tokenizer, prompt));
  return generate_text_from_ids(model, tokenizer, ids, options, stop, hooks);
}

std::vector<GeneratedText> generate_text_from_ids(Generates& model, const Tokenizer& tokenizer,
                                                  const std::vector<std::vector<int32_t>>& prompts,
                                                  const GenerateOptions& given, const std::vector<std::string>& stop,
                                                  const GenerateTextHooks& hooks) {
  GenerateOptions options = given;
  if (options.whole_texts) options.vocabulary = tokenizer.vocabulary();
  // An imported model's embedding may have more rows than there are tokens.
  const bool fits =
      options.whole_texts ? model.vocabulary() >= tokenizer.vocabulary() : model.vocabulary() == tokenizer.vocabulary();
  if (!fits) {
    throw Error(fmt::format("the model's vocabulary ({}) does not match the tokenizer's ({})", model.vocabulary(),
                            tokenizer.vocabulary()),
                options.whole_texts ? "the tokenizer belongs to another model"
                                    : "give the data directory that the model was trained on");
  }
  for (const std::string& text : stop) {
    if (text.empty()) throw Error("a stop string is empty", "it would end every text immediately; omit it");
  }
  validate(options);
  std::vector<TextStream> streams;
  for (const std::vector<int32_t>& prompt : prompts) {
    for (int64_t s = 0; s < options.samples; ++s) streams.emplace_back(tokenizer, prompt, stop);
  }
  const auto stream_of_sample = [&](size_t prompt, size_t sample) -> TextStream& {
    return streams[prompt * static_cast<size_t>(options.samples) + sample];
  };
  const auto hand_out = [&](size_t prompt, size_t sample, const std::string& text) {
    if (hooks.text && !text.empty()) hooks.text(prompt, sample, text);
  };
  GenerateHooks own;
  own.token = [&](size_t prompt, size_t sample, int32_t id) {
    TextStream& stream = stream_of_sample(prompt, sample);
    hand_out(prompt, sample, stream.add(id));
    return !stream.stopped();
  };
  own.end = [&](size_t prompt, size_t sample, const Generated&) {
    hand_out(prompt, sample, stream_of_sample(prompt, sample).finish());
    if (hooks.end) hooks.end(prompt, sample);
  };
  std::vector<Generated> generated = generate(model, prompts, options, own, tokenizer.specials());
  std::vector<GeneratedText> results;
  for (size_t i = 0; i < generated.size(); ++i) results.push_back({std::move(generated[i]), streams[i].text()});
  return results;
}

}  // namespace plumb
