// The program's entry point: configures how OpenMP threads wait, which must be done before OpenMP is loaded, then loads
// and runs the rest.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  // Waiting threads spin for tens of microseconds, about the time between our parallel loops, instead of milliseconds:
  // if another process needs the cores, spinning threads delay the very process that they wait for.
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) ::setenv("GOMP_SPINCOUNT", "20000", 0);
  // Other programs may have set this, which would restrict OpenBLAS (used for float64 only) to older instructions.
  ::unsetenv("OPENBLAS_CORETYPE");
  void* program = ::dlopen("libplumb_program.so", RTLD_NOW | RTLD_GLOBAL);
  void* entry = program == nullptr ? nullptr : ::dlsym(program, "plumb_main");
  if (entry == nullptr) {
    std::fprintf(stderr, "plumb: error: %s\nhint: reinstall Plumb\n", ::dlerror());
    return 1;
  }
  return reinterpret_cast<int (*)(int, char**)>(entry)(argc, argv);
}
