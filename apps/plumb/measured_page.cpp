#include "measured_page.h"

#include <fmt/format.h>

#include <cmath>
#include <sstream>
#include <tuple>
#include <utility>
#include <vector>

#include "in_words.h"
#include "plumb/base/files.h"
#include "plumb/base/progress.h"
#include "plumb/base/text.h"
#include "plumb/report/display_name.h"
#include "plumb/report/html.h"
#include "plumb/report/measured_figures.h"
#include "plumb/report/results.h"

namespace plumb::app {
namespace {

/// With the three columns of an interval.
std::vector<std::string> with_interval_columns(std::vector<std::string> columns, const std::string& name) {
  for (const std::string& each : {name, std::string("from"), std::string("to")}) columns.push_back(each);
  return columns;
}

void add_sentences(std::vector<std::string>& summary, const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) summary.push_back(line);
  }
}

/// The page's head: title, what was measured, the facts of the subject.
Results page_head(const std::string& title, const Subject& subject) {
  const ModelConfig& config = subject.config;
  const auto [encoder_layers, decoder_layers] = depth_of(config);
  const std::string weights = subject.weights ? subject.weights_origin : "initialized: " + config.initialization;
  Results page{title,
               fmt::format("{}, {} + {} layers, width {}; {}; {} examples, {} target tokens",
                           display_name(config.residual), encoder_layers, decoder_layers, width_of(config), weights,
                           with_thousands(subject.examples()), with_thousands(subject.target_tokens()))};
  page.subject = "measurement";
  return page;
}

/// The line of the theory through the last layer's mean.
void add_theory(Figure& figure, const TheoryReport::Slope& slope, const std::vector<Interval>& norms) {
  if (!slope.predicted || norms.empty()) return;
  Series& line = figure.add("W₂ by theory", "theory", "dashed");
  for (size_t layer = 1; layer <= norms.size(); ++layer) {
    const double above = static_cast<double>(norms.size() - layer);
    line.point(layer, norms.back().mean * std::exp(-*slope.predicted * above));
  }
}

Figure figure_of_stack(StackKind stack, const ProbeReport& report, const ModelDepth& depth) {
  FeedForwardNorms norms;
  const int64_t layers = stack == StackKind::encoder ? depth.encoder_layers : depth.decoder_layers;
  for (int64_t layer = 0; layer < layers; ++layer) {
    for (const auto& [matrix, of_matrix] : {std::pair{1, &norms.first}, {2, &norms.second}}) {
      if (const FeedForwardReport* found = report.find({stack, layer}, matrix); found != nullptr)
        of_matrix->push_back(found->batch_mean_gradient_norm);
    }
  }
  Figure figure = gradient_figure(stack, {{"", norms}}, seeds_in_words(report.loss.count));
  for (const TheoryReport::Slope& slope : report.theory.layer_slopes) {
    if (slope.stack == stack && slope.matrix == 2) add_theory(figure, slope, norms.second);
  }
  std::erase_if(figure.series, [](const Series& line) { return line.x.empty(); });
  return figure;
}

Figure signal_figure(const ProbeReport& report, const ModelDepth& depth, double d) {
  const bool post = report.theory.placement == theory::Placement::post_ln;
  Figure figure{"signal",
                "Activations by layer",
                fmt::format("Mean square of {} per feature; dashed: the bounds of Lemma 2 (Xiong et al. 2020) for this "
                            "model, where they apply.",
                            post ? "what each layer's last norm reads" : "the stream after each layer"),
                "line",
                {"layer"},
                {"‖x‖²/d", true}};
  for (const StackKind stack : {StackKind::encoder, StackKind::decoder}) {
    const int64_t layers = stack == StackKind::encoder ? depth.encoder_layers : depth.decoder_layers;
    Series measured, low, high;
    for (int64_t layer = 0; layer < layers; ++layer) {
      const SignalReport* point =
          report.find(ActivationPoint{{stack, layer, SubLayerKind::feed_forward}, post ? Point::sum : Point::stream});
      if (point == nullptr) continue;
      const Interval& square = point->mean_square;
      measured.point(layer + 1, square.mean / d, square.low / d, square.high / d);
      if (!point->theory) continue;
      low.point(layer + 1, point->theory->adapted.low / d);
      high.point(layer + 1, point->theory->adapted.high / d);
    }
    if (measured.x.empty()) continue;
    const auto add = [&](Series line, const std::string& name, const std::string& style) {
      line.name = name;
      line.group = to_string(stack);
      line.style = style;
      if (!line.x.empty()) figure.series.push_back(line);
    };
    add(measured, to_string(stack), "solid");
    add(low, fmt::format("{}, {}", to_string(stack), low.y == high.y ? "theory" : "at least"), "dashed");
    if (low.y != high.y) add(high, fmt::format("{}, at most", to_string(stack)), "dashed");
  }
  return figure;
}

/// By sub-layers from the stack's input.
Figure similarity_figure(const std::vector<BranchReport>& branches) {
  Figure figure{
      "similarity",
      "How similar the tokens of a sequence become",
      "Mean cosine between two tokens of a sequence in the stream after each sub-layer; dashed: predicted from "
      "the sizes of the matrices alone.",
      "line",
      {"sub-layers from the stack's input"},
      {"mean cosine"}};
  for (const StackKind stack : {StackKind::encoder, StackKind::decoder}) {
    Series measured, predicted;
    measured.name = measured.group = predicted.group = to_string(stack);
    predicted.name = fmt::format("{}, predicted", to_string(stack));
    predicted.style = "dashed";
    int64_t depth = 0;
    for (const BranchReport& branch : branches) {
      if (branch.id.stack != stack) continue;
      const auto& [mean, low, high, count] = branch.similarity;
      measured.point(++depth, mean, low, high);
      if (branch.predicted) predicted.point(depth, branch.predicted->similarity);
    }
    if (!measured.x.empty()) figure.series.push_back(measured);
    if (!predicted.x.empty()) figure.series.push_back(predicted);
  }
  return figure;
}

