#include "measured_page.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <map>
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
  for (const std::string& each : {name, std::string("low"), std::string("high")}) columns.push_back(each);
  return columns;
}

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

void add_sentences(std::vector<std::string>& summary, const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) summary.push_back(line);
  }
}

void add_table(const Table& table, Results& page) {
  if (!table.rows.empty()) page.tables.push_back(table);
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

void add_gradients(const ProbeReport& report, const ModelDepth& depth, Results& page) {
  Table table{"layers", "Gradients by layer", "Means of the norms, with 95% intervals."};
  table.columns = with_interval_columns(with_interval_columns({"layer"}, "‖∂L/∂W₁‖"), "‖∂L/∂W₂‖");
  for (const StackKind stack : {StackKind::encoder, StackKind::decoder}) {
    FeedForwardNorms norms;
    const int64_t layers = stack == StackKind::encoder ? depth.encoder_layers : depth.decoder_layers;
    for (int64_t layer = 0; layer < layers; ++layer) {
      const LayerId id{stack, layer};
      const FeedForwardReport *first = report.find(id, 1), *second = report.find(id, 2);
      if (first == nullptr || second == nullptr) continue;
      norms.first.push_back(first->batch_mean_gradient_norm);
      norms.second.push_back(second->batch_mean_gradient_norm);
      table.row(to_string(id), norms.first.back(), norms.second.back());
    }
    Figure figure = gradient_figure(stack, {{"", norms}}, seeds_in_words(report.loss.count));
    for (const TheoryReport::Slope& slope : report.theory.layer_slopes) {
      if (slope.stack == stack && slope.matrix == 2) add_theory(figure, slope, norms.second);
    }
    if (!norms.first.empty()) page.figures.push_back(figure);
  }
  add_table(table, page);
}

void add_signal(const ProbeReport& report, const ModelDepth& depth, double d, Results& page) {
  const bool post = report.theory.placement == theory::Placement::post_ln;
  const std::string what = post ? "what each layer's last norm reads" : "the stream after each layer";
  Figure figure{"signal",
                "Activations by layer",
                fmt::format("Mean square of {} per feature; dashed: the bounds of Lemma 2 (Xiong et al. 2020) for this "
                            "model, where they apply.",
                            what),
                "line",
                {"layer"},
                {"‖x‖²/d", true}};
  Table table{"activations", "Activations",
              fmt::format("‖x‖²: mean square of a stack's input or of {}, with the bounds of Lemma 2 for this model; "
                          "δ is the smallest for which ‖x‖² is (0.1, δ)-bounded.",
                          what)};
  table.columns = with_interval_columns({"x"}, "‖x‖²/d");
  table.columns.insert(table.columns.end(), {"at least", "at most"});
  table.columns = with_interval_columns(table.columns, "δ");
  const auto add_row = [&](const SignalReport& point) {
    const auto& [mean, low, high, count] = point.mean_square;
    const Range bounds = point.theory ? point.theory->adapted : Range{kNone, kNone};
    table.row(to_string(point.point), mean / d, low / d, high / d, bounds.low / d, bounds.high / d, point.delta_at_0_1);
  };
  for (const StackKind stack : {StackKind::encoder, StackKind::decoder}) {
    const int64_t layers = stack == StackKind::encoder ? depth.encoder_layers : depth.decoder_layers;
    if (const SignalReport* input = report.find(ActivationPoint{{stack}, Point::input})) add_row(*input);
    Series measured, low, high;
    for (int64_t layer = 0; layer < layers; ++layer) {
      const SignalReport* point =
          report.find(ActivationPoint{{stack, layer, SubLayerKind::feed_forward}, post ? Point::sum : Point::stream});
      if (point == nullptr) continue;
      add_row(*point);
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
  if (!figure.series.empty()) page.figures.push_back(figure);
  add_table(table, page);
}

/// By sub-layers from the stack's input.
void add_branches(const std::vector<BranchReport>& branches, Results& page) {
  Figure figure{
      "similarity",
      "How similar the tokens of a sequence become",
      "Mean cosine between two tokens of a sequence in the stream after each sub-layer; dashed: predicted from "
      "the sizes of the matrices alone.",
      "line",
      {"sub-layers from the stack's input"},
      {"mean cosine"}};
  Table table{
      "branches", "Branch and stream",
      "The size of what each sub-layer adds, relative to the stream, and the mean cosine between two tokens of a "
      "sequence after it."};
  table.columns = with_interval_columns({"sub-layer"}, "ratio");
  table.columns.emplace_back("predicted");
  table.columns = with_interval_columns(table.columns, "similarity");
  table.columns.emplace_back("predicted");
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
      const BranchPoint theory = branch.predicted.value_or(BranchPoint{.ratio = kNone, .similarity = kNone});
      table.row(to_string(branch.id), branch.ratio, theory.ratio, branch.similarity, theory.similarity);
    }
    if (!measured.x.empty()) figure.series.push_back(measured);
    if (!predicted.x.empty()) figure.series.push_back(predicted);
  }
  if (!figure.series.empty()) page.figures.push_back(figure);
  add_table(table, page);
}

Table slopes_table(const std::vector<TheoryReport::Slope>& slopes) {
  Table table{"slopes",
              "Growth of the gradients",
              "Slope of log ‖∂L/∂W‖ over the layers, with its standard error.",
              {"matrix", "slope", "±", "theory"}};
  for (const TheoryReport::Slope& slope : slopes)
    table.row(fmt::format("{} W{}", to_string(slope.stack), slope.matrix), slope.fit.slope, slope.fit.slope_error,
              slope.predicted.value_or(kNone));
  return table;
}

Table whole_table(const ProbeReport& report) {
  const std::optional<TheoryReport::Theorem1>& theorem = report.theory.theorem_1;
  Table table{"whole", "The whole model", as_sentence(seeds_in_words(report.loss.count))};
  table.columns = with_interval_columns({""}, "value");
  table.row("loss", report.loss);
  table.row("‖∂L/∂θ‖", report.gradient_norm_total);
  if (!theorem) return table;
  table.row("‖∂L/∂W₂‖ of the last layer", theorem->norm);
  table.row(fmt::format("that norm over Theorem 1's bound {:.4g}, {}", theorem->bound,
                        report.theory.placement == theory::Placement::post_ln ? "d √ln d" : "d √(ln d / L)"),
            theorem->constant);
  return table;
}

void add_gains(const BackwardGainReport& report, int64_t seeds, Results& page) {
  Table table{
      "gains", "What each part passes back",
      fmt::format("Geometric means, with 95% intervals. The gains multiply out to the gradients, with a relative "
                  "error of {:.2g}.",
                  report.error)};
  table.columns = with_interval_columns(with_interval_columns({"part"}, "‖∂L/∂x‖ behind it"), "gain");
  table.columns = with_interval_columns(table.columns, "gain to memory");
  constexpr Interval kNoInterval = {kNone, kNone, kNone};
  for (const BackwardGainReport::Stack& stack : report.stacks) {
    page.figures.push_back(gain_figure(stack.stack, {{"", report}}, seeds));
    table.row(to_string(stack.stack) + ".input", stack.input_gradient, kNoInterval, kNoInterval);
    for (const BackwardGainReport::Part& part : stack.parts)
      table.row(to_string(part.point), part.gradient, part.gain, part.memory_gain.value_or(kNoInterval));
  }
  page.tables.push_back(table);
}

void add_first_steps(const std::vector<FirstStepReport>& steps, int64_t seeds, Results& page) {
  Table table{"first_steps", "The first step",
              "The learning rate above which the first step raises the loss, and in how many initializations none was "
              "found. Momentum: how many times as long it makes steps while the gradient stays."};
  table.columns = with_interval_columns({"optimizer"}, "critical learning rate");
  for (const char* column : {"critical sharpness", "forward passes", "momentum", "none found"})
    table.columns.emplace_back(column);
  Table changes{"first_step_logits", "What the first step does to the logits",
                "Change per unit of learning rate if the parameters of one layer move."};
  changes.columns = with_interval_columns({"optimizer", "layer"}, "change");
  for (const FirstStepReport& step : steps) {
    table.row(step.optimizer, step.critical_rate, 2 / step.critical_rate.mean, step.passes, step.momentum_gain,
              step.without_rate);
    for (const LogitChangesReport::Layer& layer : step.logits.by_layer)
      changes.row(step.optimizer, layer.layer ? to_string(*layer.layer) : "outside the layers", layer.change);
    changes.row(step.optimizer, "all together", step.logits.total);
    page.figures.push_back(logit_change_figure(step.optimizer, {{"", step}}, seeds));
    add_sentences(page.summary, in_words(step));
  }
  page.tables.insert(page.tables.end(), {table, changes});
}

constexpr const char* kErrors =
    "± is the numerical error of the extremes (the asymmetry of the matrix, if all eigenvalues were computed), and the "
    "standard error over probes of the others.";

void add_whole(const Spectrum& spectrum, Results& page) {
  add_sentences(page.summary, in_words(spectrum));
  page.figures.push_back(density_figure({{"", &spectrum}}));
  Table table{"eigenvalues", "Eigenvalues", kErrors, {"", "value", "±"}};
  table.row("largest", spectrum.max.value, spectrum.max.error);
  table.row("smallest", spectrum.min.value, spectrum.min.error);
  table.row("trace", spectrum.trace.mean, spectrum.trace.error.value_or(kNone));
  table.row("Frobenius norm", spectrum.frobenius.mean, spectrum.frobenius.error.value_or(kNone));
  page.tables.push_back(table);
}

void add_blocks(const std::vector<BlockSpectrum>& blocks, Results& page) {
  page.figures.push_back(block_figure({{"", &blocks}}));
  Table table{"blocks", "Curvature by layer", kErrors, {}};
  table.columns = {"layer", "parameters", "largest", "±", "smallest", "±", "trace", "±"};
  for (const BlockSpectrum& block : blocks) {
    const auto& [top, bottom] = std::tie(block.spectrum.max, block.spectrum.min);
    table.row(to_string(block.id), block.parameters, top.value, top.error, bottom.value, bottom.error,
              block.spectrum.trace.mean, block.spectrum.trace.error.value_or(kNone));
  }
  page.tables.push_back(table);
}

/// The columns and rows as text; the ends of an interval, or an error, stand in the cell of their value.
std::vector<std::vector<std::string>> cells_of(const Table& table) {
  struct Form {
    const char *begin, *end;
    int digits;
  };
  const std::map<std::string, Form> of_value = {
      {"low", {" (", "", 4}}, {"high", {" to ", ")", 4}}, {"±", {" ± ", "", 2}}};
  std::vector<std::vector<std::string>> rows(1 + table.rows.size());
  for (size_t column = 0; column < table.columns.size(); ++column) {
    const auto form = of_value.find(table.columns[column]);
    const bool own = form == of_value.end();
    if (own) rows[0].push_back(table.columns[column]);
    for (size_t row = 1; row < rows.size(); ++row) {
      const Json& cell = table.rows[row - 1][column];
      std::string text = cell.is_string() ? cell.get<std::string>() : "";
      if (cell.is_number_integer()) text = with_thousands(cell.get<int64_t>());
      if (cell.is_number_float()) text = fmt::format("{:.{}g}", cell.get<double>(), own ? 6 : form->second.digits);
      if (own) {
        rows[row].push_back(text);
      } else if (!text.empty()) {
        rows[row].back() += form->second.begin + text + form->second.end;
      }
    }
  }
  return rows;
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
  page.tables.push_back(whole_table(report));
  add_gradients(report, depth, page);
  add_table(slopes_table(report.theory.layer_slopes), page);
  add_signal(report, depth, static_cast<double>(width_of(subject.config)), page);
  add_branches(report.branches, page);
  if (more && more->gains) add_gains(*more->gains, report.loss.count, page);
  if (more && !more->first_steps.empty()) add_first_steps(more->first_steps, report.loss.count, page);
  if (more && more->curvature) page.tables.push_back(curvature_table({{"", *more->curvature}}));
  return page;
}

Results page_of(const SpectrumReport& report, const Subject& subject) {
  Results page = page_head("The Hessian's spectrum", subject);
  page.summary.push_back(
      fmt::format("Loss {:.6g}, gradient norm {:.6g}; {} parameters; {}.", report.loss, report.gradient_norm,
                  with_thousands(report.parameters),
                  report.lanczos ? fmt::format("Lanczos with {} steps from {} start vector{}", report.lanczos->steps,
                                               report.lanczos->probes, report.lanczos->probes == 1 ? "" : "s")
                                 : "all eigenvalues"));
  page.summary.push_back(fmt::format("{} Hessian-vector products at {:.3g} s; a gradient takes {:.3g} s.",
                                     report.products, report.hvp_seconds, report.gradient_seconds));
  if (report.whole) add_whole(*report.whole, page);
  if (!report.blocks.empty()) add_blocks(report.blocks, page);
  return page;
}

std::string text_of(const Results& page) {
  std::string text = fmt::format("{}\n{}\n", page.title, page.subtitle);
  for (const Table& table : page.tables)
    text += '\n' + wrapped(table.title + ". " + table.caption, 100) + aligned(cells_of(table), table.columns.size());
  return text + '\n' + join(page.summary, "\n") + '\n';
}

void write_page(const std::string& file, const Results& page) {
  if (file.empty()) return;
  write_output_file(file, render_report(page.to_json()));
  say(fmt::format("{}: a page with the figures", file));
}

}  // namespace plumb::app
