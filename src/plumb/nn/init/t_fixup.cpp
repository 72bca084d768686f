// T-Fixup, Huang et al. 2020 (ICML), which trains without norms and without warm-up: Xavier normal, with the
// feed-forward matrices, the values and the output of attention, and the embeddings of each side multiplied by a
// factor: encoder 0.67·N^(-1/4) for N layers; decoder (9M)^(-1/4) for M layers. Queries and keys are unchanged. An
// embedding shared by both sides counts as the encoder's. Use it with a scheme without norms ("plain").
#include <cmath>

#include "plumb/nn/init/init.h"

namespace plumb {
namespace {

double factor(const Parameter& parameter, const ModelDepth& depth) {
  return in_decoder(parameter) ? std::pow(9.0 * static_cast<double>(depth.decoder_layers), -0.25)
                               : 0.67 * std::pow(static_cast<double>(depth.encoder_layers), -0.25);
}

const bool kTFixupRegistered =
    initializations().add("t-fixup",
                          "`xavier-normal`; feed-forward, value and output matrices and embeddings multiplied by "
                          "0.67·N^(−1/4) in an encoder of "
                          "N layers and (9M)^(−1/4) in a decoder of M layers; for the scheme `plain`",
                          "Huang et al. 2020, ICML",
                          {[](const Parameter& parameter, const ModelDepth& depth, Random& random) {
                             fill_scaled_xavier(parameter, factor(parameter, depth), random);
                           },
                           [](const Parameter& parameter, const ModelDepth& depth) {
                             return parameter.name == "output.weight" ? 1.0 : factor(parameter, depth);
                           }});

}  // namespace
}  // namespace plumb