Table layers_table(const ProbeReport& report) {
  Table table{"layers", "Gradients by layer", "Means over the initializations, with 95% intervals.", {}};
  table.columns = with_interval_columns({"matrix"}, "‖∂L/∂W‖");
  for (const FeedForwardReport& each : report.feed_forward) table.row(each.parameter, each.batch_mean_gradient_norm);
  return table;
}

void add_gains(const BackwardGainReport& report, int64_t seeds, Results& page) {
  Table table{"gains", "What each part passes back", "Geometric means, with 95% intervals.", {}};
  table.columns = with_interval_columns(with_interval_columns({"part"}, "‖∂L/∂x‖ behind it"), "gain");
  for (const BackwardGainReport::Stack& stack : report.stacks) {
    page.figures.push_back(gain_figure(stack.stack, {{"", report}}, seeds));
    for (const BackwardGainReport::Part& part : stack.parts) table.row(to_string(part.point), part.gradient, part.gain);
  }
  page.tables.push_back(table);
}

void add_first_steps(const std::vector<FirstStepReport>& steps, int64_t seeds, Results& page) {
  Table table{"first_steps", "The first step", "The learning rate above which the first step raises the loss.", {}};
  table.columns = with_interval_columns({"optimizer"}, "critical learning rate");
  for (const FirstStepReport& step : steps) {
    table.row(step.optimizer, step.critical_rate);
    page.figures.push_back(logit_change_figure(step.optimizer, {{"", step}}, seeds));
    add_sentences(page.summary, in_words(step));
  }
  page.tables.push_back(table);
}

void add_whole(const Spectrum& spectrum, Results& page) {
  add_sentences(page.summary, in_words(spectrum));
  page.figures.push_back(density_figure({{"", &spectrum}}));
  Table table{"eigenvalues",
              "Eigenvalues",
              "± is the numerical error of the extremes, and the standard error over probes of trace and norm.",
              {"", "value", "±"}};
  table.row("largest", spectrum.max.value, spectrum.max.error);
  table.row("smallest", spectrum.min.value, spectrum.min.error);
  table.row("trace", spectrum.trace.mean, spectrum.trace.error.value_or(std::nan("")));
  table.row("Frobenius norm", spectrum.frobenius.mean, spectrum.frobenius.error.value_or(std::nan("")));
  page.tables.push_back(table);
}

void add_blocks(const std::vector<BlockSpectrum>& blocks, Results& page) {
  page.figures.push_back(block_figure({{"", &blocks}}));
  Table table{"blocks", "Curvature by layer", "± is the numerical error.", {}};
  table.columns = {"layer", "parameters", "largest", "±", "smallest", "±", "trace"};
  for (const BlockSpectrum& block : blocks) {
    const auto& [top, bottom] = std::tie(block.spectrum.max, block.spectrum.min);
    table.row(to_string(block.id), block.parameters, top.value, top.error, bottom.value, bottom.error,
              block.spectrum.trace.mean);
  }
  page.tables.push_back(table);
}

}  // namespace

void add_html_option(CLI::App& verb, std::string& file) {
  verb.add_option("--html", file, "Also write a page with the figures to this file")->type_name("FILE");
}

Results page_of(const ProbeReport& report, const std::optional<InitializationReport>& more, const Subject& subject) {
  Results page = page_head(
      subject.weights ? "A model's gradients and activations" : "Gradients and activations at initialization", subject);
  const ModelDepth depth = depth_of(subject.config);
  add_sentences(page.summary, in_words(report.theory, depth, report.loss.count));
  if (!report.theory.differs.empty())
    page.summary.push_back("The model differs from the theory's setting: " + join(report.theory.differs, "; ") + ".");
  for (const Figure& figure :
       {figure_of_stack(StackKind::encoder, report, depth), figure_of_stack(StackKind::decoder, report, depth),
        signal_figure(report, depth, static_cast<double>(width_of(subject.config))),
        similarity_figure(report.branches)}) {
    if (!figure.series.empty()) page.figures.push_back(figure);
  }
  page.tables.push_back(layers_table(report));
  if (more && more->gains) add_gains(*more->gains, report.loss.count, page);
  if (more && !more->first_steps.empty()) add_first_steps(more->first_steps, report.loss.count, page);
  if (more && more->curvature) page.tables.push_back(curvature_table({{"", *more->curvature}}));
  return page;
}

Results page_of(const SpectrumReport& report, const Subject& subject) {
  Results page = page_head("The Hessian's spectrum", subject);
  page.summary.push_back(
      fmt::format("Loss {:.4g}; {} parameters; {}.", report.loss, with_thousands(report.parameters),
                  report.lanczos ? fmt::format("Lanczos with {} steps from {} start vector{}", report.lanczos->steps,
                                               report.lanczos->probes, report.lanczos->probes == 1 ? "" : "s")
                                 : "all eigenvalues"));
  if (report.whole) add_whole(*report.whole, page);
  if (!report.blocks.empty()) add_blocks(report.blocks, page);
  return page;
}

void write_page(const std::string& file, const Results& page) {
  if (file.empty()) return;
  write_output_file(file, render_report(page.to_json()));
  say(fmt::format("{}: a page with the figures", file));
}

}  // namespace plumb::app
