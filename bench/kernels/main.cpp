// Times the kernels with Google Benchmark, at the sizes of a 6+6 model of width 512 (64 sentences of 32 tokens), and
// layers and optimizers that consist of them.
//   build/bench/kernels --benchmark_filter=norm
//   PLUMB_INSTRUCTIONS=AVX2 build/bench/kernels      with other instructions than the machine's best
//   PLUMB_THREADS=2 build/bench/kernels              with two threads; one by default
//   PLUMB_DATA=DIR build/bench/kernels --benchmark_filter=epoch    the batches of an epoch of this data directory
//   build/bench/kernels --benchmark_filter=replaceable --benchmark_repetitions=9
//       --benchmark_enable_random_interleaving=true --benchmark_report_aggregates_only=true
//                                                    kernels beside the functions of LibTorch that could replace them
#include <cstdio>
#include <exception>

#include "plumb/ops/kernels/instruction_set.h"
#include "plumb/ops/memory.h"
#include "plumb/ops/threads.h"
#include "timing.h"

int main(int argc, char** argv) {
  try {
    plumb::ops::keep_tensor_memory();  // as the program does
    const char* threads = std::getenv("PLUMB_THREADS");
    plumb::ops::set_threads(threads == nullptr ? 1 : std::atoll(threads));
    const char* instructions = std::getenv("PLUMB_INSTRUCTIONS");
    plumb::kernels::use_instruction_set(instructions == nullptr ? "" : instructions);
    benchmark::AddCustomContext("instructions",
                                instructions == nullptr ? plumb::kernels::instruction_sets().front() : instructions);
    plumb::bench::add_layers();
    plumb::bench::add_replaceable();
    plumb::bench::add_updates();
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::RunSpecifiedBenchmarks();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kernels: %s\n", error.what());
    return 1;
  }
}
