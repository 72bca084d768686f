#include "plumb/trouble/inspection.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "plumb/base/json_fields.h"
#include "plumb/base/text.h"
#include "plumb/base/utf8.h"

namespace plumb {
namespace {

bool all_finite(const Tensor& x) { return x.detach().isfinite().all().item<bool>(); }

double largest_finite(const Tensor& x) {
  const Tensor values = x.detach();
  if (values.numel() == 0) return 0;
  return at::where(values.isfinite(), values.abs(), at::zeros_like(values)).max().item<double>();
}

/// The examples with nonfinite rows in an activation (tokens, …); empty if its rows are not the tokens of `layout`.
std::vector<int64_t> examples_of(const Tensor& activation, const Ragged& layout, const std::vector<int64_t>& examples) {
  std::vector<int64_t> found;
  if (activation.dim() == 0 || activation.size(0) != layout.tokens() ||
      layout.sequences() != static_cast<int64_t>(examples.size()))
    return found;
  const Tensor finite =
      activation.detach().isfinite().reshape({activation.size(0), -1}).all(1).to(at::kCPU).contiguous();
  const bool* row = finite.data_ptr<bool>();
  for (int64_t s = 0; s < layout.sequences(); ++s) {
    bool good = true;
    for (int64_t t = layout.begin(s); t < layout.begin(s + 1); ++t) good = good && row[t];
    if (!good) found.push_back(examples[static_cast<size_t>(s)]);
  }
  return found;
}

bool same_bits(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }

/// Whether two numbers have the same bits or are both NaN.
bool same(double a, double b) { return same_bits(a, b) || (std::isnan(a) && std::isnan(b)); }

/// The text of an example for the user, shortened.
std::string text_of(const Task& task, int64_t example) {
  constexpr size_t kLongest = 80;
  const std::vector<int64_t> one{example};
  const Batch batch = task.dataset("train")->batch(one);
  const bool source = !batch.source.empty();
  const std::vector<int64_t>& ids = source ? batch.source : batch.target_input;
  const Tokenizer& tokenizer = source ? task.data().source_tokenizer() : task.data().target_tokenizer();
  std::string text = tokenizer.decode(std::vector<int32_t>(ids.begin(), ids.end()));
  if (!is_valid_utf8(text)) return "";  // a token may be part of a character
  if (text.size() <= kLongest) return text;
  return text.substr(0, beginning_of_character(text, kLongest)) + "…";
}

/// The first few examples with their text, and the number of others.
std::string shown(const std::vector<int64_t>& examples, const Task& task) {
  constexpr size_t kShown = 3;
  std::vector<std::string> words;
  for (size_t i = 0; i < std::min(kShown, examples.size()); ++i)
    words.push_back(fmt::format("{} (\"{}\")", examples[i], text_of(task, examples[i])));
  return join(words) + (examples.size() > kShown ? fmt::format(" and {} more", examples.size() - kShown) : "");
}

std::string in_words(const Findings& found, const Task& task) {
  std::vector<std::string> sentences;
  const auto add = [&sentences](std::string sentence) { sentences.push_back(std::move(sentence)); };
  if (found.again) {
    add(
        fmt::format("Repeated from the same parameters, the step has loss {} and gradient norm {}: the hardware is "
                    "to blame, or a nondeterministic library",
                    found.again->loss, found.again->gradient_norm));
  }
  if (!found.parameter.empty()) add(fmt::format("The parameter {} was not finite before the step", found.parameter));
  if (found.forward) {
    add(fmt::format("First not finite in the forward pass: {}, which follows values of up to {:.3g}",
                    found.forward->where, found.forward->largest_before));
  }
  const size_t bad = found.examples.size(), all = found.batch.size();
  if (bad == 0) {
    add(fmt::format("The batch has {} examples: {}", all, shown(found.batch, task)));
  } else {
    const std::string which = bad == all ? fmt::format("all {}", all) : fmt::format("{} of {}", bad, all);
    add(fmt::format("It is in {} examples of the batch: {}", which, shown(found.examples, task)));
  }
  if (!found.backward.empty())
    add(fmt::format("First not finite in the backward pass: the gradient of {}", found.backward));
  if (!found.gradient.empty()) add(fmt::format("First gradient that is not finite: that of {}", found.gradient));
  return join(sentences, ". ");
}

}  // namespace

struct Inspection::Found {
  Findings findings;
  double largest_before = 0;  // of the finite activations so far
};

Inspection::Inspection() : found_(std::make_shared<Found>()) {}

void Inspection::watch(ForwardContext& context, const Batch& batch) {
  const auto found = found_;
  std::vector<int64_t>& all = found->findings.batch;
  all.insert(all.end(), batch.examples.begin(), batch.examples.end());
  const Ragged source = batch.source_layout, target = batch.target_layout;
  const std::vector<int64_t> examples = batch.examples;
  context.watch([=](const ActivationPoint& point, const Tensor& activation) {
    Findings& findings = found->findings;
    if (findings.forward) return;
    if (all_finite(activation)) {
      found->largest_before = std::max(found->largest_before, largest_finite(activation));
      return;
    }
    findings.forward = {to_string(point), found->largest_before};
    findings.examples = examples_of(activation, point.id.stack == StackKind::encoder ? source : target, examples);
  });
  context.tap([found](const ActivationPoint& point, const Tensor& x) {
    if (x.requires_grad()) {
      x.register_hook([found, point](const Tensor& gradient) {
        std::string& first = found->findings.backward;
        if (first.empty() && gradient.defined() && !all_finite(gradient)) first = to_string(point);
      });
    }
    return x;
  });
}

Findings Inspection::findings(const Parameters& parameters, const std::vector<Tensor>& gradients) const {
  Findings findings = found_->findings;
  for (const Parameter& parameter : parameters.all()) {
    if (!findings.parameter.empty() || all_finite(parameter.value)) continue;
    findings.parameter = parameter.name;
  }
  // The last parameters come first in the backward pass.
  for (size_t i = gradients.size(); i-- > 0;) {
    if (all_finite(gradients[i])) continue;
    findings.gradient = parameters.all()[i].name;
    break;
  }
  return findings;
}

InspectedStep inspect_step(const TryStep& again, const StepTrial& first, const Parameters& parameters,
                           const std::vector<Tensor>& buffers, const Group& group, const Task& task) {
  restore_buffers(parameters, buffers);
  const StepTrial plain = again(nullptr);
  bool equal = same(plain.loss, first.loss) && same(plain.gradient_norm, first.gradient_norm);
  for (size_t i = 0; equal && i < first.gradients.size(); ++i) {
    const Tensor a = first.gradients[i].detach(), b = plain.gradients[i].detach();
    equal = at::logical_or(a == b, at::logical_and(a.isnan(), b.isnan())).all().item<bool>();
  }
  restore_buffers(parameters, buffers);
  Inspection inspection;
  const StepTrial checked = again(&inspection);
  restore_buffers(parameters, buffers);
  Findings findings = inspection.findings(parameters, checked.gradients);
  if (group.size() > 1) {  // those of the first process with a nonfinite forward pass, or else of rank 0
    const std::string own = described_json(findings).dump();
    for (int64_t rank = 0; rank < group.size(); ++rank) {
      auto theirs = from_described_json<Findings>(Json::parse(group.broadcast(own, rank)));
      const auto or_theirs = [&](std::string Findings::*name) {
        return rank == 0 || (findings.*name).empty() ? theirs.*name : findings.*name;
      };
      std::string parameter = or_theirs(&Findings::parameter), gradient = or_theirs(&Findings::gradient);  // of pieces
      if (rank == 0 || (!findings.forward && theirs.forward)) findings = std::move(theirs);
      findings.parameter = std::move(parameter);
      findings.gradient = std::move(gradient);
    }
  }
  if (group.any(!equal)) findings.again = {plain.loss, plain.gradient_norm};
  return {findings, in_words(findings, task)};
}

std::vector<Tensor> copies_of_buffers(const Parameters& parameters) {
  std::vector<Tensor> copies;
  for (const Parameter& buffer : parameters.buffers()) copies.push_back(buffer.value.detach().clone());
  return copies;
}

void restore_buffers(const Parameters& parameters, const std::vector<Tensor>& copies) {
  const at::NoGradGuard no_graph;
  for (size_t i = 0; i < copies.size(); ++i) parameters.buffers()[i].value.copy_(copies[i]);
}

}  // namespace plumb
