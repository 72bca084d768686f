#include "plumb/trouble/inspection.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <optional>

#include "plumb/base/files.h"
#include "plumb/base/text.h"
#include "plumb/trouble/trouble.h"

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
  size_t end = kLongest;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end) + "…";
}

/// The first few examples with their text, and the number of others.
std::string shown(const Json& examples, const Task& task) {
  constexpr size_t kShown = 3;
  std::vector<std::string> words;
  for (size_t i = 0; i < std::min(kShown, examples.size()); ++i)
    words.push_back(fmt::format("{} (\"{}\")", examples[i].get<int64_t>(), text_of(task, examples[i])));
  return join(words) + (examples.size() > kShown ? fmt::format(" and {} more", examples.size() - kShown) : "");
}

std::string in_words(const Json& findings, const Task& task) {
  std::string text;
  const auto add = [&text](const std::string& sentence) { text += (text.empty() ? "" : ". ") + sentence; };
  const std::string repeated = findings.value("repeated", std::string());
  if (repeated == "otherwise") {
    add(
        fmt::format("Repeated from the same parameters, the step has loss {} and gradient norm {}: the hardware is "
                    "to blame, or a nondeterministic library",
                    findings["again"]["loss"].dump(), findings["again"]["gradient_norm"].dump()));
  }
  if (findings.contains("parameter"))
    add(fmt::format("The parameter {} was not finite before the step", findings["parameter"].get<std::string>()));
  if (findings.contains("forward")) {
    const Json& forward = findings["forward"];
    add(fmt::format("First not finite in the forward pass: {}, which follows values of up to {:.3g}",
                    forward["where"].get<std::string>(), forward["largest_before"].get<double>()));
  }
  if (findings.contains("examples")) {
    const size_t bad = findings["examples"].size(), all = findings["batch"].size();
    add(bad == all
            ? fmt::format("It is in all {} examples of the batch: {}", all, shown(findings["examples"], task))
            : fmt::format("It is in {} of {} examples of the batch: {}", bad, all, shown(findings["examples"], task)));
  } else {
    add(fmt::format("The batch has {} examples: {}", findings["batch"].size(), shown(findings["batch"], task)));
  }
  if (findings.contains("backward"))
    add(fmt::format("First not finite in the backward pass: the gradient of {}",
                    findings["backward"].get<std::string>()));
  if (findings.contains("gradient"))
    add(fmt::format("First gradient that is not finite: that of {}", findings["gradient"].get<std::string>()));
  return text;
}

}  // namespace

struct Inspection::Found {
  std::string forward;
  double largest_before = 0;  // of the finite activations so far
  std::vector<int64_t> examples;
  std::vector<int64_t> all_examples;
  std::string backward;
};

Inspection::Inspection() : found_(std::make_shared<Found>()) {}

void Inspection::watch(ForwardContext& context, const Batch& batch) {
  const auto found = found_;
  found->all_examples.insert(found->all_examples.end(), batch.examples.begin(), batch.examples.end());
  const Ragged source = batch.source_layout, target = batch.target_layout;
  const std::vector<int64_t> examples = batch.examples;
  context.watch([=](const ActivationPoint& point, const Tensor& activation) {
    if (!found->forward.empty()) return;
    if (all_finite(activation)) {
      found->largest_before = std::max(found->largest_before, largest_finite(activation));
      return;
    }
    found->forward = to_string(point);
    found->examples = examples_of(activation, point.id.stack == StackKind::encoder ? source : target, examples);
  });
  context.tap([found](const ActivationPoint& point, const Tensor& x) {
    if (x.requires_grad()) {
      x.register_hook([found, point](const Tensor& gradient) {
        if (found->backward.empty() && gradient.defined() && !all_finite(gradient)) found->backward = to_string(point);
      });
    }
    return x;
  });
}

Json Inspection::findings(const Parameters& parameters, const std::vector<Tensor>& gradients) const {
  Json json = Json::object();
  for (const Parameter& parameter : parameters.all()) {
    if (json.contains("parameter") || all_finite(parameter.value)) continue;
    json["parameter"] = parameter.name;
  }
  if (!found_->forward.empty())
    json["forward"] = {{"where", found_->forward}, {"largest_before", found_->largest_before}};
  if (!found_->examples.empty()) json["examples"] = found_->examples;
  json["batch"] = found_->all_examples;
  if (!found_->backward.empty()) json["backward"] = found_->backward;
  // The last parameters come first in the backward pass.
  for (size_t i = gradients.size(); i-- > 0;) {
    if (all_finite(gradients[i])) continue;
    json["gradient"] = parameters.all()[i].name;
    break;
  }
  return json;
}

Json inspect_step(const TryStep& again, const StepTrial& first, Model& model, const std::vector<Tensor>& buffers,
                  const Group& group, const Task& task) {
  restore_buffers(model.parameters(), buffers);
  const StepTrial plain = again(nullptr);
  bool equal = same(plain.loss, first.loss) && same(plain.gradient_norm, first.gradient_norm);
  for (size_t i = 0; equal && i < first.gradients.size(); ++i) {
    const Tensor a = first.gradients[i].detach(), b = plain.gradients[i].detach();
    equal = at::logical_or(a == b, at::logical_and(a.isnan(), b.isnan())).all().item<bool>();
  }
  restore_buffers(model.parameters(), buffers);
  Inspection inspection;
  const StepTrial checked = again(&inspection);
  restore_buffers(model.parameters(), buffers);
  const Json own = inspection.findings(model.parameters(), checked.gradients);
  Json findings = own;
  if (group.size() > 1) {  // those of the first process with a nonfinite forward pass, or else of rank 0
    findings = Json::parse(group.broadcast(own.dump(), 0));
    for (int64_t rank = 1; rank < group.size(); ++rank) {
      const Json theirs = Json::parse(group.broadcast(own.dump(), rank));
      if (!findings.contains("forward") && theirs.contains("forward")) findings = theirs;
    }
  }
  equal = !group.any(!equal);
  findings["repeated"] = equal ? "the same" : "otherwise";
  if (!equal)
    findings["again"] = {{"loss", exact_number(plain.loss)}, {"gradient_norm", exact_number(plain.gradient_norm)}};
  findings["text"] = in_words(findings, task);
  return findings;
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
