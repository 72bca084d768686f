// The extension module plumb._models: Plumb's own models, and those of others that it reads. Built only with the whole
// library (python/CMakeLists.txt, PLUMB_LIBRARY).
#include <pybind11/stl.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plumb/base/error.h"
#include "plumb/base/plugins.h"
#include "plumb/data/directory.h"
#include "plumb/decode/generate_text.h"
#include "plumb/decode/translate.h"
#include "plumb/evaluate/completion.h"
#include "plumb/evaluate/text_loss.h"
#include "plumb/interop/classifier.h"
#include "plumb/interop/embedder.h"
#include "plumb/interop/import.h"
#include "plumb/interop/opened_model.h"
#include "plumb/task/direction.h"
#include "plumb/task/task.h"

namespace py = pybind11;

namespace plumb {
namespace {

/// A model with what the program reads its texts with.
class Loaded {
 public:
  Loaded(const std::string& name, const std::string& data, const std::vector<std::string>& libraries) {
    for (const std::string& library : libraries) load_plugin(library);
    opened_ = std::make_shared<OpenedModel>(open_model(name));
    data_ = data.empty() ? opened_->config.data : data;
  }

  [[nodiscard]] std::string kind() const { return opened_->config.model.kind; }
  [[nodiscard]] int64_t parameters() const { return opened_->model->parameters().count(); }
  [[nodiscard]] std::string checkpoint() const { return opened_->place.checkpoint.string(); }

  std::vector<GeneratedText> generate(const std::vector<std::string>& prompts, GenerateOptions options,
                                      const std::vector<std::string>& stop, std::optional<double> repetition_penalty) {
    validate(options);
    Generates& generator = forward_generator();
    options.whole_texts = data_.empty();  // an imported model with its own tokenizer
    if (options.whole_texts) options.ends = ends_of_texts(opened_->place.run);
    options.sampling.repetition_penalty = repetition_penalty.value_or(stated_repetition_penalty(opened_->place.run));
    return generate_text(generator, tokenizer(), prompts, options, stop);
  }

  /// (Σ −log p, tokens), as `plumb evaluate` computes it from its own tasks of whole texts.
  std::pair<double, int64_t> loss_of(const std::vector<std::string>& texts) {
    Generates& model = forward_generator();
    const TextLoss found = text_loss(model, encoder(), texts, context_length(model, opened_->place.run));
    return {found.sum, found.tokens};
  }

  /// Of each context and continuation: log p(continuation | context), and whether greedy decoding yields it.
  std::vector<std::pair<double, bool>> log_likelihoods(const std::vector<std::pair<std::string, std::string>>& pairs) {
    Generates& model = forward_generator();
    const int64_t longest = context_length(model, opened_->place.run);
    const TextEncoder encoder = this->encoder();
    std::vector<TokenRequest> requests;
    for (const auto& [context, continuation] : pairs)
      requests.push_back(shortened(encoder.request(context, continuation), longest));
    std::vector<std::pair<double, bool>> found(pairs.size());
    score_requests(model, requests, {}, [&](size_t number, const Answer& answer) {
      found[number] = {answer.log_likelihood, answer.greedy};
    });
    return found;
  }

  /// The greedy continuation of each prompt, up to a string in `until`, as `plumb evaluate` writes answers.
  std::vector<std::string> complete(const std::vector<std::string>& prompts, const std::vector<std::string>& until,
                                    int64_t max_tokens) {
    Generates& model = forward_generator();
    const std::filesystem::path& run = opened_->place.run;
    const int64_t room = room_for_prompt(context_length(model, run), max_tokens);
    const TextEncoder encoder = this->encoder();
    std::vector<std::vector<int32_t>> ids;
    for (const std::string& prompt : prompts) ids.push_back(encoder.prompt(prompt, room));
    std::vector<std::string> texts(prompts.size());
    const CompletionOptions options{.until = until,
                                    .max_tokens = max_tokens,
                                    .ends = ends_of_texts(run),
                                    .repetition_penalty = stated_repetition_penalty(run)};
    complete_prompts(model, encoder, ids, options,
                     [&](size_t number, const Answer& answer) { texts[number] = answer.text.value(); });
    return texts;
  }

  /// The task's metrics on a split of the data, as `plumb train` computes them.
  std::map<std::string, double> metrics_on(const std::string& split) {
    if (data_.empty()) throw Error("an imported model has no data of its own", "pass data, or texts");
    const RunConfig& config = opened_->config;
    const std::unique_ptr<Task> task = make_task(config.task, DataDirectory::open(data_), config.model.kind);
    ModelConfig model = config.model;
    task->complete(model);
    const std::vector<std::string> labels = labels_of(opened_->place.run);
    if (!labels.empty() && labels != task->data().labels())
      throw Error(data_ + ": its labels are not those of the model, in the same order",
                  "pass the data of its training");
    const Sums sums = evaluate(*task, *opened_->model, *task->dataset(split), config.train.batch_tokens,
                               config.train.label_smoothing, Group());
    const auto found = task->metrics(sums);
    return {found.begin(), found.end()};
  }

  Tensor embed(const std::vector<std::string>& texts, const AskedEmbedding& asked) {
    return embed_texts(make_embedder(opened_, data_, asked), texts).vectors;
  }

