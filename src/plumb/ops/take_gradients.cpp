#include "plumb/ops/take_gradients.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>

#include <memory>
#include <utility>

namespace plumb {
namespace {

/// Called when the gradient of a leaf is complete.
class CompleteHook : public torch::autograd::FunctionPostHook {
 public:
  explicit CompleteHook(std::function<void()> complete) : complete_(std::move(complete)) {}
  variable_list operator()(const variable_list& outputs, const variable_list& /*inputs*/) override {
    complete_();
    return outputs;
  }

 private:
  std::function<void()> complete_;
};

/// What takes the gradients of leaves, until it is destroyed.
class GradientHooks {
 public:
  using NodePointer = decltype(torch::autograd::impl::grad_accumulator(Tensor()));  // depends on LibTorch's version

  explicit GradientHooks(const std::vector<Tensor>& leaves) : leaves_(leaves) {}
  ~GradientHooks() {
    for (const auto& [node, key] : hooks_) node->del_post_hook(key);
    for (const Tensor& leaf : leaves_) leaf.mutable_grad() = Tensor();
  }
  GradientHooks(const GradientHooks&) = delete;
  GradientHooks& operator=(const GradientHooks&) = delete;

  void add(const Tensor& leaf, Tensor earlier, std::function<void()> complete) {
    leaf.mutable_grad() = std::move(earlier);
    NodePointer node = torch::autograd::impl::grad_accumulator(leaf);
    const uintptr_t key = node->add_post_hook(std::make_unique<CompleteHook>(std::move(complete)));
    hooks_.emplace_back(std::move(node), key);
  }

 private:
  const std::vector<Tensor>& leaves_;
  std::vector<std::pair<NodePointer, uintptr_t>> hooks_;
};

/// Whether `gradient` can be added to: nobody else holds it or, as gradients of parts of a matrix may be, a view of the
/// same memory; and it is laid out like the leaf.
bool is_own(const Tensor& gradient, const Tensor& leaf) {
  return gradient.use_count() == 1 && gradient.storage().use_count() == 1 && gradient.strides() == leaf.strides();
}

}  // namespace

void take_gradients(const std::vector<Tensor>& outputs, const std::vector<Tensor>& leaves,
                    const std::vector<Tensor>& grad_outputs, std::vector<Tensor> earlier,
                    const std::function<void(size_t, Tensor)>& take) {
  std::vector<bool> taken(leaves.size(), false);
  earlier.resize(leaves.size());
  const auto hand_over = [&](size_t i) {
    const at::NoGradGuard no_graph;
    Tensor gradient = std::exchange(leaves[i].mutable_grad(), Tensor());
    take(i, gradient.defined() ? std::move(gradient) : at::zeros_like(leaves[i]));
    taken[i] = true;
  };
  GradientHooks hooks(leaves);
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (earlier[i].defined() && !is_own(earlier[i], leaves[i]))
      earlier[i] = at::empty_like(leaves[i]).copy_(earlier[i]);
    hooks.add(leaves[i], std::move(earlier[i]), [&hand_over, i] { hand_over(i); });
  }
  torch::autograd::backward(outputs, grad_outputs, /*retain_graph=*/c10::nullopt, /*create_graph=*/false, leaves);
  for (size_t i = leaves.size(); i-- > 0;) {
    if (!taken[i]) hand_over(i);
  }
}

}  // namespace plumb
