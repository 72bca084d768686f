// plumb bench: times training, second derivatives and decoding, relative to the machine's matrix-product throughput.
#include "verb.h"

namespace plumb::app {
namespace {

void add_bench(CLI::App& app, Globals& globals) {
  CLI::App* verb = app.add_subcommand("bench", "Benchmark training, second derivatives, decoding and generation");
  verb->require_subcommand(1);
  add_verbs_of(Heading::benchmarks, *verb, globals);
}

const bool kBenchRegistered = register_verb({Heading::tools, 40, add_bench});

}  // namespace
}  // namespace plumb::app
