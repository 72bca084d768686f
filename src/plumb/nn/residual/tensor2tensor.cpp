#include "plumb/nn/residual/tensor2tensor.h"

#include <fmt/format.h>

#include <algorithm>

#include "plumb/base/error.h"
#include "plumb/nn/norm/norm.h"

namespace plumb {
namespace {

class Tensor2TensorScheme final : public ResidualScheme {
 public:
  Tensor2TensorScheme(std::string preprocess, std::string postprocess, Parameters& parameters, const StackShape& shape)
      : preprocess_(std::move(preprocess)),
        postprocess_(std::move(postprocess)),
        sub_layers_(shape.sub_layers),
        stack_(shape.name) {
    const auto& make_norm = norms().at(shape.norm).make;
    for (int64_t layer = 0; layer < shape.layers; ++layer) {
      for (int64_t position = 0; position < shape.sub_layers; ++position) {
        const std::string prefix = fmt::format("{}.layers.{}.norm{}", shape.name, layer, position + 1);
        if (normalises()) norms_.push_back(make_norm(parameters, prefix, shape.d_model, shape.norm_eps));
      }
    }
    if (preprocess_.find('n') != std::string::npos) {
      final_norm_ = make_norm(parameters, shape.name + ".norm", shape.d_model, shape.norm_eps);
    }
  }

  void apply(Stream& stream, const SubLayer& f, ForwardContext& context) const override {
    const Norm* norm = norms_.empty() ? nullptr : norms_[static_cast<size_t>(f.layer * sub_layers_ + f.position)].get();
    const Tensor input = preprocessed(stream.x, norm, context);
    if (context.watched()) context.show(f.name + ".input", input);
    Tensor y = f.forward(input);
    if (context.watched()) context.show(f.name + ".output", y);
    for (size_t i = 0; i < postprocess_.size(); ++i) {
      const char letter = postprocess_[i];
      if (letter == 'd' && i + 1 < postprocess_.size() && postprocess_[i + 1] == 'a') {
        y = context.add_dropout(stream.x, y);  // the two in one pass
        ++i;
      } else if (letter == 'd') {
        y = context.dropout(y);
      } else if (letter == 'a') {
        y = stream.x + y;
      } else {
        y = (*norm)(y);
      }
      if (postprocess_[i] == 'a' && context.watched()) context.show(f.name + ".sum", y);
    }
    stream.x = y;
    if (context.watched()) context.show(f.name + ".stream", stream.x);
  }

  Tensor leave(const Stream& stream, ForwardContext& context) const override {
    Tensor out = preprocessed(stream.x, final_norm_.get(), context);
    context.show(stack_ + ".result", out);
    return out;
  }

 private:
  [[nodiscard]] bool normalises() const { return (preprocess_ + postprocess_).find('n') != std::string::npos; }

  Tensor preprocessed(Tensor x, const Norm* norm, ForwardContext& context) const {
    for (const char letter : preprocess_) x = letter == 'd' ? context.dropout(x) : (*norm)(x);
    return x;
  }

  std::string preprocess_;
  std::string postprocess_;
  int64_t sub_layers_;
  std::string stack_;
  std::vector<std::unique_ptr<Norm>> norms_;  // [layer · sub_layers + position]
  std::unique_ptr<Norm> final_norm_;
};

void check(const std::string& letters, const std::string& allowed, const char* which) {
  const size_t bad = letters.find_first_not_of(allowed);
  if (bad == std::string::npos) return;
  throw Error(fmt::format("residual scheme: '{}' is no letter of {}", letters[bad], which),
              fmt::format("{} is made of the letters {}", which, allowed));
}

}  // namespace

std::unique_ptr<ResidualScheme> make_tensor2tensor_scheme(const std::string& preprocess, const std::string& postprocess,
                                                          Parameters& parameters, const StackShape& shape) {
  check(preprocess, "dn", "preprocess");
  check(postprocess, "dan", "postprocess");
  const auto norms_in = [](const std::string& letters) { return std::count(letters.begin(), letters.end(), 'n'); };
  if (norms_in(preprocess) + norms_in(postprocess) > 1) {
    throw Error(fmt::format("residual scheme '{}/{}' normalises more than once a sub-layer", preprocess, postprocess),
                "one 'n' in all");
  }
  return std::make_unique<Tensor2TensorScheme>(preprocess, postprocess, parameters, shape);
}

}  // namespace plumb
