// Sinusoidal positions, Vaswani et al. 2017: feature 2i is sin(p/10000^(2i/d)), feature 2i+1 the cosine of the same
// angle. Hugging Face's Marian has all sines first, then all cosines. So have Marian itself (Junczys-Dowmunt et al.
// 2018, arXiv 1804.00344), tensor2tensor and fairseq, but with other angles, p/10000^(i/(d/2 − 1)).
#include <cmath>

#include "plumb/nn/position/growing_table.h"
#include "plumb/nn/position/position.h"

namespace plumb {
namespace {

/// Whether the sine and the cosine of an angle are adjacent or in different halves.
enum class Waves { interleaved, halves };

/// (length, d_model)
Tensor waves(int64_t length, int64_t d_model, Waves order) {
  std::vector<double> divisors;  // of each pair of features
  for (int64_t j = 0; j < d_model; j += 2)
    divisors.push_back(std::pow(10000.0, static_cast<double>(j) / static_cast<double>(d_model)));
  const Tensor angles = at::arange(length, at::TensorOptions(at::kDouble)).unsqueeze(1) /
                        at::tensor(at::ArrayRef<double>(divisors), at::TensorOptions(at::kDouble));
  if (order == Waves::halves) return at::cat({angles.sin(), angles.cos()}, 1).narrow(1, 0, d_model);
  return at::stack({angles.sin(), angles.cos()}, 2).flatten(1).narrow(1, 0, d_model);
}

class Sinusoidal final : public Positions {
 public:
  Sinusoidal(const at::TensorOptions& options, int64_t d_model, Waves order)
      : options_(options), table_([d_model, order](int64_t length) { return waves(length, d_model, order); }) {}

  Tensor table(int64_t length) override { return table_.rows(length, options_); }

 private:
  at::TensorOptions options_;
  GrowingTable table_;
};

const bool kSinusoidalRegistered = positions().add(
    "sinusoidal", "feature 2i of position p is sin(p/10000^(2i/d)), feature 2i + 1 the cosine of the same angle",
    "Vaswani et al. 2017, arXiv 1706.03762",
    [](Parameters& parameters, const std::string&, const PositionShape& shape, const Options&) {
      return std::make_unique<Sinusoidal>(parameters.options(), shape.d_model, Waves::interleaved);
    });
const bool kSinusoidalHalvesRegistered =
    positions().add("sinusoidal-halves",
                    "as `sinusoidal`, with all sines in the first half of the features and all cosines in the second",
                    "Hugging Face's `transformers`, for Marian",
                    [](Parameters& parameters, const std::string&, const PositionShape& shape, const Options&) {
                      return std::make_unique<Sinusoidal>(parameters.options(), shape.d_model, Waves::halves);
                    });

}  // namespace
}  // namespace plumb