  /// The labels, and p(label) for each of them and each example.
  std::pair<std::vector<std::string>, std::vector<std::vector<double>>> classify(
      const std::vector<std::pair<std::string, std::string>>& texts) {
    std::vector<TextExample> examples;
    for (const auto& [first, second] : texts) examples.push_back({first, second});
    const Classifier classifier = make_classifier(opened_, data_);
    return {classifier.labels, plumb::classify(classifier, examples, ClassifyOptions())};
  }

  std::vector<std::string> translate_lines(const std::vector<std::string>& lines, DecodeOptions options) {
    validate(options);
    Translates& translator = translator_of(*opened_->model);
    options.imported = data_.empty();
    if (data_.empty()) {
      const TranslationTokenizers own = translation_tokenizers(opened_->place.run);
      return translate(translator, own.source, own.target, lines, options);
    }
    const DataDirectory directory = DataDirectory::open(data_);
    return translate(translator, directory.source_tokenizer(), directory.target_tokenizer(), lines, options);
  }

 private:
  [[nodiscard]] Generates& forward_generator() const {
    if (reads_backward(opened_->config.task))
      throw Error("a backward language model, which predicts what precedes a text", "load one that reads forward");
    return generator_of(*opened_->model);
  }

  [[nodiscard]] TextEncoder encoder() const {
    return {tokenizer(), data_.empty() ? EvaluatedText::whole : EvaluatedText::lines};
  }

  [[nodiscard]] Tokenizer tokenizer() const {
    return data_.empty() ? Tokenizer::from_file(opened_->place.run) : DataDirectory::open(data_).target_tokenizer();
  }

  std::shared_ptr<OpenedModel> opened_;
  std::string data_;
};

/// Errors of the library as plumb.Error, whose type plumb._plumb has.
void translate(std::exception_ptr thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    const std::string hint = error.hint().empty() ? "" : "\n" + error.hint();
    const py::object type = py::module_::import("plumb._plumb").attr("Error");
    PyErr_SetString(type.ptr(), (error.what() + hint).c_str());
  } catch (const c10::Error&) {
    torch::translate_exception_to_python(thrown);
  }
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming)
PYBIND11_MODULE(_models, module) {
  py::register_local_exception_translator(&translate);
  py::class_<GeneratedText>(module, "Generated")
      .def_readonly("text", &GeneratedText::text)
      .def_readonly("ids", &GeneratedText::ids)
      .def_readonly("log_probability", &GeneratedText::log_probability)
      .def_property_readonly("finish", [](const GeneratedText& one) { return name_of(one.finish); });
  py::class_<Loaded>(module, "Loaded")
      .def(py::init<const std::string&, const std::string&, const std::vector<std::string>&>(),
           py::call_guard<py::gil_scoped_release>())
      .def_property_readonly("kind", &Loaded::kind)
      .def_property_readonly("parameters", &Loaded::parameters)
      .def_property_readonly("checkpoint", &Loaded::checkpoint)
      .def(
          "generate",
          [](Loaded& model, const std::vector<std::string>& prompts, int64_t samples, int64_t max_tokens, int64_t lines,
             double temperature, int64_t top_k, double top_p, double min_p, std::optional<double> repetition_penalty,
             int64_t seed, const std::vector<std::string>& stop) {
            GenerateOptions options{.samples = samples, .max_tokens = max_tokens, .lines = lines};
            options.sampling.temperature = temperature;
            options.sampling.top_k = top_k;
            options.sampling.top_p = top_p;
            options.sampling.min_p = min_p;
            options.sampling.seed = seed;
            return model.generate(prompts, options, stop, repetition_penalty);
          },
          py::kw_only(), py::arg("prompts"), py::arg("samples"), py::arg("max_tokens"), py::arg("lines"),
          py::arg("temperature"), py::arg("top_k"), py::arg("top_p"), py::arg("min_p"), py::arg("repetition_penalty"),
          py::arg("seed"), py::arg("stop"), py::call_guard<py::gil_scoped_release>())
      .def("loss_of", &Loaded::loss_of, py::arg("texts"), py::call_guard<py::gil_scoped_release>())
      .def("log_likelihoods", &Loaded::log_likelihoods, py::arg("pairs"), py::call_guard<py::gil_scoped_release>())
      .def("complete", &Loaded::complete, py::kw_only(), py::arg("prompts"), py::arg("until"), py::arg("max_tokens"),
           py::call_guard<py::gil_scoped_release>())
      .def("metrics_on", &Loaded::metrics_on, py::arg("split"), py::call_guard<py::gil_scoped_release>())
      .def(
          "embed",
          [](Loaded& model, const std::vector<std::string>& texts, std::optional<std::string> pooling,
             std::optional<bool> normalize, std::optional<int64_t> max_tokens) {
            return model.embed(texts, {std::move(pooling), normalize, max_tokens});
          },
          py::kw_only(), py::arg("texts"), py::arg("pooling"), py::arg("normalize"), py::arg("max_tokens"),
          py::call_guard<py::gil_scoped_release>())
      .def("classify", &Loaded::classify, py::arg("texts"), py::call_guard<py::gil_scoped_release>())
      .def(
          "translate",
          [](Loaded& model, const std::vector<std::string>& lines, int64_t beam, double length_penalty) {
            return model.translate_lines(lines, {.beam = beam, .length_penalty = length_penalty});
          },
          py::kw_only(), py::arg("lines"), py::arg("beam"), py::arg("length_penalty"),
          py::call_guard<py::gil_scoped_release>());
}

}  // namespace plumb
