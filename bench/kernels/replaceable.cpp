// Kernels beside the functions of LibTorch that could replace them.
#include <functional>
#include <string>
#include <string_view>

#include "plumb/ops/activation.h"
#include "plumb/ops/linear.h"
#include "plumb/ops/top_scores.h"
#include "timing.h"

namespace plumb::bench {
namespace {

/// Work that Plumb's kernels do, and functions of LibTorch that could do it instead.
struct Replaceable {
  std::vector<Tensor> leaves;  // none: without a gradient
  std::function<Tensor()> kernels, libtorch;
};

using Activated = Tensor (*)(const Tensor&);

/// An activation alone, as in the feed-forward layers of width 512.
Replaceable activation(Activated kernels, Activated libtorch) {
  const Tensor x = at::randn({kTokens, 4 * kWidth}).requires_grad_();
  return {{x}, [=] { return kernels(x); }, [=] { return libtorch(x); }};
}

/// A whole feed-forward layer: the most that its activation may matter in a training step.
Replaceable feed_forward(Activated kernels, Activated libtorch) {
  const Tensor x = at::randn({kTokens, kWidth}).requires_grad_();
  const Tensor up = at::randn({4 * kWidth, kWidth}).mul_(0.05).requires_grad_();
  const Tensor down = at::randn({kWidth, 4 * kWidth}).mul_(0.02).requires_grad_();
  const auto layer = [=](Activated f) { return ops::linear(f(ops::linear(x, up, Tensor())), down, Tensor()); };
  return {{x, up, down}, [=] { return layer(kernels); }, [=] { return layer(libtorch); }};
}

constexpr int64_t kLargeVocabulary = 32000;

/// The ten best next tokens of 32 sentences in a beam search of 5; with their logits if `logits_too`.
Replaceable best_tokens(bool logits_too) {
  constexpr int64_t kRows = 160, kBest = 10;
  const Tensor hidden = at::randn({kRows, kWidth}), weight = at::randn({kLargeVocabulary, kWidth});
  const Tensor fixed = ops::linear(hidden, weight, Tensor());
  const auto logits = [=] { return logits_too ? ops::linear(hidden, weight, Tensor()) : fixed; };
  return {{},
          [=] { return at::scalar_tensor(ops::top_scores(logits(), kBest, 0, /*normalize=*/true).scores.front()); },
          [=] {
            const Tensor scores = logits();
            return std::get<0>(scores.topk(kBest, 1)) - at::logsumexp(scores, {1}, /*keepdim=*/true);
          }};
}

void replaceable(benchmark::State& state, const std::function<Replaceable()>& make, bool libtorch, Pass pass) {
  const Replaceable work = make();
  time_pass(state, pass, libtorch ? work.libtorch : work.kernels, work.leaves);
}

}  // namespace

void add_replaceable() {
  const Activated silu = [](const Tensor& x) { return at::silu(x); };
  const Activated gelu_tanh = [](const Tensor& x) { return at::gelu(x, "tanh"); };
  const std::pair<const char*, std::function<Replaceable()>> replaceables[] = {
      {"silu", [=] { return activation(ops::silu, silu); }},
      {"gelu-tanh", [=] { return activation(ops::gelu_tanh, gelu_tanh); }},
      {"feed-forward-silu", [=] { return feed_forward(ops::silu, silu); }},
      {"feed-forward-gelu-tanh", [=] { return feed_forward(ops::gelu_tanh, gelu_tanh); }},
      {"best-tokens", [] { return best_tokens(false); }},
      {"logits-and-best-tokens", [] { return best_tokens(true); }},
  };
  for (const auto& [name, make] : replaceables) {
    for (const bool libtorch : {false, true}) {
      const auto add = [&, make = make](const std::string& of, Pass pass) {
        const std::string full = "replaceable/" + of + (libtorch ? "/libtorch" : "/kernels");
        benchmark::RegisterBenchmark(full.c_str(), replaceable, make, libtorch, pass)->Unit(benchmark::kMillisecond);
      };
      add(name, Pass::forward);
      if (std::string_view(name).find("best-tokens") == std::string_view::npos)
        add(std::string(name) + "-gradient", Pass::gradient);
    }
  }
}

}  // namespace plumb::bench
