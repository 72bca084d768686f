// The extension module plumb._models: Plumb's own models, and those of others that it reads. Built only with the whole
// library (python/CMakeLists.txt, PLUMB_LIBRARY).
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "errors.h"
#include "plumb/data/directory.h"
#include "plumb/decode/generate_text.h"
#include "plumb/decode/translate.h"
#include "plumb/interop/import.h"
#include "plumb/interop/opened_model.h"
#include "plumb/task/direction.h"

namespace py = pybind11;

namespace plumb {
namespace {

/// A model with what `plumb generate` and `plumb translate` read its texts with.
class Loaded {
 public:
  Loaded(const std::string& name, const std::string& data)
      : opened_(open_model(name)), data_(data.empty() ? opened_.config.data : data) {}

  [[nodiscard]] std::string kind() const { return opened_.config.model.kind; }
  [[nodiscard]] int64_t parameters() const { return opened_.model->parameters().count(); }
  [[nodiscard]] std::string checkpoint() const { return opened_.place.checkpoint.string(); }

  std::vector<GeneratedText> generate(const std::vector<std::string>& prompts, GenerateOptions options,
                                      const std::vector<std::string>& stop, std::optional<double> repetition_penalty) {
    validate(options);
    if (reads_backward(opened_.config.task))
      throw Error("a backward language model, which predicts what precedes a text", "load one that reads forward");
    Generates& generator = generator_of(*opened_.model);
    options.whole_texts = data_.empty();  // an imported model with its own tokenizer
    if (options.whole_texts) options.ends = ends_of_texts(opened_.place.run);
    options.sampling.repetition_penalty = repetition_penalty.value_or(stated_repetition_penalty(opened_.place.run));
    const Tokenizer tokenizer =
        data_.empty() ? Tokenizer::from_file(opened_.place.run) : DataDirectory::open(data_).target_tokenizer();
    return generate_text(generator, tokenizer, prompts, options, stop);
  }

  std::vector<std::string> translate_lines(const std::vector<std::string>& lines, DecodeOptions options) {
    validate(options);
    Translates& translator = translator_of(*opened_.model);
    options.imported = data_.empty();
    if (data_.empty()) {
      const TranslationTokenizers own = translation_tokenizers(opened_.place.run);
      return translate(translator, own.source, own.target, lines, options);
    }
    const DataDirectory directory = DataDirectory::open(data_);
    return translate(translator, directory.source_tokenizer(), directory.target_tokenizer(), lines, options);
  }

 private:
  OpenedModel opened_;
  std::string data_;
};

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming)
PYBIND11_MODULE(_models, module) {
  translate_exceptions();
  py::class_<GeneratedText>(module, "Generated")
      .def_readonly("text", &GeneratedText::text)
      .def_readonly("ids", &GeneratedText::ids)
      .def_readonly("log_probability", &GeneratedText::log_probability)
      .def_property_readonly("finish", [](const GeneratedText& one) { return name_of(one.finish); });
  py::class_<Loaded>(module, "Loaded")
      .def(py::init<const std::string&, const std::string&>(), py::call_guard<py::gil_scoped_release>())
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
      .def(
          "translate",
          [](Loaded& model, const std::vector<std::string>& lines, int64_t beam, double length_penalty) {
            return model.translate_lines(lines, {.beam = beam, .length_penalty = length_penalty});
          },
          py::kw_only(), py::arg("lines"), py::arg("beam"), py::arg("length_penalty"),
          py::call_guard<py::gil_scoped_release>());
}

}  // namespace plumb
